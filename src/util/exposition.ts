/** One line of a scrape. */
interface Sample {
  readonly labels: ReadonlyMap<string, string>;
  readonly value: number;
}

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: -?\d+)?$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

/** Samples in Prometheus' text format, by name and labels. */
export class Exposition {
  readonly #samples = new Map<string, Sample[]>();

  /** Lines that are not samples are ignored. */
  constructor(text: string) {
    for (const line of text.split('\n')) {
      const [, name, labels = '', value = ''] = SAMPLE.exec(line) ?? [];
      if (name === undefined) continue;
      const sample = { labels: labelsIn(labels), value: numberOf(value) };
      const known = this.#samples.get(name);
      if (known) known.push(sample);
      else this.#samples.set(name, [sample]);
    }
  }

  /** Returns the sum of the samples with these labels; undefined if there are none. */
  value(name: string, labels: Readonly<Record<string, string>> = {}): number | undefined {
    const found = this.#find(name, labels);
    if (found.length === 0) return undefined;
    return found.reduce((sum, { value }) => sum + value, 0);
  }

  /** Returns the different values of a label. */
  valuesOf(name: string, label: string): string[] {
    const samples = this.#samples.get(name) ?? [];
    return [...new Set(samples.map(({ labels }) => labels.get(label) ?? ''))].toSorted();
  }

  /** Returns the cumulative counts of a histogram, by upper bound. */
  buckets(name: string, labels: Readonly<Record<string, string>>): Buckets {
    const counts = new Map<number, number>();
    for (const sample of this.#find(`${name}_bucket`, labels)) {
      const bound = numberOf(sample.labels.get('le') ?? '');
      counts.set(bound, (counts.get(bound) ?? 0) + sample.value);
    }
    return new Map([...counts].toSorted(([a], [b]) => a - b));
  }

  #find(name: string, labels: Readonly<Record<string, string>>): Sample[] {
    const wanted = Object.entries(labels);
    return (this.#samples.get(name) ?? []).filter((sample) =>
      wanted.every(([label, value]) => sample.labels.get(label) === value),
    );
  }
}

/** Cumulative counts by upper bound, in ascending order; the last bound is infinite. */
export type Buckets = ReadonlyMap<number, number>;

/** Returns the observations since `before`; all of them, if the counter was reset. */
export function observedSince(before: Buckets | undefined, now: Buckets): Buckets {
  if (!before) return now;
  const since = new Map(
    [...now].map(([bound, count]) => [bound, count - (before.get(bound) ?? 0)]),
  );
  return [...since.values()].some((count) => count < 0) ? now : since;
}

/**
 * Returns an estimated quantile, as Prometheus' `histogram_quantile` does; undefined without observations.
 */
export function quantile(buckets: Buckets, share: number): number | undefined {
  const total = [...buckets.values()].at(-1) ?? 0;
  if (!(total > 0)) return undefined;
  const rank = share * total;
  let lower = 0;
  let below = 0;
  for (const [bound, count] of buckets) {
    if (count >= rank) {
      if (bound === Infinity) return lower;
      return lower + (bound - lower) * (count === below ? 1 : (rank - below) / (count - below));
    }
    lower = bound;
    below = count;
  }
  return lower;
}

function labelsIn(text: string): ReadonlyMap<string, string> {
  return new Map(
    [...text.matchAll(LABEL)].map(([, label = '', quoted = '']): [string, string] => [
      label,
      quoted.replaceAll(/\\(.)/g, (_, it: string) => (it === 'n' ? '\n' : it)),
    ]),
  );
}

function numberOf(text: string): number {
  return /^[+-]?Inf$/.test(text) ? Number(`${text}inity`) : Number(text);
}
