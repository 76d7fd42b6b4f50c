/** What is to be done with the keys of a round. */
export const SCENARIOS = ['plain', 'priority', 'backoff', 'handler'] as const;
export type Scenario = (typeof SCENARIOS)[number];

/**
 * One way to have every key dealt with once. Keys are added twice, as changes that come in bursts
 * do; who cannot merge them deals with them twice.
 *
 * - `plain`: add, take, give back.
 * - `priority`: every other key is of those that nobody waits for, and keys belong to 40 tenants.
 * - `backoff`: each key fails once and comes back after some milliseconds.
 * - `handler`: an async handler is called for each key, ten at once.
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

/** Body of a child process: the waves one after another, the first not counted. */
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
