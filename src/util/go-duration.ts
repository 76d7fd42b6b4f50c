const SECOND = 10n ** 9n;

const UNITS: ReadonlyMap<string, bigint> = new Map([
  ['ns', 1n],
  ['us', 1000n],
  ['µs', 1000n],
  ['μs', 1000n],
  ['ms', 10n ** 6n],
  ['s', SECOND],
  ['m', 60n * SECOND],
  ['h', 3600n * SECOND],
]);

/** Longest text that is parsed. */
const MAX_TEXT = 100;

/** Maximum duration: 64-bit nanoseconds. */
export const MAX_DURATION: bigint = 2n ** 63n - 1n;

/** Parses Go's duration format: `1h30m`, `-1.5s`, `0`. Returns undefined if it is malformed. */
export function parseDuration(text: string): bigint | undefined {
  const [, sign, rest = ''] = /^([+-]?)(.+)$/.exec(text.slice(0, MAX_TEXT)) ?? [];
  if (sign === undefined || text.length > MAX_TEXT) return undefined;
  if (rest === '0') return 0n;
  if (!/^(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|\u00b5s|\u03bcs|ms|s|m|h))+$/.test(rest))
    return undefined;
  let nanos = 0n;
  for (const [, whole = '', fraction = '', unit = ''] of rest.matchAll(
    /(\d*)(?:\.(\d*))?(ns|us|\u00b5s|\u03bcs|ms|s|m|h)/g,
  )) {
    const scale = UNITS.get(unit) ?? 0n;
    nanos += BigInt(whole || '0') * scale;
    if (fraction) nanos += (BigInt(fraction) * scale) / 10n ** BigInt(fraction.length);
  }
  if (nanos > MAX_DURATION) return undefined;
  return sign === '-' ? -nanos : nanos;
}

/**
 * Parses the additional forms of `format: duration`: `3 days`, `2 weeks`. Ignores all text but numbers with a unit. Takes
 * time linear in the text.
 */
export function parseWordyDuration(text: string): bigint | undefined {
  const exact = parseDuration(text);
  if (exact !== undefined) return exact;
  const units = new Map<string, Amount>();
  const end = (from: number, is: (code: number) => boolean) => {
    let at = from;
    while (at < text.length && is(text.charCodeAt(at))) at++;
    return at;
  };
  for (let at = end(0, isNoDigit); at < text.length; at = end(at, isNoDigit)) {
    const digitsEnd = end(at, isDigit);
    const wordStart = end(digitsEnd, isSpace);
    const wordEnd = end(wordStart, isLetter);
    const digits = text.slice(at, digitsEnd);
    at = wordEnd;
    if (wordEnd === wordStart) continue;
    // Go calculates with 64 bits.
    if (digits.length > 18) {
      if (digits.replace(/^0+/, '').length > 19 || BigInt(digits) > MAX_DURATION) return undefined;
    }
    const word = text.slice(wordStart, wordEnd);
    let unit = units.get(word);
    if (!unit)
      units.set(word, (unit = { scale: scaleOf(word.toLowerCase()), small: 0, large: 0n }));
    if (digits.length < 7) unit.small += Number(digits);
    else unit.large += BigInt(digits);
  }
  let nanos: bigint | undefined;
  for (const { scale, small, large } of units.values()) {
    if (scale !== undefined) nanos = (nanos ?? 0n) + scale * (BigInt(small) + large);
  }
  return nanos === undefined ? undefined : BigInt.asIntN(64, nanos);
}

/** The sum of the numbers before a word. A text can have a million of them, and a bigint for each takes long. */
interface Amount {
  /** Nanoseconds of the unit; undefined if the word is none. */
  readonly scale: bigint | undefined;
  small: number;
  large: bigint;
}

const isDigit = (code: number) => code >= 0x30 && code <= 0x39;
const isNoDigit = (code: number) => !isDigit(code);
const isSpace = (code: number) =>
  code === 0x20 || code === 9 || code === 10 || code === 12 || code === 13;
const isLetter = (code: number) =>
  ((code | 0x20) >= 0x61 && (code | 0x20) <= 0x7a) || code === 0xb5;

function scaleOf(unit: string): bigint | undefined {
  return WORDS.find(
    ([words]) => words.includes(unit) || unit.startsWith(words.at(-1) ?? unit),
  )?.[1];
}

/** The words of a unit. A word may continue after the last one: `hours`. */
const WORDS: readonly (readonly [words: readonly string[], nanos: bigint])[] = [
  [['ns', 'nano'], 1n],
  [['us', '\u00b5s', 'micro'], 1000n],
  [['ms', 'milli'], 10n ** 6n],
  [['s', 'sec'], SECOND],
  [['m', 'min'], 60n * SECOND],
  [['h', 'hr', 'hour'], 3600n * SECOND],
  [['d', 'day'], 86_400n * SECOND],
  [['w', 'wk', 'week'], 7n * 86_400n * SECOND],
];
