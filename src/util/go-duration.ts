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

/** Parses the additional forms of `format: duration`: `3 days`, `2 weeks`. */
export function parseWordyDuration(text: string): bigint | undefined {
  const exact = parseDuration(text);
  if (exact !== undefined) return exact;
  let nanos: bigint | undefined;
  for (const [, amount = '0', word = ''] of text.matchAll(/(\d+)[\t\n\f\r ]*([A-Za-z\u00b5]+)/g)) {
    // Go calculates with 64 bits.
    if (amount.replace(/^0+/, '').length > 19 || BigInt(amount) > MAX_DURATION) return undefined;
    const unit = word.toLowerCase();
    for (const [words, scale] of WORDS) {
      if (words.includes(unit) || unit.startsWith(words.at(-1) ?? unit))
        nanos = BigInt.asIntN(64, (nanos ?? 0n) + BigInt(amount) * scale);
    }
  }
  return nanos;
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
