import { Counter, Histogram } from './prom-client.ts';
import type { CounterConfiguration, HistogramConfiguration } from 'prom-client';

type Labels<T extends string> = Readonly<Record<T, string>>;

/** One series of a `SeriesCounter`. */
export class CounterSeries {
  #value = 0;

  get value(): number {
    return this.#value;
  }

  inc(): void {
    this.#value++;
  }
}

/**
 * A counter for code that runs for every key: the labels are looked up once, by `series`, and not at each
 * increment. Other methods of the counter have no effect.
 */
export class SeriesCounter<T extends string> extends Counter<T> {
  readonly #series = new SeriesByLabels<T, CounterSeries>();

  constructor(options: CounterConfiguration<T>) {
    super({
      ...options,
      collect: () => {
        this.reset();
        for (const [labels, series] of this.#series) this.inc(labels, series.value);
      },
    });
  }

  /** Returns the series with these labels, which is exposed from now on. */
  series(labels: Labels<T>): CounterSeries {
    return this.#series.get(labels, () => new CounterSeries());
  }
}

/** One series of a `SeriesHistogram`. */
export class HistogramSeries {
  readonly #bounds: readonly number[];
  /** Number of observations between two bounds; the last ones are greater than all bounds. */
  readonly #counts: number[];
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  observe(value: number): void {
    const bounds = this.#bounds;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] ?? 0)) at++;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#sum += value;
  }

  /** Returns the exposed values of the histogram `name`. */
  values(name: string, labels: object) {
    let count = 0;
    const buckets = this.#counts.map((more, at) => {
      count += more;
      const le = this.#bounds[at] ?? '+Inf';
      return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: count };
    });
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: this.#sum },
      { metricName: `${name}_count`, labels, value: count },
    ];
  }
}

/** A histogram whose labels are looked up once, as those of a `SeriesCounter`. */
export class SeriesHistogram<T extends string> extends Histogram<T> {
  readonly #series = new SeriesByLabels<T, HistogramSeries>();
  readonly #options: HistogramConfiguration<T> & { readonly buckets: number[] };

  constructor(options: HistogramConfiguration<T> & { readonly buckets: number[] }) {
    super(options);
    this.#options = options;
  }

  /** Returns the series with these labels, which is exposed from now on. */
  series(labels: Labels<T>): HistogramSeries {
    return this.#series.get(labels, () => new HistogramSeries(this.#options.buckets));
  }

  override async get() {
    // `super.get` would call `getForPromString`.
    const empty = await new Histogram({ ...this.#options, registers: [] }).get();
    const values = Array.from(this.#series, ([labels, series]) =>
      series.values(this.#options.name, labels),
    );
    return { ...empty, values: values.flat() };
  }

  /** The registry of prom-client calls this method of a histogram instead of `get`. */
  async getForPromString() {
    return this.get();
  }
}

class SeriesByLabels<T extends string, S> {
  readonly #series = new Map<string, readonly [Labels<T>, S]>();

  get(labels: Labels<T>, create: () => S): S {
    const id = JSON.stringify(labels);
    const known = this.#series.get(id);
    if (known) return known[1];
    const series = create();
    this.#series.set(id, [labels, series]);
    return series;
  }

  [Symbol.iterator](): IterableIterator<readonly [Labels<T>, S]> {
    return this.#series.values();
  }
}
