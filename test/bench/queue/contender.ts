/** Workloads of the benchmark; see `Contender`. */
export const SCENARIOS = ['plain', 'priority', 'backoff', 'handler', 'indexer'] as const;
export type Scenario = (typeof SCENARIOS)[number];

/**
 * An implementation that processes every key once. Keys are added twice, as in a burst of changes; a
 * queue without deduplication processes them twice.
 *
 * - `plain`: add, take, mark as done.
 * - `priority`: every other key has low priority, and keys belong to 40 tenants.
 * - `backoff`: each key fails once and is retried after some milliseconds.
 * - `handler`: an async handler is called for each key, ten concurrently.
 * - `indexer`: each object is added to a cache with an index of 250 values, updated with another value, and read
 *   through the index.
 */
export type Contender = (scenario: Scenario, keys: readonly string[]) => Promise<void>;

/** Returns the object of a key for `indexer`. */
export function objectOf(key: string, version: number) {
  const [namespace = '', name = ''] = key.split('/');
  const app = `app-${(Number(name.slice(4)) + version) % 250}`;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      namespace,
      name,
      uid: key,
      resourceVersion: `${version}`,
      creationTimestamp: '',
      labels: { app },
    },
  };
}

export interface QueueOptions {
  readonly scenario: Scenario;
  readonly keys: number;
  readonly waves: number;
}

export interface QueueReport {
  readonly cpuMs: number;
  readonly peakRssKb: number;
}

/** Body of a child process: runs the waves one after another; the first is not counted. */
export async function measure(contender: Contender): Promise<void> {
  const { scenario, keys, waves } = JSON.parse(process.argv[2]!) as QueueOptions;
  const names = Array.from({ length: keys }, (_, number) => `tenant-${number % 40}/foo-${number}`);
  await contender(scenario, names);
  const start = process.cpuUsage();
  for (let wave = 0; wave < waves; wave++) await contender(scenario, names);
  const { user, system } = process.cpuUsage(start);
  const peakRssKb = process.resourceUsage().maxRSS;
  const report: QueueReport = { cpuMs: (user + system) / 1000, peakRssKb };
  process.stdout.write(`${JSON.stringify(report)}\n`);
}
