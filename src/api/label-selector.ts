import { didYouMean } from '../util/did-you-mean.ts';
import { toHex } from '../util/bytes.ts';
import { sha256 } from '../util/sha256.ts';
import { labelValueProblems, qualifiedNameProblems } from './object-names.ts';

/** `meta/v1` LabelSelector, the form in objects. */
export interface LabelSelector {
  matchLabels?: Readonly<Record<string, string>>;
  matchExpressions?: readonly {
    readonly key: string;
    readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
    readonly values?: readonly string[];
  }[];
}

/**
 * Returns a selector in the form of URLs. Accepts that form, and the form in objects. An empty selector selects
 * everything, as does an absent one.
 *
 * @throws {TypeError} if the selector has an unknown field
 * @throws {SyntaxError} if a selector in the form of objects is malformed
 */
export function labelSelectorText(
  selector: string | LabelSelector | undefined,
): string | undefined {
  if (selector === undefined || typeof selector === 'string') return selector;
  // A misspelt field would select everything.
  const { matchLabels: _, matchExpressions: __, ...unknown } = selector;
  const [field] = Object.keys(unknown);
  if (field !== undefined) {
    const suggestion = didYouMean(field, ['matchLabels', 'matchExpressions']);
    throw new TypeError(`labelSelector: unknown option ${field}${suggestion}`);
  }
  return formatLabelSelector(selector);
}

/** A requirement of a selector. A selector matches if all its requirements do. */
export type Requirement =
  | { readonly operator: 'in' | 'notin'; readonly key: string; readonly values: readonly string[] }
  | { readonly operator: 'exists' | 'absent'; readonly key: string }
  | { readonly operator: 'gt' | 'lt'; readonly key: string; readonly value: bigint };

type Labels = Readonly<Record<string, string>> | undefined;

/**
 * Parses the form in URLs and in `kubectl -l`: `app=web,tier in (a, b),!legacy`. The grammar is that of
 * apimachinery. An empty string selects everything.
 *
 * @throws {SyntaxError} with the unexpected token
 *
 * @example
 * ```ts
 * import { matchesLabels, parseLabelSelector } from 'crd-controller/objects';
 *
 * const selector = parseLabelSelector('app in (web, api), !canary');
 * console.log(matchesLabels(selector, { app: 'web' })); // prints: true
 * ```
 */
export function parseLabelSelector(text: string): Requirement[] {
  const requirements: Requirement[] = [];
  const scanner = new Scanner(text);
  if (scanner.peek() === '') return requirements;
  for (;;) {
    requirements.push(parseRequirement(scanner));
    const separator = scanner.next();
    if (separator === '') return requirements;
    if (separator !== ',') {
      throw new SyntaxError(`found '${separator}', expected: ',' or 'end of string'`);
    }
    const ahead = scanner.peek();
    if (!isWord(ahead) && ahead !== '!') {
      throw new SyntaxError(`found '${ahead}', expected: identifier after ','`);
    }
  }
}

/**
 * Converts the form in objects to the form in URLs.
 *
 * @throws {SyntaxError} if a key or value is not valid in a label, since it could have another meaning in
 *   the URL form, or if an operator lacks its values
 *
 * @example
 * ```ts
 * import { formatLabelSelector } from 'crd-controller/objects';
 *
 * console.log(formatLabelSelector({ matchLabels: { app: 'web' } })); // prints: app=web
 * ```
 */
export function formatLabelSelector(selector: LabelSelector): string {
  const equalities = Object.entries(selector.matchLabels ?? {}).map(
    ([key, value]) => `${checkedKey(key)}=${checkedValue(value)}`,
  );
  const expressions = (selector.matchExpressions ?? []).map(({ key, operator, values = [] }) => {
    switch (operator) {
      case 'In':
        return `${checkedKey(key)} in (${checkedValues(values)})`;
      case 'NotIn':
        return `${checkedKey(key)} notin (${checkedValues(values)})`;
      case 'Exists':
        return checkedKey(key);
      case 'DoesNotExist':
        return `!${checkedKey(key)}`;
    }
  });
  return [...equalities, ...expressions].join(',');
}

function checkedKey(key: string): string {
  requireLabelKey(key);
  return key;
}

function checkedValue(value: string): string {
  requireLabelValue(value);
  return value;
}

function checkedValues(values: readonly string[]): string {
  if (values.length === 0) {
    throw new SyntaxError(
      "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
    );
  }
  return values.map(checkedValue).join(',');
}

/** Converts the form in objects. Returns undefined if it is missing or malformed: it selects nothing. */
export function requirementsOf(selector: object | undefined): Requirement[] | undefined {
  if (!selector) return undefined;
  try {
    return parseLabelSelector(formatLabelSelector(selector));
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Reports whether a selector in the form of objects matches. A missing or malformed one matches nothing. */
export function selects(selector: object | undefined, labels: Labels): boolean {
  const requirements = requirementsOf(selector);
  return requirements !== undefined && matchesLabels(requirements, labels);
}

/** Reports whether `labels` match all requirements. */
export function matchesLabels(requirements: readonly Requirement[], labels: Labels): boolean {
  return requirements.every((requirement) => {
    const { operator, key } = requirement;
    const has = labels !== undefined && Object.hasOwn(labels, key);
    const value = has ? (labels[key] ?? '') : '';
    switch (operator) {
      case 'in':
        return has && requirement.values.includes(value);
      case 'notin':
        return !has || !requirement.values.includes(value);
      case 'exists':
        return has;
      case 'absent':
        return !has;
      case 'gt':
      case 'lt': {
        const number = has ? parseInt64(value) : undefined;
        if (number === undefined) return false;
        return operator === 'gt' ? number > requirement.value : number < requirement.value;
      }
    }
  });
}

function parseRequirement(scanner: Scanner): Requirement {
  const negated = scanner.peek() === '!';
  if (negated) scanner.next();
  const key = scanner.next();
  if (!isWord(key)) {
    throw negated
      ? scanner.unexpected(key, 'identifier')
      : new SyntaxError(`found '${key}', expected: !, identifier, or 'end of string'`);
  }
  requireLabelKey(key, `${OF_REQUIREMENT}: <nil>`);
  if (negated) return { operator: 'absent', key };
  switch (scanner.peek()) {
    case '':
    case ',':
      return { operator: 'exists', key };
    default:
      return parseOperation(scanner, key);
  }
}

function parseOperation(scanner: Scanner, key: string): Requirement {
  const operator = scanner.next();
  switch (operator) {
    case '=':
    case '==':
      return { operator: 'in', key, values: [parseExactValue(scanner, key)] };
    case '!=':
      return { operator: 'notin', key, values: [parseExactValue(scanner, key)] };
    case 'in':
    case 'notin':
      return { operator, key, values: parseValues(scanner, key) };
    case '>':
    case '<': {
      const text = parseExactValue(scanner, key);
      const value = parseInt64(text);
      if (value === undefined) {
        throw new SyntaxError(
          `unable to parse requirement: values[0]: Invalid value: ${JSON.stringify(text)}: for 'Gt', 'Lt' operators, the value must be an integer`,
        );
      }
      return { operator: operator === '>' ? 'gt' : 'lt', key, value };
    }
    default:
      throw scanner.unexpected(operator, 'in, notin, =, ==, !=, gt, lt');
  }
}

function parseExactValue(scanner: Scanner, key: string): string {
  const ahead = scanner.peek();
  if (ahead === '' || ahead === ',') return '';
  const value = scanner.next();
  if (!isWord(value)) throw scanner.unexpected(value, 'identifier');
  requireValues(key, [value]);
  return value;
}

/** Parses a label value as a 64-bit integer. Label values cannot have a sign. */
function parseInt64(text: string): bigint | undefined {
  if (!/^\d{1,63}$/.test(text)) return undefined;
  const number = BigInt(text);
  return number < 2n ** 63n ? number : undefined;
}

function parseValues(scanner: Scanner, key: string): string[] {
  const open = scanner.next();
  if (open !== '(') {
    throw new SyntaxError(`unable to parse requirement: found '${open}' expected: '('`);
  }
  const values: string[] = [];
  let value = '';
  for (;;) {
    const token = scanner.next();
    if (token === ')' || token === ',') {
      values.push(value);
      value = '';
      if (token !== ')') continue;
      requireValues(key, values);
      return values;
    } else if (isWord(token) && value === '') {
      value = token;
    } else {
      throw scanner.unexpected(token, value === '' ? "',', ')' or identifier" : "',' or ')'");
    }
  }
}

/** @throws {SyntaxError} unless `key` is a qualified name: `[prefix/]name` */
function requireLabelKey(key: string, at: string = 'key'): void {
  requireNone(qualifiedNameProblems(key), key, at);
}

/** @throws {SyntaxError} unless `value` is empty or a name of at most 63 characters */
export function requireLabelValue(value: string, at: string = 'values'): void {
  requireNone(labelValueProblems(value), value, at);
}

function requireNone(problems: readonly string[], value: string, at: string): void {
  if (problems.length === 0) return;
  throw new SyntaxError(`${at}: Invalid value: ${JSON.stringify(value)}: ${problems.join('; ')}`);
}

/** As apimachinery, which has no path of the selector. */
const OF_REQUIREMENT = 'unable to parse requirement';

/** @throws {SyntaxError} if a value is not valid in a label; as apimachinery, which orders them */
function requireValues(key: string, values: readonly string[]): void {
  for (const [index, value] of values.toSorted().entries()) {
    requireLabelValue(value, `${OF_REQUIREMENT}: values[${index}][${key}]`);
  }
}

function isWord(token: string): boolean {
  return token !== '' && !/^[!=<>(),]/.test(token);
}

/** White space and the symbol or word after it. */
const TOKEN = /[ \t\r\n]*(==|!=|[!=<>(),]|[^ \t\r\n!=<>(),]+)?/y;

/** Splits a selector into words and symbols, which white space may separate. */
class Scanner {
  readonly #text: string;
  #position = 0;

  constructor(text: string) {
    this.#text = text;
  }

  peek(): string {
    const position = this.#position;
    const token = this.next();
    this.#position = position;
    return token;
  }

  /** Returns the next token, or an empty string at the end. */
  next(): string {
    TOKEN.lastIndex = this.#position;
    const match = TOKEN.exec(this.#text);
    this.#position = TOKEN.lastIndex || this.#position;
    return match?.[1] ?? '';
  }

  unexpected(found: string, expected: string): SyntaxError {
    return new SyntaxError(`unable to parse requirement: found '${found}', expected: ${expected}`);
  }
}

/** Maximum length of a label value. */
const LONGEST = 63;

/**
 * Converts an object name of up to 253 characters to a label value. A name that is too long is cut and gets a
 * hash of the full name, so that different names have different label values.
 *
 * @example
 * ```ts
 * import { labelValue } from 'crd-controller';
 *
 * console.log(labelValue('web'), labelValue('w'.repeat(253)).length); // prints: web 63
 * ```
 */
export function labelValue(name: string): string {
  if (name.length <= LONGEST) return name;
  const hash = toHex(sha256(name)).slice(0, 10);
  return `${name.slice(0, LONGEST - hash.length - 1).replace(/[^A-Za-z0-9]+$/, '')}-${hash}`;
}
