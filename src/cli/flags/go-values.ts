const MS_PER_UNIT: ReadonlyMap<string, number> = new Map([
  ['ns', 1e-6],
  ['us', 1e-3],
  ['µs', 1e-3],
  ['μs', 1e-3],
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
]);

/** Maximum of Go's int64 nanoseconds. */
const LONGEST_MS = 2 ** 63 / 1e6;

/**
 * Parses a Go duration and returns milliseconds: `1h30m`, `500ms`, `-1.5s`. As in Go, a number requires a
 * unit unless it is `0`.
 *
 * @throws {SyntaxError} with the reason
 */
export function parseGoDuration(text: string): number {
  const sign = text.startsWith('-') ? -1 : 1;
  const magnitude = /^[-+]/.test(text) ? text.slice(1) : text;
  if (magnitude === '0') return 0;
  if (/^(\d+\.?\d*|\.\d+)$/.test(magnitude)) {
    throw new SyntaxError(`missing unit in duration "${text}": did you mean "${text}s"?`);
  }
  const term = /(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)/y;
  let total = 0;
  do {
    const match = term.exec(magnitude);
    const unit = MS_PER_UNIT.get(match?.[2] ?? '');
    if (unit === undefined) {
      throw new SyntaxError(`invalid duration "${text}": write it as in "1h30m" or "500ms"`);
    }
    total += Number(match?.[1]) * unit;
  } while (term.lastIndex < magnitude.length);
  if (total >= LONGEST_MS) throw new SyntaxError(`invalid duration "${text}": too long`);
  return total === 0 ? 0 : sign * total;
}

/** Values that Go's `strconv.ParseBool` accepts. */
const TRUE: ReadonlySet<string> = new Set(['1', 't', 'T', 'true', 'TRUE', 'True']);
const FALSE: ReadonlySet<string> = new Set(['0', 'f', 'F', 'false', 'FALSE', 'False']);

/** Parses a Go boolean; undefined if `text` is invalid. */
export function parseGoBoolean(text: string): boolean | undefined {
  if (TRUE.has(text)) return true;
  return FALSE.has(text) ? false : undefined;
}
