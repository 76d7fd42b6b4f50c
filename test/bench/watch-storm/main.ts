import type { BenchmarkCall } from '../benchmark.ts';
import { Arguments } from '../support/arguments.ts';
import { commandsOf, runClient } from '../support/client-program.ts';
import type { ClientName } from '../support/client-program.ts';
import { startServer } from '../support/server-program.ts';
import { ratios, spreadOf, textOf } from '../support/spread.ts';
import type { Spread } from '../support/spread.ts';
import { table } from '../support/table.ts';

interface Sample {
  /** User and system time, in microseconds for each event. */
  readonly cpuUs: number;
  readonly eventsPerSecond: number;
  readonly peakRssMb: number;
}

interface Result {
  readonly objects: number;
  readonly client: ClientName;
  readonly cpuUs: Spread;
  /** Ratio to the baseline in each round; undefined without the baseline. */
  readonly ratio?: Spread;
  readonly eventsPerSecond: Spread;
  readonly peakRssMb: Spread;
}

/**
 * Sends MODIFIED events as fast as the client reads, to caches of several sizes. Measures the CPU time
 * of the client's process for each event, from the synced cache to the last handled event.
 *
 * `--objects=2000,100000 --events=100000 --rounds=5 --clients=bare,ours,client-node,fluent,client-go`
 */
export async function main({ args, json }: BenchmarkCall): Promise<void> {
  const given = new Arguments(args);
  const sizes = given.numbers('objects', [2000, 100_000]);
  const events = given.number('events', 100_000);
  const rounds = given.number('rounds', 5);
  const commands = await commandsOf(given.clients());
  given.end();

  const results: Result[] = [];
  for (const objects of sizes) {
    const samples = new Map<ClientName, Sample[]>();
    await using server = await startServer({ objects, events, mode: 'stream' });
    for (let round = 1; round <= rounds; round++) {
      for (const [client, command] of commands) {
        const options = { server: server.url, mode: 'stream', objects, events } as const;
        const reports = await runClient(command, options, () => server.storm());
        const end = reports.find(({ at }) => at === 'stormed');
        if (!end) throw new Error(`${client} did not handle all events`);
        const sample = {
          cpuUs: (end.cpuMs * 1000) / events,
          eventsPerSecond: (events * 1000) / end.wallMs,
          peakRssMb: end.peakRssKb / 1024,
        };
        samples.set(client, [...(samples.get(client) ?? []), sample]);
        console.error(
          `${objects} objects, round ${round}, ${client}: ${sample.cpuUs.toFixed(2)} µs an event`,
        );
      }
    }
    results.push(...resultsOf(objects, samples));
  }
  if (json) console.log(JSON.stringify({ benchmark: 'watch-storm', events, rounds, results }));
  else print(results, events, rounds);
}

function resultsOf(objects: number, samples: ReadonlyMap<ClientName, readonly Sample[]>): Result[] {
  const baseline = samples.get('bare')?.map(({ cpuUs }) => cpuUs);
  return Array.from(samples, ([client, of]) => {
    const cpuUs = of.map((sample) => sample.cpuUs);
    return {
      objects,
      client,
      cpuUs: spreadOf(cpuUs),
      ...(baseline ? { ratio: ratios(cpuUs, baseline) } : {}),
      eventsPerSecond: spreadOf(of.map((sample) => sample.eventsPerSecond)),
      peakRssMb: spreadOf(of.map((sample) => sample.peakRssMb)),
    };
  });
}

function print(results: readonly Result[], events: number, rounds: number): void {
  console.log(`watch-storm: ${events} MODIFIED events; median (min–max) of ${rounds} rounds\n`);
  const rows = results.map(({ objects, client, cpuUs, ratio, eventsPerSecond, peakRssMb }) => [
    client,
    String(objects),
    textOf(cpuUs),
    ratio ? textOf(ratio) : '',
    textOf(eventsPerSecond, 0),
    textOf(peakRssMb, 0),
  ]);
  console.log(
    table(['client', 'cached', 'CPU µs/event', 'to bare', 'events/s', 'peak RSS MiB'], rows),
  );
}
