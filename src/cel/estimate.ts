import type { Checked } from './check.ts';
import type { CallExpression, Conditional, Expression, Fold, Select } from './expression.ts';
import type { Overload, Size } from './values/overload.ts';
import { fieldOf } from './schema-type.ts';
import { typeNameIn } from './type-names.ts';
import type { CelType } from './values/type.ts';
import { formatType } from './values/type.ts';
import { sizeOf } from './values/value.ts';

/** Upper bound of all costs, and the cost of values of unknown size. */
export const MAX_COST: number = 2 ** 64;

/**
 * Estimates the maximum cost of an expression for any valid object, in the units of `CostMeter`, as cel-go does. The
 * size of a value is that of its path in the schema; a value that was computed has a size if its operation has.
 *
 * @param root the type in which paths are looked up: that of `self`
 */
export function estimate(checked: Checked, root: CelType | undefined): number {
  return new Estimator(checked, root).cost(checked.expression, new Map());
}

/**
 * A variable, fields, and `@items`, `@values` or `@keys`; empty if a value is not in the schema. Two paths that extend
 * a third can share its array, as slices in Go do: the later one replaces the step of the earlier one. Which rules are
 * over the budget depends on it.
 */
class Path {
  readonly length: number;
  readonly #steps: string[];
  readonly #capacity: number;

  constructor(steps: string[] = [], length: number = steps.length, capacity: number = length) {
    this.#steps = steps;
    this.length = length;
    this.#capacity = capacity;
  }

  /** Returns the path of a step below this one. */
  to(step: string): Path {
    const { length } = this;
    const isFull = length === this.#capacity;
    const steps = isFull ? this.#steps.slice(0, length) : this.#steps;
    steps[length] = step;
    return new Path(steps, length + 1, isFull ? Math.max(1, length * 2) : this.#capacity);
  }

  /** Returns the same path with an array of its own. */
  copy(): Path {
    return new Path(this.#steps.slice(0, this.length));
  }

  /** The steps below the variable. */
  get steps(): readonly string[] {
    return this.#steps.slice(1, this.length);
  }
}

const NOWHERE = new Path();

interface Range {
  readonly min: number;
  readonly max: number;
}

/** Sizes of the members of a computed list or map. */
interface Members {
  readonly isList: boolean;
  readonly key: Range;
  readonly value: Range;
}

/** A variable of a macro. */
interface Local {
  readonly path: Path;
  readonly size: Range | undefined;
  readonly members: Members | undefined;
}

type Scope = ReadonlyMap<string, Local>;

/** What is known of an expression. */
interface Estimate {
  readonly cost: number;
  readonly path: Path;
  readonly size: Range | undefined;
  readonly members: Members | undefined;
}

const UNKNOWN: Range = { min: 0, max: MAX_COST };
const ZERO: Range = { min: 0, max: 0 };
const fixed = (size: number): Range => ({ min: size, max: size });

const LIST_COST = 10;
const MAP_COST = 30;
const OBJECT_COST = 40;

class Estimator {
  readonly #checked: Checked;
  readonly #root: CelType | undefined;

  constructor(checked: Checked, root: CelType | undefined) {
    this.#checked = checked;
    this.#root = root;
  }

  cost(expression: Expression, scope: Scope): number {
    return this.#estimate(expression, scope).cost;
  }

  /** Each expression is estimated once, with the variables at its place. */
  #estimate(expression: Expression, scope: Scope): Estimate {
    const { cost, path = NOWHERE, size, members } = this.#find(expression, scope);
    return {
      cost: Math.min(MAX_COST, cost),
      path,
      size: size ?? this.#sizeAt(path) ?? scalarSize(this.#typeOf(expression)),
      members,
    };
  }

  #find(expression: Expression, scope: Scope): Partial<Estimate> & { readonly cost: number } {
    const costs = (parts: readonly Expression[]) =>
      parts.reduce((total, part) => total + this.cost(part, scope), 0);
    switch (expression.kind) {
      case 'literal': {
        const { value } = expression;
        return { cost: 0, size: fixed(sizeOf(value)) };
      }
      case 'identifier':
        return this.#identifier(expression.name, scope, this.#typeOf(expression));
      case 'select':
        return this.#select(expression, scope);
      case 'call':
        return this.#call(expression, scope);
      case 'and':
      case 'or':
        return { cost: costs(expression.terms) };
      case 'conditional':
        return this.#conditional(expression, scope);
      case 'list': {
        const items = expression.items.map((item) => this.#estimate(item, scope));
        return {
          cost: sumOf(items) + LIST_COST,
          size: fixed(items.length),
          members: { isList: true, key: fixed(1), value: unionOf(items) },
        };
      }
      case 'map': {
        const keys = expression.entries.map(({ key }) => this.#estimate(key, scope));
        const values = expression.entries.map(({ value }) => this.#estimate(value, scope));
        return {
          cost: sumOf(keys) + sumOf(values) + MAP_COST,
          size: fixed(keys.length),
          members: { isList: false, key: unionOf(keys), value: unionOf(values) },
        };
      }
      case 'construction':
        return { cost: costs(expression.fields.map(({ value }) => value)) + OBJECT_COST };
      case 'fold':
        return this.#fold(expression, scope);
    }
  }

  #identifier(name: string, scope: Scope, type: CelType): Partial<Estimate> & { cost: number } {
    const local = scope.get(name);
    if (!local) return { cost: 1, path: new Path([name]) };
    const { path, members } = local;
    const size = this.#sizeAt(path) ?? scalarSize(type) ?? local.size;
    return { cost: 1, path, ...(size && { size }), members };
  }

  #select(expression: Select, scope: Scope): Partial<Estimate> & { cost: number } {
    const { operand, field, mode } = expression;
    const name = this.#typeOf(expression).kind === 'type' ? typeNameIn(expression) : undefined;
    // As upstream, the name of a type is a variable.
    if (name !== undefined) return { cost: 1, path: new Path([name]) };
    const { cost, path } = this.#estimate(operand, scope);
    if (mode === 'test') return { cost };
    // A function in upstream's terms, whose result has no path.
    if (mode === 'optional') return { cost: cost + 1 };
    const isLookedUp = ['map', 'object', 'param'].includes(this.#typeOf(operand).kind);
    return { cost: cost + (isLookedUp ? 1 : 0), path: path.to(field) };
  }

  #conditional({ condition, yes, no }: Conditional, scope: Scope) {
    const [first, second] = [this.#estimate(yes, scope), this.#estimate(no, scope)];
    return {
      cost: this.cost(condition, scope) + Math.max(first.cost, second.cost),
      size: unionOf([first, second]),
      members: unionOfMembers(first.members, second.members),
    };
  }

  #call(call: CallExpression, scope: Scope): Partial<Estimate> & { readonly cost: number } {
    const parts = [...(call.target ? [call.target] : []), ...call.args];
    // The order matters for the paths.
    const args = call.args.map((arg) => this.#estimate(arg, scope));
    const known = call.target ? [this.#estimate(call.target, scope), ...args] : args;
    const [first, second] = known;
    const before = sumOf(known);
    if (call.name === 'dyn') return { ...first, path: NOWHERE, cost: before + 1 };
    const overloads = this.#checked.overloadsOf.get(call) ?? [];
    const sizes = known.map((each, index) => this.#sizeFor(each, parts[index]));
    const cost = before + this.#ownCost(call, parts, overloads, sizes);
    if (call.name === '_[_]' && first) {
      const kinds = new Set(overloads.map(({ params: [operand] }) => operand?.kind));
      const step = kinds.has('map') ? '@values' : kinds.has('list') ? '@items' : '';
      const path = step === '' ? NOWHERE : first.path.to(step);
      return { cost, path, ...(first.members && { size: first.members.value }) };
    }
    const results = overloads.flatMap(({ size }) => (size ? [size(sizes)] : []));
    return {
      cost,
      ...(results.length > 0 && {
        size: {
          min: Math.min(...results.map(({ count, min = count }) => min)),
          max: Math.min(MAX_COST, Math.max(...results.map(({ count }) => count))),
        },
      }),
      ...(call.name === '_+_' && { members: unionOfMembers(first?.members, second?.members) }),
    };
  }

  #ownCost(
    call: CallExpression,
    parts: readonly Expression[],
    overloads: readonly Overload[],
    sizes: readonly Size[],
  ): number {
    if (call.name === '_==_') {
      const [left, right] = parts.map((part) => formatType(this.#typeOf(part)));
      const cost = left === right ? EQUALITY.get(left ?? '')?.(sizes) : undefined;
      if (cost !== undefined) return cost;
    }
    return overloads.reduce(
      (most, { cost, estimatedCost = cost }) => Math.max(most, estimatedCost(sizes)),
      0,
    );
  }

  /** Returns the size that the cost of a function depends on. */
  #sizeFor({ size, path }: Estimate, expression: Expression | undefined): Size {
    const type = expression ? this.#typeOf(expression) : undefined;
    const isOfTexts = type?.kind === 'list' && ['string', 'bytes'].includes(type.item.kind);
    const item = path.length > 0 ? this.#sizeAt(path.copy().to('@items')) : undefined;
    const { min, max } = size ?? UNKNOWN;
    const value = expression?.kind === 'literal' ? expression.value : undefined;
    return {
      count: max,
      min,
      item: isOfTexts ? (item ?? UNKNOWN).max : 0,
      ...(typeof value === 'bigint' && { value: Number(value) }),
    };
  }

  #fold(fold: Fold, scope: Scope): Partial<Estimate> & { readonly cost: number } {
    const range = this.#estimate(fold.range, scope);
    if (fold.name === 'optMap' || fold.name === 'optFlatMap') {
      return this.#optional(fold, range, scope);
    }
    if (fold.name === 'sortBy') return this.#sortBy(fold, range, scope);
    const inner = this.#within(fold, range, scope);
    const filter = fold.filter && this.#estimate(fold.filter, inner);
    const step = this.#estimate(fold.step, inner);
    const { start, pass, end, result } = MACROS[fold.name];
    const each = filter ? filter.cost + Math.max(1, step.cost + pass) : step.cost + pass;
    const isAtPath = ['identifier', 'select'].includes(fold.range.kind);
    const count = (isAtPath && this.#sizeAt(range.path)) || (range.size ?? UNKNOWN);
    const cost = range.cost + start + times(count.max, each) + end;
    if (result === 'scalar') return { cost, size: fixed(1) };
    if (result === 'map') return { cost, size: count };
    const item = fold.name === 'filter' ? this.#firstOf(fold, inner) : step.size;
    const value = { min: 0, max: (item ?? UNKNOWN).max };
    return { cost, size: count, members: { isList: true, key: fixed(1), value } };
  }

  /** A macro that evaluates its operand twice, and binds a variable. */
  #optional({ name, range, step, variables }: Fold, { cost, members }: Estimate, scope: Scope) {
    const type = this.#typeOf(range);
    const size = type.kind === 'optional' ? scalarSize(type.item) : undefined;
    const local = { path: NOWHERE, size, members };
    const mapped = this.#estimate(step, new Map([...scope, [variables[0] ?? '', local]]));
    const bound = LIST_COST + 1 + cost + mapped.cost;
    const total = cost + 1 + bound;
    if (name === 'optMap') return { cost: total + 1 };
    return { cost: total, ...(mapped.size && { size: unionOf([mapped, { size: undefined }]) }) };
  }

  /** A macro that maps each item to its key and sorts by the keys. */
  #sortBy(fold: Fold, { cost, path, size, members }: Estimate, scope: Scope) {
    const range = { cost: 1, path, size, members };
    const key = this.#estimate(fold.step, this.#within(fold, range, scope));
    const { start, pass, end } = MACROS.map;
    const count = this.#sizeAt(path) ?? size ?? UNKNOWN;
    const keys = range.cost + start + times(count.max, key.cost + pass) + end;
    const squared = { min: count.min ** 2, max: times(count.max, count.max) };
    const { kind } = this.#typeOf(fold.step);
    const factor = ['string', 'bytes', 'dyn'].includes(kind) ? 2.1 : 2;
    const own = Math.ceil(squared.max * factor) + 1 + LIST_COST;
    return { cost: LIST_COST + cost + keys + range.cost + own, size: squared };
  }

  /** Returns the scope of the step of a macro. */
  #within({ variables, range: operand }: Fold, range: Estimate, scope: Scope): Scope {
    const { path, members } = range;
    const isList = members?.isList ?? this.#typeOf(operand).kind === 'list';
    const at = (name: string, size: Range | undefined) =>
      ({ path: path.to(name), size, members: undefined }) as const;
    const key = at(isList ? '@indices' : '@keys', members?.key);
    const value = at(isList ? '@items' : '@values', members?.value);
    const [first = '', second] = variables;
    if (second !== undefined) return new Map([...scope, [first, key], [second, value]]);
    return new Map([...scope, [first, isList ? value : key]]);
  }

  /** Returns the size of the variable of a macro. */
  #firstOf(fold: Fold, scope: Scope): Range | undefined {
    const local = scope.get(fold.variables[0] ?? '');
    const type = this.#typeOf(fold.range);
    const item = type.kind === 'list' ? type.item : type.kind === 'map' ? type.key : undefined;
    return local && (this.#sizeAt(local.path) ?? (item && scalarSize(item)) ?? local.size);
  }

  /** Returns the size of the values at a path. As upstream, the first part always stands for the root. */
  #sizeAt(path: Path): Range | undefined {
    let type = path.length === 0 ? undefined : this.#root;
    const { steps } = path;
    for (const name of steps) {
      if (name === '@keys') return type?.kind === 'map' && steps.at(-1) === name ? ZERO : undefined;
      if (name === '@items' || name === '@values') {
        type = type?.kind === 'list' ? type.item : type?.kind === 'map' ? type.value : undefined;
      } else {
        type = type?.kind === 'object' ? fieldOf(type.fields, name) : undefined;
      }
    }
    return type && { min: 0, max: 'max' in type ? (type.max ?? 0) : 0 };
  }

  #typeOf(expression: Expression): CelType {
    return this.#checked.typeOf.get(expression) ?? { kind: 'dyn' };
  }
}

/**
 * Costs of a macro besides its range: of its accumulator and its result, of one pass besides the step, and what it
 * returns.
 */
const MACROS: Readonly<
  Record<
    Exclude<Fold['name'], 'optMap' | 'optFlatMap' | 'sortBy'>,
    {
      readonly start: number;
      readonly pass: number;
      readonly end: number;
      readonly result: 'scalar' | 'list' | 'map';
    }
  >
> = {
  all: { start: 0, pass: 3, end: 1, result: 'scalar' },
  exists: { start: 0, pass: 4, end: 1, result: 'scalar' },
  existsOne: { start: 0, pass: 2, end: 2, result: 'scalar' },
  filter: { start: LIST_COST, pass: 13, end: 1, result: 'list' },
  map: { start: LIST_COST, pass: 12, end: 1, result: 'list' },
  transformList: { start: LIST_COST, pass: 12, end: 1, result: 'list' },
  transformMap: { start: MAP_COST, pass: 3, end: 1, result: 'map' },
  transformMapEntry: { start: MAP_COST, pass: 2, end: 1, result: 'map' },
};

const once = () => 1;
/** Costs of the equality of values of Kubernetes' libraries, by type. */
const EQUALITY: ReadonlyMap<string, Overload['cost']> = new Map<string, Overload['cost']>([
  ...['net.IP', 'net.CIDR', 'kubernetes.Quantity', 'kubernetes.Semver'].map(
    (name) => [name, once] as const,
  ),
  ['kubernetes.NamedFormat', () => 7],
  ['kubernetes.URL', ([, url]) => Math.ceil((url?.count ?? 1) * 0.1)],
]);

/** Nothing is known of the size of no passes. */
function times(count: number, cost: number): number {
  return count === 0 ? 0 : count * cost;
}

function sumOf(parts: readonly Estimate[]): number {
  return parts.reduce((total, { cost }) => total + cost, 0);
}

/** Returns a range of all sizes; unknown sizes have any. */
function unionOf(parts: readonly Pick<Estimate, 'size'>[]): Range {
  if (parts.length === 0) return ZERO;
  const sizes = parts.map(({ size }) => size ?? UNKNOWN);
  return sizes.reduce((all, { min, max }) => ({
    min: Math.min(all.min, min),
    max: Math.max(all.max, max),
  }));
}

function unionOfMembers(a: Members | undefined, b: Members | undefined): Members | undefined {
  if (!a || !b) return undefined;
  return {
    isList: a.isList,
    key: unionOf([{ size: a.key }, { size: b.key }]),
    value: unionOf([{ size: a.value }, { size: b.value }]),
  };
}

/** Returns the size of a value whose type determines it. */
function scalarSize(type: CelType): Range | undefined {
  switch (type.kind) {
    case 'bool':
    case 'int':
    case 'uint':
    case 'double':
    case 'timestamp':
    case 'duration':
      return fixed(1);
    case 'optional':
      return scalarSize(type.item);
    default:
      return undefined;
  }
}
