import { assertNever } from '../../util/values.ts';

export type JsonPath = readonly Step[];

/** One step of a path. It maps each input value to any number of values. */
type Step =
  | { readonly type: 'field'; readonly name: string }
  | { readonly type: 'wildcard' }
  | { readonly type: 'descendants' }
  | { readonly type: 'slice'; readonly slice: Slice }
  | { readonly type: 'union'; readonly paths: readonly JsonPath[] }
  | { readonly type: 'exists'; readonly path: JsonPath }
  | {
      readonly type: 'filter';
      readonly left: JsonPath;
      readonly operator: Comparison;
      readonly right: JsonPath;
    }
  | { readonly type: 'literal'; readonly value: string | number | boolean };

/** Array elements from `start` up to but not including `end`; negative numbers count from the end. */
interface Slice {
  readonly start: number;
  /** Undefined for the end of the array. */
  readonly end: number | undefined;
  readonly step: number;
}

type Comparison = '==' | '!=' | '<' | '<=' | '>' | '>=';

const COMPARISONS: ReadonlySet<string> = new Set(['==', '!=', '<', '<=', '>', '>=']);

/**
 * Parses the JSONPath of a printer column: `.spec.replicas`, `.metadata.labels['app']`,
 * `.status.conditions[?(@.type=="Ready")].status`, `.items[0]`, `[1:3]`, `[*]`, `..name`. The
 * dialect is that of kubectl's `-o jsonpath`, without its templates (`{range}`). A dot within
 * quotes separates fields unless it is escaped: `['app\.kubernetes\.io/name']`.
 *
 * @throws {SyntaxError} if the path is malformed
 */
export function parseJsonPath(text: string): JsonPath {
  const steps: Step[] = [];
  let at = 0;
  while (at < text.length) {
    const rest = text.slice(at);
    if (rest.startsWith('[?(')) {
      const end = filterEnd(text, at + 3);
      steps.push(parseFilter(text.slice(at + 3, end)));
      at = end + 2;
    } else if (rest.startsWith('..')) {
      if (steps.at(-1)?.type === 'descendants') {
        throw new SyntaxError('invalid multiple recursive descent');
      }
      steps.push({ type: 'descendants' });
      at += 2;
      // Next is a field without its own dot (`..name`) or any other step (`..[0]`).
      if (/[\w*]/.test(text.charAt(at))) at = parseField(text, at, steps);
    } else if (rest.startsWith('.')) at = parseField(text, at + 1, steps);
    else if (rest.startsWith('[')) {
      const end = text.indexOf(']', at);
      if (end < 0) throw new SyntaxError('unterminated array');
      for (const step of parseBracket(text.slice(at + 1, end))) steps.push(step);
      at = end + 1;
    } else if (/^["']/.test(rest)) at = parseQuoted(text, at, steps);
    else if (/^[ @$]/.test(rest)) at++;
    else at = parseWord(text, at, steps);
  }
  return steps;
}

function parseField(text: string, start: number, steps: Step[]): number {
  let end = start;
  while (end < text.length && !/[\s.,[\]$@{}]/.test(text.charAt(end))) {
    end += text[end] === '\\' ? 2 : 1;
  }
  const name = text.slice(start, end);
  steps.push(name === '*' ? { type: 'wildcard' } : { type: 'field', name: unescapeDots(name) });
  return end;
}

function unescapeDots(name: string): string {
  return name.replaceAll('\\', '');
}

function parseBracket(text: string): JsonPath {
  const alternatives = text.split(',');
  if (alternatives.length > 1) {
    return [{ type: 'union', paths: alternatives.map((part) => parseBracket(part.trim())) }];
  }
  const key = /^'([^']*)'$/.exec(text)?.[1];
  if (key !== undefined) return parseJsonPath(`.${key}`);
  const numbers = /^(-?\d*)(?::(-?\d*))?(?::(-?\d*))?$/.exec(text === '*' ? ':' : text);
  if (!numbers) throw new SyntaxError(`invalid array index ${text}`);
  const [, first = '', second, third] = numbers;
  const start = first === '' ? 0 : index(first);
  return [{ type: 'slice', slice: { start, end: sliceEnd(start, second), step: step(third) } }];
}

/** The end of a slice. A single index selects one element; -1 selects up to the end. */
function sliceEnd(start: number, text: string | undefined): number | undefined {
  if (text === undefined) return start === -1 ? undefined : start + 1;
  return text === '' ? undefined : index(text);
}

function step(text: string | undefined): number {
  const value = text === undefined || text === '' ? 1 : index(text);
  if (value <= 0) throw new SyntaxError('step must be > 0');
  return value;
}

function index(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new SyntaxError(`array index ${text} is not a number`);
  return value;
}

/** Finds the `)]` of the filter at `start`; ignores parentheses in quotes. */
function filterEnd(text: string, start: number): number {
  let quote = '';
  for (let at = start; at < text.length; at++) {
    const char = text.charAt(at);
    if (quote) {
      if (char === '\\') at++;
      else if (char === quote) quote = '';
    } else if (char === '"' || char === "'") quote = char;
    else if (char === ')') {
      if (text[at + 1] !== ']') throw new SyntaxError('unclosed array expect ]');
      return at;
    }
  }
  throw new SyntaxError('unterminated filter');
}

function parseFilter(text: string): Step {
  const found = /[!<>=]+/.exec(text);
  if (!found || found.index === 0) return { type: 'exists', path: parseJsonPath(text) };
  const [operator] = found;
  if (!isComparison(operator)) throw new SyntaxError(`unrecognized filter operator ${operator}`);
  return {
    type: 'filter',
    left: parseJsonPath(text.slice(0, found.index)),
    operator,
    right: parseJsonPath(text.slice(found.index + operator.length)),
  };
}

function isComparison(operator: string): operator is Comparison {
  return COMPARISONS.has(operator);
}

function parseQuoted(text: string, start: number, steps: Step[]): number {
  const quote = text.charAt(start);
  let value = '';
  for (let at = start + 1; at < text.length; at++) {
    const char = text.charAt(at);
    if (char === quote) {
      steps.push({ type: 'literal', value });
      return at + 1;
    }
    value += char === '\\' ? text.charAt(++at) : char;
  }
  throw new SyntaxError('unterminated quoted string');
}

/** Parses a number or a boolean, which filters compare with. */
function parseWord(text: string, start: number, steps: Step[]): number {
  const word = /^[\w+-][\w.]*/.exec(text.slice(start))?.[0] ?? text.charAt(start);
  if (word === 'true' || word === 'false') steps.push({ type: 'literal', value: word === 'true' });
  else if (/^[+-]?(\d+\.?\d*|\.\d+)$/.test(word)) {
    steps.push({ type: 'literal', value: Number(word) });
  } else throw new SyntaxError(`unrecognized ${JSON.stringify(word)}`);
  return start + word.length;
}

/** Number of values that one evaluation may visit. Paths such as `..*..*` multiply it. */
const MAX_VISITS = 100_000;

/**
 * Returns the values that `path` selects in `root`. An absent field selects nothing.
 *
 * @returns undefined if the path does not fit `root` (an index out of bounds, a filter on a value
 *   that is not an array, a comparison of incomparable values), or if it visits too many values
 */
export function evaluateJsonPath(path: JsonPath, root: unknown): readonly unknown[] | undefined {
  return new Evaluation().walk(path, [root]);
}

/** One evaluation and its budget. All methods return undefined if the path does not fit. */
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

  /** All descendants of the inputs that have children themselves, parents before children. */
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

/** Like `flatMap`, but returns undefined if any call returns undefined. */
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

/** Compares two values. Returns undefined if their types differ or have no such order. */
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
