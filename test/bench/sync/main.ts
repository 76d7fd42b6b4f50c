import type { BenchmarkCall } from '../benchmark.ts';
import { Arguments } from '../support/arguments.ts';
import type { Mode } from '../support/canned-server.ts';
import { commandsOf, runClient } from '../support/client-program.ts';
import type { ClientName } from '../support/client-program.ts';
import { startServer } from '../support/server-program.ts';
import { ratios, spreadOf, textOf } from '../support/spread.ts';
import type { Spread } from '../support/spread.ts';
import { table } from '../support/table.ts';

interface Sample {
  /** CPU time from the loaded modules to the synced cache, in milliseconds. */
  readonly cpuMs: number;
  /** CPU time of the start of the runtime and the loading of modules, in milliseconds. */
  readonly startCpuMs: number;
  /** Growth of the heap for each object, after a garbage collection. */
  readonly heapBytes: number;
  readonly peakRssMb: number;
}

interface Result {
  readonly mode: Mode;
  readonly client: ClientName;
  readonly cpuMs: Spread;
  /** Ratio to the baseline in each round; undefined without the baseline. */
  readonly ratio?: Spread;
  readonly startCpuMs: Spread;
  readonly heapBytes: Spread;
  readonly peakRssMb: Spread;
}

/**
 * Measures the initial sync: streamed (WatchList), and in pages of 500. Clients that support neither
 * list everything in one response. The baseline keeps the parsed objects in a Map.
 *
 * `--objects=22000 --rounds=5 --clients=bare,ours,client-node,fluent,client-go`
 */
export async function main({ args, json }: BenchmarkCall): Promise<void> {
  const given = new Arguments(args);
  const objects = given.number('objects', 22_000);
  const rounds = given.number('rounds', 5);
  const commands = await commandsOf(given.clients());
  given.end();

  const results: Result[] = [];
  for (const mode of ['stream', 'pages'] as const) {
    const samples = new Map<ClientName, Sample[]>();
    await using server = await startServer({ objects, events: 0, mode });
    for (let round = 1; round <= rounds; round++) {
      for (const [client, command] of commands) {
        const [end] = await runClient(command, { server: server.url, mode, objects, events: 0 });
        if (end?.at !== 'synced') throw new Error(`${client} did not sync`);
        const sample = {
          cpuMs: end.cpuMs,
          startCpuMs: end.startCpuMs,
          heapBytes: end.heapBytes / objects,
          peakRssMb: end.peakRssKb / 1024,
        };
        samples.set(client, [...(samples.get(client) ?? []), sample]);
        console.error(`${mode}, round ${round}, ${client}: ${sample.cpuMs.toFixed(0)} ms`);
      }
    }
    results.push(...resultsOf(mode, samples));
  }
  if (json) console.log(JSON.stringify({ benchmark: 'sync', objects, rounds, results }));
  else print(results, objects, rounds);
}

function resultsOf(mode: Mode, samples: ReadonlyMap<ClientName, readonly Sample[]>): Result[] {
  const baseline = samples.get('bare')?.map(({ cpuMs }) => cpuMs);
  return Array.from(samples, ([client, of]) => {
    const cpuMs = of.map((sample) => sample.cpuMs);
    return {
      mode,
      client,
      cpuMs: spreadOf(cpuMs),
      ...(baseline ? { ratio: ratios(cpuMs, baseline) } : {}),
      startCpuMs: spreadOf(of.map((sample) => sample.startCpuMs)),
      heapBytes: spreadOf(of.map((sample) => sample.heapBytes)),
      peakRssMb: spreadOf(of.map((sample) => sample.peakRssMb)),
    };
  });
}

function print(results: readonly Result[], objects: number, rounds: number): void {
  console.log(`sync: ${objects} objects; median (min–max) of ${rounds} rounds\n`);
  const rows = results.map(({ client, mode, cpuMs, ratio, startCpuMs, heapBytes, peakRssMb }) => [
    client,
    mode,
    textOf(cpuMs, 0),
    ratio ? textOf(ratio) : '',
    textOf(startCpuMs, 0),
    textOf(heapBytes, 0),
    textOf(peakRssMb, 0),
  ]);
  const columns = [
    'client',
    'server',
    'CPU ms',
    'to bare',
    'start ms',
    'heap B/object',
    'peak RSS MiB',
  ];
  console.log(table(columns, rows));
}
