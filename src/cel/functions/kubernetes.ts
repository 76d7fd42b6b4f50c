import { NOT_A_QUANTITY, quantityNanos } from '../../api/quantity.ts';
import { labelValueProblems, nameProblems, qualifiedNameProblems } from '../../api/object-names.ts';
import { hasFormat } from '../../api/formats.ts';
import type { Overload, Parameter } from '../values/overload.ts';
import {
  bool,
  costs,
  global,
  instanceOf,
  int,
  member,
  stringParameter,
} from '../values/overload.ts';
import type { CelType } from '../values/type.ts';
import { BOOL, DOUBLE, INT, STRING, listOf, optionalOf } from '../values/type.ts';
import type { Result } from '../values/value.ts';
import { EvaluationError, List, Opaque, Optional } from '../values/value.ts';

const QUANTITY: CelType = { kind: 'opaque', name: 'kubernetes.Quantity' };
const FORMAT: CelType = { kind: 'opaque', name: 'kubernetes.NamedFormat' };
const SEMVER: CelType = { kind: 'opaque', name: 'kubernetes.Semver' };

/** Extensions of Kubernetes: quantities, named formats, semantic versions, keys of JSON patches. */
export function kubernetes(): Overload[] {
  return [
    ...quantities(),
    ...formats(),
    ...versions(),
    global('jsonpatch.escapeKey', [stringParameter], STRING, (text) =>
      text.replaceAll('~', '~0').replaceAll('/', '~1'),
    ),
  ];
}

class Quantity extends Opaque {
  readonly type = QUANTITY;
  readonly nanos: bigint;

  constructor(nanos: bigint) {
    super();
    this.nanos = nanos;
  }

  get identity(): string {
    return String(this.nanos);
  }

  /** The value as a 64-bit integer, or undefined if it does not fit. */
  get integer(): bigint | undefined {
    const whole = this.nanos / NANO;
    return this.nanos % NANO === 0n && BigInt.asIntN(64, whole) === whole ? whole : undefined;
  }
}

const NANO = 10n ** 9n;

function quantities(): Overload[] {
  const quantity = instanceOf(QUANTITY, Quantity);
  const traversed = { cost: costs.traverse(0) };
  const order = (a: Quantity, b: Quantity) =>
    a.nanos < b.nanos ? -1n : a.nanos > b.nanos ? 1n : 0n;
  return [
    global('quantity', [stringParameter], QUANTITY, parseQuantity, traversed),
    global(
      'isQuantity',
      [stringParameter],
      BOOL,
      (text) => parseQuantity(text) instanceof Quantity,
      traversed,
    ),
    global('sign', [quantity], INT, (a) => order(a, new Quantity(0n))),
    member('isGreaterThan', [quantity, quantity], BOOL, (a, b) => a.nanos > b.nanos),
    member('isLessThan', [quantity, quantity], BOOL, (a, b) => a.nanos < b.nanos),
    member('compareTo', [quantity, quantity], INT, order),
    member('asApproximateFloat', [quantity], DOUBLE, ({ nanos }) => Number(nanos) / Number(NANO)),
    member('isInteger', [quantity], BOOL, ({ integer }) => integer !== undefined),
    member(
      'asInteger',
      [quantity],
      INT,
      ({ integer }) => integer ?? new EvaluationError('cannot convert value to integer'),
    ),
    member('add', [quantity, quantity], QUANTITY, (a, b) => new Quantity(a.nanos + b.nanos)),
    member('add', [quantity, int], QUANTITY, (a, b) => new Quantity(a.nanos + b * NANO)),
    member('sub', [quantity, quantity], QUANTITY, (a, b) => new Quantity(a.nanos - b.nanos)),
    member('sub', [quantity, int], QUANTITY, (a, b) => new Quantity(a.nanos - b * NANO)),
  ];
}

function parseQuantity(text: string): Quantity | EvaluationError {
  const nanos = quantityNanos(text);
  return nanos === undefined ? new EvaluationError(NOT_A_QUANTITY) : new Quantity(nanos);
}

class NamedFormat extends Opaque {
  readonly type = FORMAT;
  readonly identity: string;
  readonly problems: (text: string) => readonly string[];
  /** Length of an equivalent regular expression, for the cost. */
  override readonly size: number;

  constructor(name: string, size: number, problems: (text: string) => readonly string[]) {
    super();
    this.identity = name;
    this.size = size;
    this.problems = problems;
  }
}

/** The check of a name prefix, which may end with a dash. */
function prefix(
  problems: (text: string) => readonly string[],
): (text: string) => readonly string[] {
  return (text) => problems(text.length > 1 && text.endsWith('-') ? `${text.slice(0, -1)}a` : text);
}

function schemaFormat(name: string, problem: string): (text: string) => readonly string[] {
  return (text) => (hasFormat(name, text) ? [] : [problem]);
}

const label = (text: string) => nameProblems(text, 'dns1123Label');
const subdomain = (text: string) => nameProblems(text, 'dns1123Subdomain');
const label1035 = (text: string) => nameProblems(text, 'dns1035Label');

const FORMATS: ReadonlyMap<string, NamedFormat> = new Map(
  (
    [
      ['dns1123Label', 30, label],
      ['dns1123Subdomain', 60, subdomain],
      ['dns1035Label', 30, label1035],
      ['qualifiedName', 60, qualifiedNameProblems],
      ['dns1123LabelPrefix', 30, prefix(label)],
      ['dns1123SubdomainPrefix', 60, prefix(subdomain)],
      ['dns1035LabelPrefix', 30, prefix(label1035)],
      ['labelValue', 40, labelValueProblems],
      ['uri', 128, schemaFormat('uri', 'invalid URI for request')],
      ['uuid', 100, schemaFormat('uuid', 'does not match the UUID format')],
      ['byte', 84, schemaFormat('byte', 'invalid base64')],
      ['date', 128, schemaFormat('date', 'invalid date')],
      ['datetime', 128, schemaFormat('datetime', 'invalid datetime')],
    ] as const
  ).map(([name, size, problems]) => [name, new NamedFormat(name, size, problems)]),
);

function formats(): Overload[] {
  const format = instanceOf(FORMAT, NamedFormat);
  return [
    ...Array.from(FORMATS, ([name, value]) => global(`format.${name}`, [], FORMAT, () => value)),
    global(
      'format.named',
      [stringParameter],
      optionalOf(FORMAT),
      (name) => new Optional(FORMATS.get(name)),
    ),
    member(
      'validate',
      [format, stringParameter],
      optionalOf(listOf(STRING)),
      ({ problems }, text) => {
        const found = problems(text);
        return found.length === 0 ? Optional.none : new Optional(List.of([...found]));
      },
      {
        cost: ([, text]) => Math.ceil((1 + (text?.count ?? 0)) * 0.1) * 32,
        estimatedCost: ([, text]) => Math.ceil((text?.count ?? 0) * 0.1) * 32,
      },
    ),
  ];
}

class Semver extends Opaque {
  readonly type = SEMVER;
  readonly numbers: readonly [major: bigint, minor: bigint, patch: bigint];
  readonly prerelease: readonly string[];

  constructor(numbers: readonly [bigint, bigint, bigint], prerelease: readonly string[]) {
    super();
    this.numbers = numbers;
    this.prerelease = prerelease;
  }

  get identity(): string {
    return `${this.numbers.join('.')}-${this.prerelease.join('.')}`;
  }
}

function versions(): Overload[] {
  const semver = instanceOf(SEMVER, Semver);
  const traversed = { cost: costs.traverse(0) };
  const normalizing: readonly [Parameter<string>, Parameter<boolean>] = [stringParameter, bool];
  const parsed = (text: string, normalize: boolean): Result =>
    parseSemver(text, normalize) ?? new EvaluationError(`Invalid version: ${text}`);
  const isValid = (text: string, normalize: boolean) => parseSemver(text, normalize) !== undefined;
  return [
    global('semver', [stringParameter], SEMVER, (text) => parsed(text, false), traversed),
    global('semver', normalizing, SEMVER, parsed, traversed),
    global('isSemver', [stringParameter], BOOL, (text) => isValid(text, false), traversed),
    global('isSemver', normalizing, BOOL, isValid, traversed),
    member('major', [semver], INT, ({ numbers }) => numbers[0]),
    member('minor', [semver], INT, ({ numbers }) => numbers[1]),
    member('patch', [semver], INT, ({ numbers }) => numbers[2]),
    member('isGreaterThan', [semver, semver], BOOL, (a, b) => compareSemver(a, b) > 0),
    member('isLessThan', [semver, semver], BOOL, (a, b) => compareSemver(a, b) < 0),
    member('compareTo', [semver, semver], INT, (a, b) => BigInt(compareSemver(a, b))),
  ];
}

const NUMBER = '(0|[1-9]\\d{0,18})';
const SEMVER_TEXT = new RegExp(
  `^${NUMBER}\\.${NUMBER}\\.${NUMBER}(?:-([0-9A-Za-z.-]+))?(?:\\+[0-9A-Za-z.-]+)?$`,
);

function parseSemver(text: string, normalize: boolean): Semver | undefined {
  const source = normalize ? normalized(text) : text;
  const [, major = '', minor = '', patch = '', prerelease = ''] = SEMVER_TEXT.exec(source) ?? [];
  if (major === '') return undefined;
  const parts = prerelease === '' ? [] : prerelease.split('.');
  if (parts.some((part) => part === '' || /^0\d+$/.test(part))) return undefined;
  return new Semver([BigInt(major), BigInt(minor), BigInt(patch)], parts);
}

/** Normalizes a version: `v1.02` is `1.2.0`. */
function normalized(text: string): string {
  const [core = '', ...rest] = text.replace(/^v/, '').split(/(?=[+-])/);
  const parts = core.split('.').map((part) => part.replace(/^0+(?=\d)/, ''));
  if (parts.length < 3 && rest.length > 0) return '';
  while (parts.length < 3) parts.push('0');
  return parts.join('.') + rest.join('');
}

function compareSemver(a: Semver, b: Semver): -1 | 0 | 1 {
  for (const [index, number] of a.numbers.entries()) {
    const other = b.numbers[index] ?? 0n;
    if (number !== other) return number < other ? -1 : 1;
  }
  if (a.prerelease.length === 0 || b.prerelease.length === 0) {
    return a.prerelease.length === b.prerelease.length ? 0 : a.prerelease.length === 0 ? 1 : -1;
  }
  for (const [index, part] of a.prerelease.entries()) {
    const other = b.prerelease[index];
    if (other === undefined) return 1;
    if (part !== other) return comparePart(part, other);
  }
  return a.prerelease.length < b.prerelease.length ? -1 : 0;
}

/** Compares prerelease identifiers. Numbers precede words. */
function comparePart(a: string, b: string): -1 | 1 {
  const [left, right] = [/^\d{1,30}$/.test(a), /^\d{1,30}$/.test(b)];
  if (left && right) return BigInt(a) < BigInt(b) ? -1 : 1;
  if (left !== right) return left ? -1 : 1;
  return a < b ? -1 : 1;
}
