import type { Checked } from './check.ts';
import type { Call, Expression, Fold } from './expression.ts';
import type { Overload, Size } from './values/overload.ts';
import type { CelType } from './values/type.ts';
import { sizeOf } from './values/value.ts';

/** Upper bound of all costs, and the cost of values of unknown size. */
export const MAX_COST: number = 2 ** 64;

/**
 * Estimates the maximum cost of an expression for any valid object, in the units of `CostMeter`. Lists,
 * maps and strings without a limit in the schema count as long as a request allows.
 */
export function estimate(checked: Checked): number {
  return new Estimator(checked).cost(checked.expression, new Map());
}

type Sizes = ReadonlyMap<string, Size>;

const UNKNOWN: Size = { count: MAX_COST, item: MAX_COST };

class Estimator {
  readonly #checked: Checked;
  readonly #sizes = new Map<Expression, Size>();

  constructor(checked: Checked) {
    this.#checked = checked;
  }

  cost(expression: Expression, sizes: Sizes): number {
    return Math.min(MAX_COST, this.#cost(expression, sizes));
  }

  #cost(expression: Expression, sizes: Sizes): number {
    const sum = (parts: readonly Expression[]) =>
      parts.reduce((total, part) => total + this.cost(part, sizes), 0);
    switch (expression.kind) {
      case 'literal':
        return 0;
      case 'identifier':
        return 1;
      case 'select':
        return this.cost(expression.operand, sizes) + this.#selectCost(expression);
      case 'call':
        return this.#callCost(expression, sizes);
      case 'and':
      case 'or':
        return sum(expression.terms);
      case 'conditional': {
        const { condition, yes, no } = expression;
        return this.cost(condition, sizes) + Math.max(this.cost(yes, sizes), this.cost(no, sizes));
      }
      case 'list':
        return sum(expression.items) + 10;
      case 'map':
        return sum(expression.entries.flatMap(({ key, value }) => [key, value])) + 30;
      case 'construction':
        return sum(expression.fields.map(({ value }) => value)) + 40;
      case 'fold':
        return this.#foldCost(expression, sizes);
    }
  }

  #selectCost({ operand, mode }: Extract<Expression, { kind: 'select' }>): number {
    if (mode === 'test') return 0;
    const { kind } = this.#typeOf(operand);
    return kind === 'map' || kind === 'object' || mode === 'optional' || kind === 'optional'
      ? 1
      : 0;
  }

  #callCost(call: Call, sizes: Sizes): number {
    const parts = [...(call.target ? [call.target] : []), ...call.args];
    const known = parts.map((part) => this.#sizeOf(part, sizes));
    const own = greatest(this.#overloads(call).map(({ cost }) => cost(known)));
    return parts.reduce((total, part) => total + this.cost(part, sizes), own);
  }

  #foldCost(fold: Fold, sizes: Sizes): number {
    const { name, range, filter, step } = fold;
    const inner = this.#within(fold, sizes);
    const own = this.cost(step, inner) + (filter ? this.cost(filter, inner) : 0);
    const before = this.cost(range, sizes);
    if (name === 'optMap' || name === 'optFlatMap') return before + own + 3;
    const { count } = this.#sizeOf(range, sizes);
    return before + count * (own + PASS[name]) + 1;
  }

  /** Returns the sizes of the variables of a macro, where their types do not limit them. */
  #within({ range, variables }: Fold, sizes: Sizes): Sizes {
    const item = this.#sizeOf(range, sizes).item;
    return new Map([
      ...sizes,
      ...variables.map((name) => [name, { count: item, item: MAX_COST }] as const),
    ]);
  }

  /** Computed once: each expression has one place, where each variable has one size. */
  #sizeOf(expression: Expression, sizes: Sizes): Size {
    let size = this.#sizes.get(expression);
    if (!size) {
      size = this.#findSize(expression, sizes);
      this.#sizes.set(expression, size);
    }
    return size;
  }

  #findSize(expression: Expression, sizes: Sizes): Size {
    switch (expression.kind) {
      case 'literal': {
        const { value } = expression;
        const size = { count: sizeOf(value), item: 1 };
        return typeof value === 'bigint' ? { ...size, value: Number(value) } : size;
      }
      case 'list': {
        const items = expression.items.map((item) => this.#sizeOf(item, sizes).count);
        return { count: items.length, item: greatest(items) };
      }
      case 'map':
        return { count: expression.entries.length, item: MAX_COST };
      case 'construction':
        return { count: expression.fields.length, item: MAX_COST };
      case 'conditional': {
        const [yes, no] = [this.#sizeOf(expression.yes, sizes), this.#sizeOf(expression.no, sizes)];
        return { count: Math.max(yes.count, no.count), item: Math.max(yes.item, no.item) };
      }
      case 'call': {
        const size = this.#resultSize(expression, sizes);
        if (size) return size;
        break;
      }
      case 'fold': {
        const range = this.#sizeOf(expression.range, sizes);
        if (expression.name === 'map' || expression.name === 'transformList') {
          const inner = this.#within(expression, sizes);
          return { count: range.count, item: this.#sizeOf(expression.step, inner).count };
        }
        if (['filter', 'sortBy', 'transformMap', 'transformMapEntry'].includes(expression.name))
          return range;
        break;
      }
      default:
    }
    const byType = sizeByType(this.#typeOf(expression));
    if (byType) return byType;
    return (expression.kind === 'identifier' && sizes.get(expression.name)) || UNKNOWN;
  }

  #resultSize(call: Call, sizes: Sizes): Size | undefined {
    const parts = [...(call.target ? [call.target] : []), ...call.args];
    if (call.name === 'dyn' && parts[0]) return this.#sizeOf(parts[0], sizes);
    const known = parts.map((part) => this.#sizeOf(part, sizes));
    const results = this.#overloads(call).flatMap(({ size }) => (size ? [size(known)] : []));
    if (results.length === 0) return undefined;
    return {
      count: greatest(results.map(({ count }) => count)),
      item: greatest(results.map(({ item }) => item)),
    };
  }

  #overloads(call: Call): readonly Overload[] {
    return this.#checked.overloadsOf.get(call) ?? [];
  }

  #typeOf(expression: Expression): CelType {
    return this.#checked.typeOf.get(expression) ?? { kind: 'dyn' };
  }
}

/** Cost of one iteration of a macro in addition to its step. */
const PASS: Readonly<Record<Exclude<Fold['name'], 'optMap' | 'optFlatMap'>, number>> = {
  all: 3,
  exists: 3,
  existsOne: 2,
  filter: 13,
  map: 12,
  transformList: 12,
  sortBy: 12,
  transformMap: 32,
  transformMapEntry: 32,
};

/** Maximum of the numbers and 0. A loop, because spread arguments are limited in number. */
function greatest(numbers: readonly number[]): number {
  return numbers.reduce((most, each) => Math.max(most, each), 0);
}

function sizeByType(type: CelType): Size | undefined {
  switch (type.kind) {
    case 'bool':
    case 'int':
    case 'uint':
    case 'double':
    case 'null':
    case 'type':
      return { count: 1, item: 1 };
    case 'timestamp':
    case 'duration':
      return { count: type.max ?? 1, item: 1 };
    case 'string':
    case 'bytes':
    case 'dyn':
      return type.max === undefined ? undefined : { count: type.max, item: type.max };
    case 'list':
    case 'map': {
      if (type.max === undefined) return undefined;
      const item = sizeByType(type.kind === 'list' ? type.item : type.value);
      return { count: type.max, item: item?.count ?? 0 };
    }
    case 'object':
      return { count: 0, item: 0 };
    case 'opaque':
      return { count: 1, item: 1 };
    default:
      return undefined;
  }
}
