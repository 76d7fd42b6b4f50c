/** Statistics of one number over several rounds. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** @throws {RangeError} if there are no values */
export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const median =
    ((sorted[Math.ceil(middle) - 1] ?? Number.NaN) + (sorted[Math.floor(middle)] ?? Number.NaN)) /
    2;
  const [min = Number.NaN] = sorted;
  if (Number.isNaN(min)) throw new RangeError('Expected at least one value');
  return { median, min, max: sorted.at(-1) ?? min };
}

/** Computed for each round, so that a slow round affects both values. */
export function ratios(values: readonly number[], baseline: readonly number[]): Spread {
  return spreadOf(values.map((value, round) => value / (baseline[round] ?? Number.NaN)));
}

/** `6.21 (5.90–7.02)` */
export function textOf({ median, min, max }: Spread, digits = 2): string {
  return `${median.toFixed(digits)} (${min.toFixed(digits)}–${max.toFixed(digits)})`;
}
