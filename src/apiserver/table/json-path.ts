import { assertNever } from '../../util/values.ts';
import type { Comparison, JsonPath, Slice, Step } from './json-path-parser.ts';

export type { JsonPath } from './json-path-parser.ts';
export { parseJsonPath } from './json-path-parser.ts';

/** Values that an evaluation looks at before it gives up: `..*..*` multiplies. */
const MAX_VISITS = 100_000;

/**
 * The values that `path` leads to from `root`. A field that is not there leads nowhere; undefined
 * means that the path does not fit `root` (an index out of bounds, a filter on something that is no
 * array, a comparison of things that do not compare), or that it leads to too many values.
 */
export function evaluateJsonPath(path: JsonPath, root: unknown): readonly unknown[] | undefined {
  return new Evaluation().walk(path, [root]);
}

/** One evaluation and its budget. Undefined, throughout, means that the path does not fit. */
class Evaluation {
  #visitsLeft = MAX_VISITS;

  walk(path: JsonPath, inputs: readonly unknown[]): readonly unknown[] | undefined {
    let values: readonly unknown[] | undefined = inputs;
    for (const step of path) {
      values = this.#step(step, values);
      if (!values) return undefined;
      this.#visitsLeft -= values.length;
      if (this.#visitsLeft < 0) return undefined;
    }
    return values;
  }

  #step(step: Step, inputs: readonly unknown[]): readonly unknown[] | undefined {
    switch (step.type) {
      case 'field':
        return inputs
          .filter((value) => hasField(value, step.name))
          .map((value) => value[step.name]);
      case 'wildcard':
        return inputs.flatMap(children);
      case 'descendants':
        return this.#descendants(inputs);
      case 'slice':
        return flatMapAll(inputs, (value) => (value === null ? [] : sliceOf(value, step.slice)));
      case 'union':
        return flatMapAll(step.paths, (path) => this.walk(path, inputs));
      case 'exists':
        return flatMapAll(inputs, (value) =>
          Array.isArray(value)
            ? value.filter((element) => (this.walk(step.path, [element])?.length ?? 0) > 0)
            : undefined,
        );
      case 'filter':
        return flatMapAll(inputs, (value) => this.#filter(step, value));
      case 'literal':
        return [step.value];
      default:
        return assertNever(step);
    }
  }

  /** Everything below the inputs that has children of its own, parents before children. */
  #descendants(inputs: readonly unknown[]): readonly unknown[] | undefined {
    const found: unknown[] = [];
    const pending = [...inputs].reverse();
    while (pending.length > 0) {
      if (--this.#visitsLeft < 0) return undefined;
      const value = pending.pop();
      const below = children(value);
      if (below.length === 0) continue;
      found.push(value);
      for (const child of below.toReversed()) pending.push(child);
    }
    return found;
  }

  #filter(
    { left, operator, right }: Extract<Step, { type: 'filter' }>,
    value: unknown,
  ): readonly unknown[] | undefined {
    if (!Array.isArray(value)) return undefined;
    return flatMapAll(value, (element) => {
      const lefts = this.walk(left, [element]);
      if (lefts?.length === 0) return [];
      const rights = this.walk(right, [element]);
      if (rights?.length === 0) return [];
      if (lefts?.length !== 1 || rights?.length !== 1) return undefined;
      const holds = compare(lefts[0], operator, rights[0]);
      return holds === undefined ? undefined : holds ? [element] : [];
    });
  }
}

function hasField(value: unknown, name: string): value is Readonly<Record<string, unknown>> {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    Object.hasOwn(value, name)
  );
}

function children(value: unknown): readonly unknown[] {
  return typeof value === 'object' && value !== null ? Object.values(value) : [];
}

/** As `flatMap`; undefined if the result of any call is. */
function flatMapAll<T>(
  values: readonly T[],
  map: (value: T) => readonly unknown[] | undefined,
): readonly unknown[] | undefined {
  const all: unknown[] = [];
  for (const value of values) {
    const mapped = map(value);
    if (!mapped) return undefined;
    for (const item of mapped) all.push(item);
  }
  return all;
}

function sliceOf(value: unknown, slice: Slice): readonly unknown[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const { length } = value;
  const start = slice.start < 0 ? slice.start + length : slice.start;
  const end = slice.end === undefined ? length : slice.end < 0 ? slice.end + length : slice.end;
  if (start === end) return [];
  if (start < 0 || start > end || start >= length || end > length) return undefined;
  return value.slice(start, end).filter((_, index) => index % slice.step === 0);
}

/** Undefined if the two do not compare: different types, or types without such an order. */
function compare(left: unknown, operator: Comparison, right: unknown): boolean | undefined {
  const isOrdered = typeof left === 'string' || typeof left === 'number';
  if (typeof left !== typeof right || !(isOrdered || typeof left === 'boolean')) return undefined;
  if (operator === '==') return left === right;
  if (operator === '!=') return left !== right;
  if (typeof left === 'string' && typeof right === 'string') return inOrder(left, operator, right);
  if (typeof left === 'number' && typeof right === 'number') return inOrder(left, operator, right);
  return undefined;
}

function inOrder<T extends string | number>(
  left: T,
  operator: '<' | '<=' | '>' | '>=',
  right: T,
): boolean {
  switch (operator) {
    case '<':
      return left < right;
    case '<=':
      return left <= right;
    case '>':
      return left > right;
    case '>=':
      return left >= right;
  }
}
