/** Every quantity is a whole number of 10^-9: servers round up to them. */
const MIN_EXPONENT = -9;

const DECIMAL_SUFFIXES = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E'] as const;
const BINARY_SUFFIXES = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'] as const;

/** Most quantities, for which it is enough to know that they are some. */
const SIMPLE = /^\d{1,9}(?:[mkMGTPE]|[KMGTPE]i)?$/;
const WHOLE = /^(?:\d{1,9}[kMGTPE]?|\d{1,6}[KMG]i)$/;

/** Far more characters than any resource has, and few enough to calculate with. */
const MAX_LENGTH = 512;
/** Quantities above count as 10^1000 if they are compared. */
const MAX_EXPONENT = 1000;

/** Maximum of a quantity with a binary suffix. */
const MAX_BINARY = 2n ** 63n - 1n;

/** Number of digits that Go calculates with in 64 bits, and so keeps as they are written. */
const FAST_DIGITS = 18;

/** The error of a server for a text that is no quantity. */
export const NOT_A_QUANTITY: string =
  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

const NO_NUMBER = 'unable to parse numeric part of quantity';
const UNKNOWN_SUFFIX = "unable to parse quantity's suffix";

interface Quantity {
  /** The amount is `mantissa * 10^exponent`. */
  readonly mantissa: bigint;
  readonly exponent: number;
  readonly format: 'decimal' | 'binary' | 'exponent';
  /** The text, if a server keeps it. */
  readonly text?: string | undefined;
}

/** Negative if `a` is less than `b`; a text that is no quantity counts as 0. */
export function compareQuantities(a: string, b: string): number {
  if (a === b) return 0;
  const left = quantityNanos(a) ?? 0n;
  const right = quantityNanos(b) ?? 0n;
  return left < right ? -1 : left > right ? 1 : 0;
}

/**
 * Returns the text that a server stores for a quantity: `0.5` is `500m`, `1024Mi` is `1Gi`, `1000m` is `1`. A server
 * keeps some other forms, such as `+1`, `5.` and `007`. Undefined if it is no quantity.
 */
export function canonicalQuantity(text: string): string | undefined {
  const quantity = parse(text.trim());
  return typeof quantity === 'string' ? undefined : format(quantity);
}

/** Returns the text that a server stores in a list of resources, whose amounts it rounds up to thousandths. */
export function resourceQuantity(text: string): string | undefined {
  const quantity = parse(text.trim());
  return typeof quantity === 'string' ? undefined : format(roundedUp(quantity, -3));
}

/** Returns the error of a server for a text that is no quantity, undefined for a quantity. */
export function quantityProblem(text: string): string | undefined {
  if (SIMPLE.test(text)) return undefined;
  const quantity = parse(text.trim());
  return typeof quantity === 'string' ? quantity : undefined;
}

/** Returns the amount in units of 10^-9, rounded up; undefined if it is no quantity. */
export function quantityNanos(text: string): bigint | undefined {
  const quantity = parse(text);
  return typeof quantity === 'string' ? undefined : nanosOf(quantity);
}

/**
 * Whether an amount has no fraction. As upstream, which counts thousandths in 64 bits, some large amounts have one. A
 * text that is no quantity counts as 0.
 */
export function isWholeQuantity(text: string): boolean {
  if (WHOLE.test(text)) return true;
  const quantity = parse(text);
  if (typeof quantity === 'string') return true;
  const { mantissa, exponent } = quantity;
  if (exponent < 0) return nanosOf(quantity) % 10n ** 9n === 0n;
  // As upstream, where other factors do not overflow.
  if (![0, 3, 6].includes(exponent)) return true;
  return BigInt.asIntN(64, mantissa * 10n ** BigInt(exponent + 3)) % 1000n === 0n;
}

/** Returns `a + b` in the format of `a`; of `b` if `a` is 0. A text that is no quantity counts as 0. */
export function addQuantities(a: string, b: string): string {
  return sum(parse(a), parse(b), 1n);
}

/** Returns `a - b` in the format of `a`. A text that is no quantity counts as 0. */
export function subtractQuantities(a: string, b: string): string {
  return sum(parse(a), parse(b), -1n);
}

function sum(a: Quantity | string, b: Quantity | string, sign: bigint): string {
  const left = typeof a === 'string' ? ZERO : a;
  const right = typeof b === 'string' ? ZERO : b;
  const mantissa = nanosOf(left) + sign * nanosOf(right);
  return format({ ...(left.mantissa === 0n ? right : left), mantissa, ...IN_NANOS });
}

const IN_NANOS = { exponent: MIN_EXPONENT, text: undefined } as const;

const ZERO: Quantity = { mantissa: 0n, exponent: 0, format: 'decimal' };

function nanosOf(quantity: Quantity): bigint {
  const { mantissa, exponent } = roundedUp(quantity, MIN_EXPONENT);
  return mantissa * 10n ** BigInt(Math.min(exponent, MAX_EXPONENT) - MIN_EXPONENT);
}

/** Parses a quantity as Go does. Returns the text of Go's error if it is none. */
function parse(text: string): Quantity | string {
  const [, sign, zeros, whole = '', fraction, suffix = ''] =
    /^([+-]?)(0*)(\d*)(?:\.(\d*))?([eEinumkKMGTP]*[+-]?\d*)$/.exec(text) ?? [];
  if (sign === undefined || text === '' || text.length > MAX_LENGTH) return NOT_A_QUANTITY;
  const scale = scaleOf(suffix);
  if (!scale) return UNKNOWN_SUFFIX;
  const digits = (whole || '0') + (fraction ?? '');
  const amount = BigInt(digits) * (sign === '-' ? -1n : 1n);
  const { format } = scale;
  if (amount === 0n) {
    // Go reads a missing number as 0 if it calculates with 64 bits.
    const isFast = format === 'binary' ? scale.exponent < 50 : scale.exponent >= MIN_EXPONENT;
    return isFast || /\d/.test(`${zeros}${fraction}`) ? ZERO : NO_NUMBER;
  }
  const exponent = (format === 'binary' ? 0 : scale.exponent) - (fraction ?? '').length;
  const quantity: Quantity = { mantissa: amount, exponent, format };
  if (format === 'binary') return binary(quantity, text, digits, scale.exponent);
  if (digits.length > FAST_DIGITS || exponent < MIN_EXPONENT) {
    return roundedUp(quantity, MIN_EXPONENT);
  }
  const isKept = exponent % 3 === 0 && !digits.endsWith('000') && !digits.startsWith('0');
  return isKept ? { ...quantity, text } : quantity;
}

function binary(
  { mantissa, exponent }: Quantity,
  text: string,
  digits: string,
  power: number,
): Quantity {
  const scaled = { mantissa: mantissa * 2n ** BigInt(power), exponent };
  // As Go estimates the digits of the result.
  const isFast = exponent === 0 && digits.length + Math.floor((power * 3) / 10) <= 14;
  const format = 'binary';
  if (isFast) return { ...scaled, format, ...((mantissa & 7n) !== 0n && { text }) };
  const rounded = roundedUp({ ...scaled, format }, MIN_EXPONENT);
  const nanos = nanosOf(rounded);
  const size = nanos < 0n ? -nanos : nanos;
  if (size <= MAX_BINARY * 10n ** 9n) return rounded;
  return { mantissa: nanos < 0n ? -MAX_BINARY : MAX_BINARY, exponent: 0, format };
}

interface Scale {
  /** Of 2 in the binary format, of 10 in the others. */
  readonly exponent: number;
  readonly format: Quantity['format'];
}

const UNITS: Scale = { exponent: 0, format: 'decimal' };

function scaleOf(suffix: string): Scale | undefined {
  if (suffix === '') return UNITS;
  const power = BINARY_SUFFIXES.findIndex((known) => known === suffix);
  if (power > 0) return { exponent: power * 10, format: 'binary' };
  const decimal = DECIMAL_SUFFIXES.findIndex((known) => known === suffix);
  if (decimal >= 0) return { exponent: (decimal - 3) * 3, format: 'decimal' };
  const [, exponent] = /^[eE]([+-]?\d+)$/.exec(suffix) ?? [];
  if (exponent === undefined || BigInt.asIntN(64, BigInt(exponent)) !== BigInt(exponent))
    return undefined;
  // As Go converts it.
  return { exponent: Number(BigInt.asIntN(32, BigInt(exponent))), format: 'exponent' };
}

/** Returns the quantity as a multiple of `10^exponent`, and itself if it is one. Amounts are rounded away from 0. */
function roundedUp(quantity: Quantity, exponent: number): Quantity {
  if (quantity.exponent >= exponent) return quantity;
  const { mantissa, format } = quantity;
  const amount = mantissa < 0n ? -mantissa : mantissa;
  // A divisor with more digits than the amount has the same result.
  const divisor = 10n ** BigInt(Math.min(exponent - quantity.exponent, MAX_LENGTH + 19));
  const rounded = (amount + divisor - 1n) / divisor;
  return { mantissa: mantissa < 0n ? -rounded : rounded, exponent, format };
}

function format(quantity: Quantity): string {
  const { mantissa, exponent, text } = quantity;
  if (text !== undefined) return text;
  if (mantissa === 0n) return '0';
  const sign = mantissa < 0n ? '-' : '';
  const amount = mantissa < 0n ? -mantissa : mantissa;
  if (quantity.format === 'binary') {
    const nanos = nanosOf({ ...quantity, mantissa: amount });
    const whole = nanos / 10n ** 9n;
    if (nanos % 10n ** 9n === 0n && whole >= 1024n) {
      const [factor, power] = factorOut(whole, 1024n);
      return `${sign}${factor}${BINARY_SUFFIXES[power] ?? ''}`;
    }
  }
  const [factor, zeros] = factorOut(amount, 10n);
  const places = exponent + zeros;
  const over = ((places % 3) + 3) % 3;
  const shown = `${sign}${factor * 10n ** BigInt(over)}`;
  const power = places - over;
  if (quantity.format === 'exponent') return power === 0 ? shown : `${shown}e${power}`;
  // As upstream, an amount that is too large for the suffixes has none.
  return `${shown}${DECIMAL_SUFFIXES[power / 3 + 3] ?? ''}`;
}

/** Returns `amount` without its factors of `base`, and their number. */
function factorOut(amount: bigint, base: bigint): [factor: bigint, power: number] {
  let factor = amount;
  let power = 0;
  while (factor % base === 0n) {
    factor /= base;
    power++;
  }
  return [factor, power];
}
