/** Workloads of the benchmark; see `Contender`. */
export const SCENARIOS = ['plain', 'priority', 'backoff', 'handler'] as const;
export type Scenario = (typeof SCENARIOS)[number];

/**
 * An implementation that processes every key once. Keys are added twice, as in a burst of changes; a
 * queue without deduplication processes them twice.
 *
 * - `plain`: add, take, mark as done.
 * - `priority`: every other key has low priority, and keys belong to 40 tenants.
 * - `backoff`: each key fails once and is retried after some milliseconds.
 * - `handler`: an async handler is called for each key, ten concurrently.
 */
export type Contender = (scenario: Scenario, keys: readonly string[]) => Promise<void>;

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
