import { concatBytes, utf8Bytes, utf8Text } from '../../util/bytes.ts';
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
      readonly operator: string;
      readonly right: JsonPath;
    }
  | { readonly type: 'text'; readonly value: string }
  /** A number or a boolean, once for each input. */
  | { readonly type: 'literal'; readonly value: number | boolean; readonly isFloat: boolean }
  /** A word, which has no meaning outside of templates. */
  | { readonly type: 'unknown' };

/** Array elements from `start` up to but not including `end`; negative numbers count from the end. */
interface Slice {
  readonly start: number;
  /** Undefined for the end of the array. */
  readonly end: number | undefined;
  readonly step: number;
}

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
    const rest = text.slice(at, at + 3);
    if (rest === '[?(') {
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
      if (/^[\p{L}\p{Nd}_]/u.test(text.slice(at, at + 2))) at = parseField(text, at, steps);
    } else if (rest.startsWith('.')) at = parseField(text, at + 1, steps);
    else if (rest.startsWith('[')) {
      const end = text.indexOf(']', at);
      const inside = text.slice(at + 1, end);
      if (end < 0 || inside.includes('\n')) throw new SyntaxError('unterminated array');
      for (const step of parseBracket(inside)) steps.push(step);
      at = end + 1;
    } else if (/^["']/.test(rest)) at = parseQuoted(text, at, steps);
    else if (/^[ @$]/.test(rest)) at++;
    else at = parseWord(text, at, steps);
  }
  return steps;
}

/** Characters that end a name, unless they are escaped. */
const TERMINATOR = /[ \t\r\n.,[\]$@{}]/;

function parseField(text: string, start: number, steps: Step[]): number {
  let end = start;
  while (end < text.length && !TERMINATOR.test(text.charAt(end))) {
    end += text[end] === '\\' ? 2 : 1;
  }
  if (end > text.length) throw new SyntaxError('unclosed action');
  const name = text.slice(start, end);
  steps.push(
    name === '*' ? { type: 'wildcard' } : { type: 'field', name: name.replaceAll('\\', '') },
  );
  return end;
}

function parseBracket(text: string): JsonPath {
  const alternatives = text.split(',');
  if (alternatives.length > 1) {
    const paths = alternatives.map((part) => parseBracket(part.replaceAll(/^ +| +$/g, '')));
    return [{ type: 'union', paths }];
  }
  const key = /^'([^']*)'$/.exec(text)?.[1];
  if (key !== undefined) return parseJsonPath(`.${key}`);
  const numbers = /^(-?\d*)(?::(-?\d*))?(?::(-?\d*))?$/.exec(text === '*' ? ':' : text);
  if (!numbers) throw new SyntaxError(`invalid array index ${text}`);
  const [, first = '', second, third = ''] = numbers;
  const start = first === '' ? 0 : index(first);
  const step = third === '' ? 1 : index(third);
  return [{ type: 'slice', slice: { start, end: sliceEnd(start, second), step } }];
}

/** The end of a slice. A single index selects one element; -1 selects up to the end. */
function sliceEnd(start: number, text: string | undefined): number | undefined {
  if (text === undefined) return start === -1 ? undefined : start + 1;
  return text === '' ? undefined : index(text);
}

function index(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new SyntaxError(`array index ${text} is not a number`);
  return value;
}

/** Finds the `)]` of the filter at `start`; ignores parentheses in quotes, of which upstream knows one pair. */
function filterEnd(text: string, start: number): number {
  let quote = '';
  let isClosed = false;
  for (let at = start; at < text.length; at++) {
    const char = text.charAt(at);
    if (char === '\n') break;
    if (char === '"' || char === "'") {
      if (quote === '') quote = char;
      else if (char === quote && text[at - 1] !== '\\') isClosed = true;
    } else if (char === ')' && (quote === '' || isClosed)) {
      if (text[at + 1] !== ']') throw new SyntaxError('unclosed array expect ]');
      return at;
    }
  }
  throw new SyntaxError('unterminated filter');
}

function parseFilter(text: string): Step {
  const [, left, operator = '', right = ''] = /^([^!<>=]+)([!<>=]+)([^\n]+)$/.exec(text) ?? [];
  if (left === undefined) return { type: 'exists', path: parseJsonPath(text) };
  return { type: 'filter', left: parseJsonPath(left), operator, right: parseJsonPath(right) };
}

/** A text ends at a quote without a backslash before it. */
function parseQuoted(text: string, start: number, steps: Step[]): number {
  const quote = text.charAt(start);
  let end = start + 1;
  while (text[end] !== quote || text[end - 1] === '\\') {
    if (end >= text.length || text[end] === '\n') {
      throw new SyntaxError('unterminated quoted string');
    }
    end++;
  }
  steps.push({ type: 'text', value: unquoted(text.slice(start + 1, end), quote) });
  return end + 1;
}

const ESCAPE =
  /\\(?:([abfnrtv\\'"])|x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|([0-7]{3}))|\\/g;

/** Resolves the escapes of Go. */
function unquoted(text: string, quote: string): string {
  const bytes: Uint8Array[] = [];
  let from = 0;
  for (const { 0: whole, index: at, ...groups } of text.matchAll(ESCAPE)) {
    bytes.push(utf8Bytes(text.slice(from, at)));
    from = at + whole.length;
    const [character, byte, short, long, octal] = [1, 2, 3, 4, 5].map((each) => groups[each]);
    const code = Number.parseInt(
      byte ?? short ?? long ?? octal ?? '0',
      octal === undefined ? 16 : 8,
    );
    const isByte = byte !== undefined || octal !== undefined;
    const isWrong =
      whole === '\\' ||
      (/["']/.test(character ?? '') && character !== quote) ||
      code > (isByte ? 0xff : 0x10ffff) ||
      (code >= 0xd800 && code <= 0xdfff);
    if (isWrong) throw new SyntaxError(`invalid escape ${whole}`);
    if (isByte) bytes.push(Uint8Array.of(code));
    else
      bytes.push(
        utf8Bytes(
          character === undefined
            ? String.fromCodePoint(code)
            : (CONTROLS.get(character) ?? character),
        ),
      );
  }
  bytes.push(utf8Bytes(text.slice(from)));
  return utf8Text(concatBytes(bytes));
}

const CONTROLS: ReadonlyMap<string, string> = new Map([
  ['a', '\u0007'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
  ['v', '\v'],
]);

/** Parses a number, a boolean or another word. */
function parseWord(text: string, start: number, steps: Step[]): number {
  const number = /^[+\-\p{Nd}][\p{Nd}.]*/u.exec(text.slice(start))?.[0];
  if (number !== undefined) {
    if (!/^[+-]?(?:\d+\.?\d*|\.\d+)$/.test(number)) {
      throw new SyntaxError(`cannot parse number ${number}`);
    }
    const value = Number(number);
    const isFloat = number.includes('.') || Math.abs(value) >= 2 ** 63;
    steps.push({ type: 'literal', value, isFloat });
    return start + number.length;
  }
  const word = /^[\p{L}_][^ \t\r\n.,[\]$@{}]*/u.exec(text.slice(start))?.[0];
  if (word === undefined) throw new SyntaxError(`unrecognized ${JSON.stringify(text[start])}`);
  const isBoolean = word === 'true' || word === 'false';
  steps.push(
    isBoolean ? { type: 'literal', value: word === 'true', isFloat: false } : { type: 'unknown' },
  );
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
  const { values, isFit } = new Evaluation().walk(path, [root]);
  return isFit ? values : undefined;
}

/** The selected values. If the path does not fit, those before the step that does not. */
interface Selected {
  readonly values: readonly unknown[];
  readonly isFit: boolean;
}

const fit = (values: readonly unknown[]): Selected => ({ values, isFit: true });
const unfit = (values: readonly unknown[]): Selected => ({ values, isFit: false });

/** One evaluation and its budget. */
class Evaluation {
  #visitsLeft = MAX_VISITS;

  walk(path: JsonPath, inputs: readonly unknown[]): Selected {
    let selected = fit(inputs);
    for (const step of path) {
      selected = this.#step(step, selected.values);
      if (!selected.isFit) break;
      this.#visitsLeft -= selected.values.length;
      if (this.#visitsLeft < 0) return unfit([]);
    }
    return selected;
  }

  #step(step: Step, inputs: readonly unknown[]): Selected {
    switch (step.type) {
      case 'field':
        return fit(
          inputs.filter((value) => hasField(value, step.name)).map((value) => value[step.name]),
        );
      case 'wildcard':
        return fit(inputs.flatMap(children));
      case 'descendants':
        return this.#descendants(inputs);
      case 'slice':
        return slices(inputs, step.slice);
      case 'union': {
        const all = step.paths.map((path) => this.walk(path, inputs));
        return all.every(({ isFit }) => isFit)
          ? fit(all.flatMap(({ values }) => values))
          : unfit(inputs);
      }
      case 'exists':
        if (!inputs.every(Array.isArray)) return unfit(inputs);
        return fit(
          inputs.flat().filter((element) => this.walk(step.path, [element]).values.length > 0),
        );
      case 'filter':
        return this.#filter(step, inputs);
      case 'text':
        return fit([step.value]);
      case 'literal':
        return fit(inputs.map(() => step.value));
      case 'unknown':
        return unfit(inputs);
      default:
        return assertNever(step);
    }
  }

  /** All descendants of the inputs that have children themselves, parents before children. */
  #descendants(inputs: readonly unknown[]): Selected {
    const found: unknown[] = [];
    const pending = [...inputs].reverse();
    while (pending.length > 0) {
      if (--this.#visitsLeft < 0) return unfit([]);
      const value = pending.pop();
      if (typeof value === 'string') {
        if (value !== '') found.push(value);
        continue;
      }
      const below = children(value);
      if (below.length === 0) continue;
      found.push(value);
      for (const child of below.toReversed()) pending.push(child);
    }
    return fit(found);
  }

  #filter(
    { left, operator, right }: Extract<Step, { type: 'filter' }>,
    inputs: readonly unknown[],
  ): Selected {
    const passed: unknown[] = [];
    for (const input of inputs) {
      if (!Array.isArray(input)) return unfit(inputs);
      for (const element of input) {
        const lefts = this.walk(left, [element]);
        if (!lefts.isFit || lefts.values.length > 1) return unfit(inputs);
        if (lefts.values.length === 0) continue;
        const rights = this.walk(right, [element]);
        if (!rights.isFit || rights.values.length > 1) return unfit(inputs);
        if (rights.values.length === 0) continue;
        const [a, b] = [lefts.values[0], rights.values[0]];
        const holds = kindOf(a, left) === kindOf(b, right) ? compare(a, operator, b) : undefined;
        if (holds === undefined) return unfit(passed);
        if (holds) passed.push(element);
      }
    }
    return fit(passed);
  }
}

/** Go does not compare whole numbers with others. */
function kindOf(value: unknown, path: JsonPath): string {
  if (typeof value !== 'number') return typeof value;
  const last = path.at(-1);
  const isFloat = last?.type === 'literal' ? last.isFloat : !Number.isInteger(value);
  return isFloat || Math.abs(value) >= 2 ** 63 ? 'float' : 'integer';
}

function hasField(value: unknown, name: string): value is Readonly<Record<string, unknown>> {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    Object.hasOwn(value, name)
  );
}

/** Those of a text are its bytes, as in Go. */
function children(value: unknown): readonly unknown[] {
  if (typeof value === 'string') return [...utf8Bytes(value)];
  return typeof value === 'object' && value !== null ? Object.values(value) : [];
}

function slices(inputs: readonly unknown[], slice: Slice): Selected {
  const found: unknown[] = [];
  for (const value of inputs) {
    if (value === null) continue;
    if (!Array.isArray(value)) return unfit(inputs);
    const { length } = value;
    const start = slice.start < 0 ? slice.start + length : slice.start;
    const end = slice.end === undefined ? length : slice.end < 0 ? slice.end + length : slice.end;
    // As upstream, also for the lists after it.
    if (start === end) return fit(found);
    if (start < 0 || start > end || start >= length || end > length || slice.step <= 0) {
      return unfit(inputs);
    }
    for (let at = start; at < end; at += slice.step) found.push(value[at]);
  }
  return fit(found);
}

/** Compares two values of one kind. Returns undefined if they have no such order. */
function compare(left: unknown, operator: string, right: unknown): boolean | undefined {
  const isOrdered = typeof left === 'string' || typeof left === 'number';
  if (!isOrdered && typeof left !== 'boolean') return undefined;
  if (operator === '==') return left === right;
  if (operator === '!=') return left !== right;
  if (typeof left === 'string' && typeof right === 'string') return inOrder(left, operator, right);
  if (typeof left === 'number' && typeof right === 'number') return inOrder(left, operator, right);
  return undefined;
}

function inOrder<T extends string | number>(
  left: T,
  operator: string,
  right: T,
): boolean | undefined {
  switch (operator) {
    case '<':
      return left < right;
    case '<=':
      return left <= right;
    case '>':
      return left > right;
    case '>=':
      return left >= right;
    default:
      return undefined;
  }
}
