/** A JSONPath, ready to be evaluated. */
export type JsonPath = readonly Step[];

/** What one step does with each value it is given. */
export type Step =
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

/** Array elements from `start` to before `end`; negative numbers count from the end. */
export interface Slice {
  readonly start: number;
  /** Absent: to the end. */
  readonly end: number | undefined;
  readonly step: number;
}

export type Comparison = '==' | '!=' | '<' | '<=' | '>' | '>=';

const COMPARISONS: ReadonlySet<string> = new Set(['==', '!=', '<', '<=', '>', '>=']);

/**
 * Parses a JSONPath as printer columns may have it: `.spec.replicas`, `.metadata.labels['app']`,
 * `.status.conditions[?(@.type=="Ready")].status`, `.items[0]`, `[1:3]`, `[*]`, `..name`. The
 * dialect is that of kubectl's `-o jsonpath`, without its templates (`{range}`): a dot within
 * quotes still separates fields unless it is escaped, `['app\.kubernetes\.io/name']`.
 *
 * @throws {SyntaxError} saying what was not understood
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
      // What follows is a field without a dot of its own (`..name`), or any other step (`..[0]`).
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

/** A single index ends one further on; before the end of the array, that is the end itself. */
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

/** Where the `)]` of a filter is that begins at `start`; parentheses in quotes do not count. */
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

/** Numbers and booleans, for filters to compare with. */
function parseWord(text: string, start: number, steps: Step[]): number {
  const word = /^[\w+-][\w.]*/.exec(text.slice(start))?.[0] ?? text.charAt(start);
  if (word === 'true' || word === 'false') steps.push({ type: 'literal', value: word === 'true' });
  else if (/^[+-]?(\d+\.?\d*|\.\d+)$/.test(word)) {
    steps.push({ type: 'literal', value: Number(word) });
  } else throw new SyntaxError(`unrecognized ${JSON.stringify(word)}`);
  return start + word.length;
}
