/** Every quantity is a whole number of these: servers round up to them. */
const NANO = 10n ** 9n;

const DECIMAL_SUFFIXES = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E'] as const;
const BINARY_SUFFIXES = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'] as const;

/** Far more than any resource has, and little enough to calculate with. */
const MAX_LENGTH = 64;
const MAX_EXPONENT = 30;

/** What a server says of a quantity that is none. */
export const NOT_A_QUANTITY: string =
  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

interface Quantity {
  /** The amount in units of 10^-9. */
  readonly nanos: bigint;
  readonly format: 'decimal' | 'binary' | 'exponent';
}

/** Negative if `a` is less than `b`; a quantity that does not parse compares as nothing. */
export function compareQuantities(a: string, b: string): number {
  const left = parse(a)?.nanos ?? 0n;
  const right = parse(b)?.nanos ?? 0n;
  return left < right ? -1 : left > right ? 1 : 0;
}

/**
 * The one text that the API has for a quantity: `0.5` is `500m`, `1024Mi` is `1Gi`, `1000m` is `1`.
 * Undefined if it is no quantity.
 */
export function canonicalQuantity(text: string): string | undefined {
  const quantity = parse(text.trim());
  return quantity && format(quantity);
}

/** The amount in units of 10^-9, rounded up; undefined if it is no quantity. */
export function quantityNanos(text: string): bigint | undefined {
  return parse(text)?.nanos;
}

/** Returns `a + b` in the format of `a`; of `b` if `a` is 0. A text that is no quantity counts as 0. */
export function addQuantities(a: string, b: string): string {
  return sum(parse(a), parse(b));
}

/** Returns `a - b` in the format of `a`. A text that is no quantity counts as 0. */
export function subtractQuantities(a: string, b: string): string {
  const subtrahend = parse(b);
  return sum(parse(a), subtrahend && { ...subtrahend, nanos: -subtrahend.nanos });
}

function sum(a: Quantity | undefined, b: Quantity | undefined): string {
  const nanos = (a?.nanos ?? 0n) + (b?.nanos ?? 0n);
  return format({ nanos, format: (a?.nanos ? a : b)?.format ?? 'decimal' });
}

function parse(text: string): Quantity | undefined {
  if (text.length > MAX_LENGTH) return undefined;
  const [, sign, whole = '', fraction = '', suffix = ''] =
    /^([+-]?)(\d*)(?:\.(\d*))?([a-zA-Z]*(?:(?<=[eE])[+-]?\d+)?)$/.exec(text) ?? [];
  if (sign === undefined || whole + fraction === '') return undefined;
  const scale = scaleOf(suffix);
  if (!scale) return undefined;
  const numerator = BigInt(whole + fraction) * scale.numerator * NANO;
  const denominator = 10n ** BigInt(fraction.length) * scale.denominator;
  const roundedUp = (numerator + denominator - 1n) / denominator;
  return { nanos: sign === '-' ? -roundedUp : roundedUp, format: scale.format };
}

interface Scale {
  readonly numerator: bigint;
  readonly denominator: bigint;
  readonly format: Quantity['format'];
}

function scaleOf(suffix: string): Scale | undefined {
  const binary = BINARY_SUFFIXES.findIndex((known) => known === suffix && known !== '');
  if (binary > 0) {
    return { numerator: 1024n ** BigInt(binary), denominator: 1n, format: 'binary' };
  }
  const decimal = DECIMAL_SUFFIXES.findIndex((known) => known === suffix);
  if (decimal >= 0) return powerOfTen((decimal - 3) * 3, 'decimal');
  const exponent = Number(/^[eE]([+-]?\d+)$/.exec(suffix)?.[1] ?? Number.NaN);
  return Math.abs(exponent) <= MAX_EXPONENT ? powerOfTen(exponent, 'exponent') : undefined;
}

function powerOfTen(exponent: number, format: Quantity['format']): Scale {
  const power = 10n ** BigInt(Math.abs(exponent));
  return exponent < 0
    ? { numerator: 1n, denominator: power, format }
    : { numerator: power, denominator: 1n, format };
}

function format({ nanos, format }: Quantity): string {
  if (nanos === 0n) return '0';
  const amount = nanos < 0n ? -nanos : nanos;
  const sign = nanos < 0n ? '-' : '';
  const isWhole = amount % NANO === 0n;
  if (format === 'binary' && isWhole && amount / NANO >= 1024n) {
    const [mantissa, power] = factorOut(amount / NANO, 1024n, BINARY_SUFFIXES.length - 1);
    return `${sign}${mantissa}${BINARY_SUFFIXES[power]}`;
  }
  const [mantissa, power] = factorOut(amount, 1000n, DECIMAL_SUFFIXES.length - 1);
  if (format !== 'exponent') return `${sign}${mantissa}${DECIMAL_SUFFIXES[power]}`;
  const exponent = (power - 3) * 3;
  return `${sign}${mantissa}${exponent === 0 ? '' : `e${exponent}`}`;
}

/** `amount` without as many factors of `base` as it has, and how many those are. */
function factorOut(amount: bigint, base: bigint, most: number): [mantissa: bigint, power: number] {
  let mantissa = amount;
  let power = 0;
  while (power < most && mantissa % base === 0n) {
    mantissa /= base;
    power++;
  }
  return [mantissa, power];
}
