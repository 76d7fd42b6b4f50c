import { Counter, Gauge, Histogram } from './prom-client.ts';
import type { Registry } from './registry.ts';

/** Options of a custom metric with the labels `L`. */
export interface CustomMetricOptions<L extends string = never> {
  /**
   * Lower-case words with "_": `backup_runs_total`. The first word is a prefix of the program, and not one of those
   * that this library and Prometheus clients use. The name of a counter ends with `_total`, other names do not. End
   * others with their unit: `_seconds`, `_bytes`.
   */
  readonly name: string;
  /** A sentence for people. */
  readonly help: string;
  /**
   * Names of the labels. Their values must come from a small set: each combination is a series.
   * @default none
   */
  readonly labels?: readonly L[] | undefined;
}

/** Options of a custom histogram. */
export interface CustomHistogramOptions<L extends string = never> extends CustomMetricOptions<L> {
  /**
   * Upper bounds of the buckets, ascending.
   * @default the buckets of Prometheus clients: 0.005 to 10
   */
  readonly buckets?: readonly number[] | undefined;
}

/** The values of the labels of a metric; no argument for a metric without labels. */
export type LabelArguments<L extends string> = [L] extends [never]
  ? []
  : [labels: Readonly<Record<L, string>>];

/** A value that only increases. */
export interface CustomCounter<L extends string = never> {
  /** Adds 1 to the series of the labels. */
  inc(...labels: LabelArguments<L>): void;
  /** Adds `value`, which is not negative. */
  add(value: number, ...labels: LabelArguments<L>): void;
}

/** A value that changes. */
export interface CustomGauge<L extends string = never> {
  /** Replaces the value of the series of the labels. */
  set(value: number, ...labels: LabelArguments<L>): void;
  /** Removes the series of the labels: call it when its object is deleted. */
  remove(...labels: LabelArguments<L>): void;
}

/** A distribution of values. */
export interface CustomHistogram<L extends string = never> {
  /** Adds a value to the series of the labels. */
  observe(value: number, ...labels: LabelArguments<L>): void;
}

/**
 * Metrics of a program's own, in the registry of its other metrics. A metric that is requested again is the same one,
 * so the same controller can run several times.
 *
 * Each function throws a `RangeError` on an invalid name, and an `Error` if the name has another type or other labels.
 */
export interface CustomMetrics {
  /** Returns a counter, which is exposed from its first increment, or from the start if it has no labels. */
  counter<L extends string = never>(options: CustomMetricOptions<L>): CustomCounter<L>;
  /** Returns a gauge. */
  gauge<L extends string = never>(options: CustomMetricOptions<L>): CustomGauge<L>;
  /** Returns a histogram. */
  histogram<L extends string = never>(options: CustomHistogramOptions<L>): CustomHistogram<L>;
}

/** First words of the names that this library, Prometheus clients and Kubernetes use. */
const RESERVED = new Set(
  'aggregator apiserver authentication authorization certwatcher controller crd etcd go informer kubernetes leader nodejs process prober prometheus promhttp reflector rest running scrape up workqueue'.split(
    ' ',
  ),
);

const NAME = /^[a-z][a-z0-9]*(_[a-z0-9]+)+$/;

type Type = 'counter' | 'gauge' | 'histogram';

/** Returns the custom metrics of a registry. Without one, names are checked and values are dropped. */
export function customMetrics(registry?: Registry): CustomMetrics {
  const known = new Map<
    string,
    { readonly type: Type; readonly labels: string; metric: unknown }
  >();
  const registers = registry ? [registry] : [];
  const once = <M>(type: Type, options: CustomMetricOptions<string>, create: () => M): M => {
    const { name } = options;
    checkName(type, name);
    const labels = [...(options.labels ?? [])].toSorted().join();
    const present = known.get(name);
    if (present) {
      if (present.type !== type || present.labels !== labels) {
        throw new Error(
          `The metric ${name} exists as a ${present.type} with labels [${present.labels}]`,
        );
      }
      // The type determines the class of the metric.
      return present.metric as M;
    }
    const metric = create();
    known.set(name, { type, labels, metric });
    return metric;
  };
  return {
    counter: <L extends string = never>(options: CustomMetricOptions<L>) => {
      const counter = once(
        'counter',
        options,
        () => new Counter(configurationOf(options, registers)),
      );
      const add = (value: number, ...labels: LabelArguments<L>) =>
        counter.inc({ ...labels[0] }, value);
      return { add, inc: (...labels: LabelArguments<L>) => add(1, ...labels) };
    },
    gauge: <L extends string = never>(options: CustomMetricOptions<L>) => {
      const gauge = once('gauge', options, () => new Gauge(configurationOf(options, registers)));
      return {
        set: (value: number, ...labels: LabelArguments<L>) => gauge.set({ ...labels[0] }, value),
        remove: (...labels: LabelArguments<L>) => gauge.remove({ ...labels[0] }),
      };
    },
    histogram: <L extends string = never>(options: CustomHistogramOptions<L>) => {
      const { buckets } = options;
      const histogram = once(
        'histogram',
        options,
        () =>
          new Histogram({
            ...configurationOf(options, registers),
            ...(buckets && { buckets: [...buckets] }),
          }),
      );
      return {
        observe: (value: number, ...labels: LabelArguments<L>) =>
          histogram.observe({ ...labels[0] }, value),
      };
    },
  };
}

function configurationOf(
  { name, help, labels = [] }: CustomMetricOptions<string>,
  registers: Registry[],
) {
  return { name, help, labelNames: [...labels], registers };
}

function checkName(type: Type, name: string): void {
  const fail = (problem: string) => {
    throw new RangeError(`The metric name ${JSON.stringify(name)} ${problem}`);
  };
  if (!NAME.test(name)) fail('must be lower-case words with "_", as in backup_runs_total');
  const [prefix = ''] = name.split('_');
  if (RESERVED.has(prefix)) fail(`must not start with ${prefix}_, which other metrics use`);
  if ((type === 'counter') !== name.endsWith('_total')) {
    fail(type === 'counter' ? 'must end with _total' : 'must not end with _total');
  }
}
