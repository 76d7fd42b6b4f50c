/** The values of one measurement. */
export interface Series {
  readonly name: string;
  /** Bytes are shown in MiB. */
  readonly unit: 'bytes' | 'count';
  /** Seconds since the start, and the value. */
  readonly samples: (readonly [seconds: number, value: number])[];
}

/** Duration of a part of the run, whose smallest value counts: garbage that is not yet collected is no growth. */
const PART_SECONDS = 30;

export interface Trend {
  readonly median: number;
  /** Growth per hour by the median of all slopes (Theil and Sen) of the last two thirds. */
  readonly perHour: number;
  /** Growth in an hour that is accepted: a quarter of the median, and at least two. */
  readonly bound: number;
  readonly isFlat: boolean;
}

/** Returns the trend after the first third, in which a process warms up. Growth below the noise is none. */
export function trendOf({ samples }: Series): Trend {
  const end = samples.at(-1)?.[0] ?? 0;
  const parts = new Map<number, readonly [number, number]>();
  for (const sample of samples) {
    if (sample[0] < end / 3) continue;
    const part = Math.floor(sample[0] / PART_SECONDS);
    const least = parts.get(part);
    if (!least || sample[1] < least[1]) parts.set(part, sample);
  }
  const points = [...parts.values()];
  const slopes = points.flatMap(([x, y], index) =>
    points.slice(index + 1).map(([later, value]) => (value - y) / (later - x)),
  );
  const slope = medianOf(slopes);
  const rests = points.map(([x, y]) => y - slope * x);
  const noise = medianOf(rests.map((rest) => Math.abs(rest - medianOf(rests))));
  const median = medianOf(points.map(([, y]) => y));
  const perHour = slope * 3600;
  const bound = Math.max(2, median / 4);
  return {
    median,
    perHour,
    bound,
    isFlat: perHour <= bound || (slope * (end * 2)) / 3 <= 2 * noise,
  };
}

function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

export function shown(value: number, unit: Series['unit']): string {
  return unit === 'bytes' ? `${(value / 2 ** 20).toFixed(1)} MiB` : value.toFixed(1);
}

const WIDTH = 720;
const HEIGHT = 90;
const LEFT = 190;

/** Returns an SVG document with a panel for each series, and a line for each fault. */
export function chartOf(
  description: string,
  all: readonly Series[],
  faults: readonly (readonly [seconds: number, name: string])[],
): string {
  const end = Math.max(1, ...all.map(({ samples }) => samples.at(-1)?.[0] ?? 0));
  const x = (seconds: number) => (LEFT + ((WIDTH - LEFT - 10) * seconds) / end).toFixed(1);
  const panels = all.map(({ name, unit, samples }, index) => {
    const largest = Math.max(1, ...samples.map(([, value]) => value));
    const bottom = (index + 1) * HEIGHT;
    const y = (value: number) => (bottom - ((HEIGHT - 20) * value) / largest).toFixed(1);
    const points = samples.map(([seconds, value]) => `${x(seconds)},${y(value)}`).join(' ');
    return [
      `<text x="10" y="${bottom - 40}">${name}</text>`,
      `<text x="10" y="${bottom - 24}">at most ${shown(largest, unit)}</text>`,
      `<path class="axis" d="M${LEFT} ${bottom}H${WIDTH - 10}"/><polyline points="${points}"/>`,
    ].join('\n');
  });
  const height = all.length * HEIGHT + 10;
  const marks = faults.map(
    ([seconds, name]) =>
      `<path class="fault" d="M${x(seconds)} 10V${height - 10}"><title>${name}</title></path>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${description}">
<title>${description}</title>
<style>
  text { font: 13px system-ui, sans-serif; fill: #6e7681 }
  polyline { fill: none; stroke: #0969da }
  .axis { stroke: #8c959f }
  .fault { stroke: #cf222e; stroke-opacity: 0.3 }
</style>
${[...marks, ...panels].join('\n')}
</svg>
`;
}
