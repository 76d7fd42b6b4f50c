import { CUSTOM_RESOURCE_DEFINITIONS, EVENTS, PODS } from '../../../src/api/builtin.ts';
import { COUNTS } from '../../../src/api/generated/count.ts';
import { controllerReference } from '../../../src/api/metadata.ts';
import type { Resource } from '../../../src/api/resource.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import type { Client } from '../../../src/client/client.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { countController } from '../../../src/controllers/count/controller.ts';
import { explore } from '../../../src/explore/explore.ts';
import type { ExploreOptions } from '../../../src/explore/explore.ts';
import { countCrd, countDraft } from '../../support/test-cluster.ts';
import type { BenchmarkCall } from '../benchmark.ts';
import { Arguments } from '../support/arguments.ts';
import { table } from '../support/table.ts';

const OPTIONS: ExploreOptions = {
  controllers: [countController],
  objects: [countCrd()],
  scenario: {
    'a user creates a Count of 2 Pods': (client) =>
      client.create(COUNTS, countDraft('default', { count: 2 })),
  },
};

/**
 * Measures the CPU time of schedules of one Count of two Pods: without faults, and as the search finds them. Both are compared with
 * their requests alone: those of the schedule without faults, sent to an embedded server in this process.
 *
 * `--schedules=1000 --rounds=5`
 */
export async function main({ args, json }: BenchmarkCall): Promise<void> {
  const given = new Arguments(args);
  const schedules = given.number('schedules', 1000);
  const rounds = given.number('rounds', 5);
  given.end();
  const server = new ApiServer();
  const client = new HttpClient({ handler: server.handler, server: 'https://bench' });
  await client.create(CUSTOM_RESOURCE_DEFINITIONS, countCrd());
  let sent = 0;
  const contestants: Readonly<Record<string, () => Promise<unknown>>> = {
    'requests alone': async () => {
      for (let number = 0; number < schedules; number++) await send(client, `x${sent++}`);
    },
    'without faults': () => explore({ ...OPTIONS, faults: [], budget: { schedules } }),
    search: () => explore({ ...OPTIONS, budget: { schedules } }),
  };
  const names = Object.keys(contestants);
  const times = new Map<string, number[]>(names.map((name) => [name, []]));
  // The first round compiles the code.
  for (let round = 0; round <= rounds; round++) {
    for (const name of names) {
      const before = process.cpuUsage();
      await contestants[name]?.();
      const { user, system } = process.cpuUsage(before);
      if (round > 0) times.get(name)?.push((user + system) / 1000 / schedules);
    }
  }
  const alone = times.get('requests alone') ?? [];
  const rows = Array.from(times, ([name, samples]) => ({
    name,
    ms: medianOf(samples),
    perSecond: 1000 / medianOf(samples),
    ratio: medianOf(samples.map((ms, round) => ms / (alone[round] ?? Number.NaN))),
  }));
  const { steps } = await explore({ ...OPTIONS, budget: { schedules: 1 } });
  if (json) return console.log(JSON.stringify({ benchmark: 'explore', schedules, steps, rows }));
  console.log(`${steps} steps without faults and in the 15 minutes after it`);
  console.log(
    table(
      ['schedules', 'CPU each (ms)', 'per CPU second', 'ratio'],
      rows.map(({ name, ms, perSecond, ratio }) => [
        name,
        ms.toFixed(2),
        perSecond.toFixed(0),
        ratio.toFixed(2),
      ]),
    ),
  );
}

/** Sends the requests of one Count, its controller and its watches, with other names. */
async function send(client: Client, name: string): Promise<void> {
  const namespace = 'default';
  const count = await client.create(COUNTS, countDraft(namespace, { count: 2 }, name));
  const stop = new AbortController();
  const { resourceVersion } = count.metadata;
  const watched: readonly Resource[] = [COUNTS, PODS];
  for (const resource of watched)
    await client.watch(resource, { resourceVersion, signal: stop.signal });
  const ownerReferences = [controllerReference(count)];
  for (const index of [0, 1]) {
    await client.create(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { namespace, name: `${name}-${index}`, ownerReferences },
      spec: { containers: [{ name: 'nginx', image: 'nginx' }] },
    });
  }
  const status = { replicas: 2, observedGeneration: 1 };
  const patch = { type: 'merge', body: { status } } as const;
  await client.patch(COUNTS, count.metadata, patch, { subresource: 'status' });
  for (const reason of ['Created', 'Synced']) {
    await client.create(EVENTS, {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { namespace, name: `${name}.${reason}` },
      involvedObject: { apiVersion: 'demo.mark8s.io/v1', kind: 'Count', namespace, name },
      reason,
      type: 'Normal',
    });
  }
  stop.abort();
}

function medianOf(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
