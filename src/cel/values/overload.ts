import type { CelType } from './type.ts';
import {
  BOOL,
  BYTES,
  DOUBLE,
  DURATION,
  DYN,
  INT,
  STRING,
  TIMESTAMP,
  UINT,
  listOf,
  mapOf,
  optionalOf,
  param,
} from './type.ts';
import type { Dictionary, Result, Value } from './value.ts';
import { Duration, List, Optional, Timestamp, Uint, isDictionary } from './value.ts';

/** A parameter of a function: its type, and a type guard for its values. */
export interface Parameter<V extends Value = Value> {
  readonly type: CelType;
  /** Returns `value`, or undefined if it has another type. */
  read(value: Value): V | undefined;
}

/** Size or maximum size of a value and of each of its items. */
export interface Size {
  readonly count: number;
  /**
   * Minimum size.
   * @default count
   */
  readonly min?: number;
  readonly item: number;
  /** The value of a number literal. */
  readonly value?: number;
}

/** One signature of a function. */
export interface Overload {
  readonly name: string;
  readonly member: boolean;
  readonly params: readonly CelType[];
  readonly result: CelType;
  /** Returns the cost of a call. `sizes` are those of the arguments, target first. */
  readonly cost: (sizes: readonly Size[]) => number;
  /** Returns the cost for the estimate, if upstream's differs from that of the evaluation. */
  readonly estimatedCost: Overload['cost'] | undefined;
  /** Returns the maximum size of the result; undefined if its type determines it. */
  readonly size: ((sizes: readonly Size[]) => Size) | undefined;
  /** Charges the cost and runs. Returns undefined if the arguments do not have this signature. */
  call(args: readonly Value[], sizes: readonly Size[], meter: CostMeter): Result | undefined;
}

type Read<P extends readonly Parameter[]> = {
  [K in keyof P]: P[K] extends Parameter<infer V> ? V : never;
};

/** The body of a function with these parameters. */
type Run<P extends readonly Parameter[]> = (...args: [...Read<P>, meter: CostMeter]) => Result;

/** The body of any function. Its arguments are those that the parameters have read, and the meter. */
type Body = (...args: never) => Result;

interface OverloadOptions {
  readonly cost?: Overload['cost'];
  readonly estimatedCost?: Overload['cost'];
  readonly size?: Overload['size'];
}

/** Defines an overload of the function `name(…)`. */
export function global<const P extends readonly Parameter[]>(
  name: string,
  params: P,
  result: CelType,
  run: Run<P>,
  options?: OverloadOptions,
): Overload {
  return overload(name, false, params, result, run, options);
}

/** Defines an overload of the method `target.name(…)`. The target is the first parameter. */
export function member<const P extends readonly Parameter[]>(
  name: string,
  params: P,
  result: CelType,
  run: Run<P>,
  options?: OverloadOptions,
): Overload {
  return overload(name, true, params, result, run, options);
}

/** Defines the method `target.name(…)` with and without its last argument. */
export function memberWithOptional<const P extends readonly Parameter[], V extends Value>(
  name: string,
  params: P,
  last: Parameter<V>,
  result: CelType,
  run: (...args: [...Read<P>, last: NoInfer<V> | undefined, meter: CostMeter]) => Result,
  options?: OverloadOptions,
): Overload[] {
  return [
    overload(name, true, params, result, run, options, [undefined]),
    overload(name, true, [...params, last], result, run, options),
  ];
}

/** @param omitted arguments after those of the call */
function overload(
  name: string,
  isMember: boolean,
  params: readonly Parameter[],
  result: CelType,
  body: Body,
  { cost = () => 1, estimatedCost, size }: OverloadOptions = {},
  omitted: readonly undefined[] = [],
): Overload {
  // The parameters have read what the body takes.
  const run = body as (...args: readonly (Value | undefined | CostMeter)[]) => Result;
  return {
    name,
    member: isMember,
    params: params.map(({ type }) => type),
    result,
    cost,
    estimatedCost,
    size,
    call: (args, sizes, meter) => {
      if (args.length !== params.length) return undefined;
      const read: (Value | undefined)[] = [];
      for (let index = 0; index < params.length; index++) {
        const value = params[index]?.read(args[index] ?? null);
        if (value === undefined) return undefined;
        read.push(value);
      }
      meter.spend(cost(sizes));
      if (omitted.length > 0) return run(...read, ...omitted, meter);
      // Without a spread, which takes longer than most functions.
      if (read.length === 1) return run(read[0], meter);
      return read.length === 2 ? run(read[0], read[1], meter) : run(...read, meter);
    },
  };
}

export function instanceOf<V extends Value>(
  type: CelType,
  constructor: new (...args: never[]) => V,
): Parameter<V> {
  return { type, read: (value) => (value instanceof constructor ? value : undefined) };
}

export const bool: Parameter<boolean> = {
  type: BOOL,
  read: (value) => (typeof value === 'boolean' ? value : undefined),
};
export const int: Parameter<bigint> = {
  type: INT,
  read: (value) => (typeof value === 'bigint' ? value : undefined),
};
export const double: Parameter<number> = {
  type: DOUBLE,
  read: (value) => (typeof value === 'number' ? value : undefined),
};
export const stringParameter: Parameter<string> = {
  type: STRING,
  read: (value) => (typeof value === 'string' ? value : undefined),
};
export const bytes: Parameter<Uint8Array> = instanceOf(BYTES, Uint8Array);
export const uint: Parameter<Uint> = instanceOf(UINT, Uint);
export const timestampParameter: Parameter<Timestamp> = instanceOf(TIMESTAMP, Timestamp);
export const durationParameter: Parameter<Duration> = instanceOf(DURATION, Duration);
export const dyn: Parameter = { type: DYN, read: (value) => value };
export const A: Parameter = { type: param('A'), read: (value) => value };
export const mapParameter: Parameter<Dictionary> = {
  type: mapOf(param('A'), param('B')),
  read: (value) => (isDictionary(value) ? value : undefined),
};

export function listParameter(item: CelType): Parameter<List> {
  return instanceOf(listOf(item), List);
}

export function optionalParameter(item: CelType): Parameter<Optional> {
  return instanceOf(optionalOf(item), Optional);
}

const TRAVERSAL = 0.1;
const REGEX = 0.25;

/** Costs of reading strings and lists, as upstream. */
export const costs: {
  /** Cost of reading the argument at `index`, `times` times. */
  traverse(index: number, times?: number): Overload['cost'];
  /** Cost of matching the first argument with the regular expression in the second. */
  readonly regex: Overload['cost'];
  /** Cost of reading every item of the first argument. */
  readonly items: Overload['cost'];
} = {
  traverse:
    (index, times = 1) =>
    (sizes) =>
      Math.ceil((sizes[index]?.count ?? 1) * TRAVERSAL * times),
  regex: ([text, pattern]) =>
    Math.ceil((1 + (text?.count ?? 0)) * TRAVERSAL) * Math.ceil((pattern?.count ?? 0) * REGEX),
  items: ([items]) => (items?.count ?? 0) * (1 + Math.ceil((items?.item ?? 0) * TRAVERSAL)),
};

export const sizedAs = (count: number, item: number = 1): Size => ({ count, item });

/** The cost limit of a rule is exceeded. Only the code that evaluates rules catches it. */
export class CostExceeded extends Error {
  override readonly name = 'CostExceeded';

  constructor() {
    super('operation cancelled: actual cost limit exceeded');
  }
}

/**
 * Counts the cost of an evaluation in upstream's units (about 100 ns) and stops it at a limit. It also
 * charges for work that is free upstream but takes time here, so that the limit bounds the time.
 */
export class CostMeter {
  readonly #limit: number;
  #spent = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get spent(): number {
    return Math.ceil(this.#spent);
  }

  /** @throws {CostExceeded} */
  spend(cost: number): void {
    this.#spent += cost;
    if (this.#spent > this.#limit) throw new CostExceeded();
  }

  /** Charges for reading `count` characters, bytes or items in addition to the cost. */
  work(count: number): void {
    this.spend(count * WORK);
  }
}

const WORK = 0.002;
