import type { CelType } from './type.ts';
import {
  BOOL,
  BYTES,
  DOUBLE,
  DURATION,
  DYN,
  INT,
  NULL,
  STRING,
  TIMESTAMP,
  TYPE,
  UINT,
  listOf,
  mapOf,
  optionalOf,
  param,
} from './type.ts';
import type { Dictionary, Result, Value } from './value.ts';
import { Duration, List, Optional, Timestamp, TypeValue, Uint, isDictionary } from './value.ts';

/** What a function takes in one place: its type, and how a value of it is told from others. */
export interface Parameter<V extends Value = Value> {
  readonly type: CelType;
  /** Undefined if `value` is none. */
  read(value: Value): V | undefined;
}

/** How large a value is, or can be at most: what it counts for, and what each of its items does. */
export interface Size {
  readonly count: number;
  readonly item: number;
  /** The number itself, if it stands in the expression. */
  readonly value?: number;
}

/** One signature of a function. */
export interface Overload {
  readonly name: string;
  readonly member: boolean;
  readonly params: readonly CelType[];
  readonly result: CelType;
  /** The costs of a call whose arguments, target first, have these sizes. */
  readonly cost: (sizes: readonly Size[]) => number;
  /** What the result counts for at most; absent: as its type says. */
  readonly size: ((sizes: readonly Size[]) => Size) | undefined;
  /** Pays, then runs. Undefined if the arguments, of these sizes, are not of this signature. */
  call(args: readonly Value[], sizes: readonly Size[], meter: Meter): Result | undefined;
}

type Read<P extends readonly Parameter[]> = {
  [K in keyof P]: P[K] extends Parameter<infer V> ? V : never;
};

interface OverloadOptions {
  readonly cost?: Overload['cost'];
  readonly size?: Overload['size'];
}

/** A function `name(…)`. */
export function global<const P extends readonly Parameter[]>(
  name: string,
  params: P,
  result: CelType,
  run: (args: Read<P>, meter: Meter) => Result,
  options: OverloadOptions = {},
): Overload {
  return overload(name, false, params, result, run, options);
}

/** A method `target.name(…)`; its target is the first parameter. */
export function member<const P extends readonly Parameter[]>(
  name: string,
  params: P,
  result: CelType,
  run: (args: Read<P>, meter: Meter) => Result,
  options: OverloadOptions = {},
): Overload {
  return overload(name, true, params, result, run, options);
}

function overload<const P extends readonly Parameter[]>(
  name: string,
  isMember: boolean,
  params: P,
  result: CelType,
  run: (args: Read<P>, meter: Meter) => Result,
  { cost = () => 1, size }: OverloadOptions,
): Overload {
  return {
    name,
    member: isMember,
    params: params.map(({ type }) => type),
    result,
    cost,
    size,
    call: (args, sizes, meter) => {
      if (args.length !== params.length) return undefined;
      const read: Value[] = [];
      for (let index = 0; index < params.length; index++) {
        const value = params[index]?.read(args[index] ?? null);
        if (value === undefined) return undefined;
        read.push(value);
      }
      meter.spend(cost(sizes));
      const typed: unknown = read;
      return run(typed as Read<P>, meter);
    },
  };
}

function instance<V extends Value>(
  type: CelType,
  constructor: new (...args: never[]) => V,
): Parameter<V> {
  return { type, read: (value) => (value instanceof constructor ? value : undefined) };
}

/** An opaque type as a parameter. */
export const instanceOf: typeof instance = instance;

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
export const string: Parameter<string> = {
  type: STRING,
  read: (value) => (typeof value === 'string' ? value : undefined),
};
export const bytes: Parameter<Uint8Array> = instance(BYTES, Uint8Array);
export const uint: Parameter<Uint> = instance(UINT, Uint);
export const timestamp: Parameter<Timestamp> = instance(TIMESTAMP, Timestamp);
export const duration: Parameter<Duration> = instance(DURATION, Duration);
export const typeValue: Parameter<TypeValue> = instance(TYPE, TypeValue);
export const nothing: Parameter<null> = {
  type: NULL,
  read: (value) => (value === null ? value : undefined),
};
export const dyn: Parameter = { type: DYN, read: (value) => value };
export const A: Parameter = { type: param('A'), read: (value) => value };
export const B: Parameter = { type: param('B'), read: (value) => value };
export const map: Parameter<Dictionary> = {
  type: mapOf(param('A'), param('B')),
  read: (value) => (isDictionary(value) ? value : undefined),
};

export function list(item: CelType): Parameter<List> {
  return instance(listOf(item), List);
}

export function optional(item: CelType): Parameter<Optional> {
  return instance(optionalOf(item), Optional);
}

const TRAVERSAL = 0.1;
const REGEX = 0.25;

/** The costs of reading strings and lists, as a real server has them. */
export const costs: {
  /** Reads the argument at `index` `times` times. */
  traverse(index: number, times?: number): Overload['cost'];
  /** A regular expression, the second argument, over the first. */
  readonly regex: Overload['cost'];
  /** Looks at every item of the first argument. */
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

export const counted = (count: number, item: number = 1): Size => ({ count, item });

/** A rule has cost more than it may: nothing catches this but who asked for the rule. */
export class CostExceeded extends Error {
  override readonly name = 'CostExceeded';

  constructor() {
    super('operation cancelled: actual cost limit exceeded');
  }
}

/**
 * Counts what an evaluation costs, in the units of a real server (about 100 ns of its time), and
 * stops it at a limit. Besides the costs that the language has, work that is free there but takes us
 * time is charged a little, so that the limit is one on time as well.
 */
export class Meter {
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

  /** For what looks at `count` characters, bytes or items besides its cost. */
  work(count: number): void {
    this.spend(count * WORK);
  }
}

const WORK = 0.002;
