/**
 * The growth of our costs with the number of cached objects (canned server), and with the number of shards: each replica
 * of the daemon holds one (embedded server).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { cannedSetting } from '../support/client-program.ts';
import { startControlPlane } from '../support/control-plane.ts';
import { CONTROLLERS, FooServer } from '../support/foo-controllers.ts';
import { MeteredProcess } from '../support/metered-process.ts';
import { grouped, numberIn, numbersIn } from '../support/workload.ts';
import type { Case, Options, Sample, Setting, Workload } from '../support/workload.ts';

const TIMEOUT_MS = 120_000;

export const workload: Workload = {
  description: 'growth of the costs with cached objects and shards',
  options: { objects: '2000,100000,1000000', events: '100000', shards: '1,3,9', foos: '2000' },
  short: { objects: '2000,20000', events: '20000', shards: '1,3', foos: '300' },
  rounds: 3,
  columns: [
    { key: 'eventUs', title: 'CPU µs/event', digits: 2 },
    { key: 'syncUs', title: 'sync CPU µs/object', digits: 2 },
    { key: 'heapBytes', title: 'heap B/object' },
    { key: 'rssMb', title: 'RSS MiB of a replica' },
    { key: 'jobS', title: 'main job s', digits: 2 },
    { key: 'jobCpuS', title: 'CPU s of all replicas', digits: 2 },
  ],
  chart: [
    { key: 'eventUs', title: 'Watch event, CPU in µs', by: 'case' },
    { key: 'syncUs', title: 'Initial sync, CPU in µs for each object', by: 'case' },
    { key: 'heapBytes', title: 'Cached object, bytes of heap', by: 'case' },
    { key: 'rssMb', title: 'RSS of a replica in MiB', by: 'case' },
  ],
  cases(options: Options): readonly Case[] {
    const events = numberIn(options, 'events');
    const foos = numberIn(options, 'foos');
    const contestants = ['ours'];
    const sizes = numbersIn(options, 'objects').map((objects) => ({
      name: `${grouped(objects)} Foos`,
      contestants,
      open: (clients: readonly string[]) =>
        cannedSetting({ objects, events }, clients, ({ synced, stormed }) => ({
          eventUs: (stormed!.cpuMs * 1000) / events,
          syncUs: (synced.cpuMs * 1000) / objects,
          heapBytes: (synced.heapBytes ?? Number.NaN) / objects,
          rssMb: stormed!.peakRssKb / 1024,
        })),
    }));
    const shards = numbersIn(options, 'shards').map((replicas) => ({
      name: `${replicas} ${replicas === 1 ? 'shard' : 'shards'}, ${grouped(foos)} Foos`,
      contestants,
      open: () => openShards(replicas, foos),
    }));
    return [...sizes, ...shards];
  },
};

async function openShards(replicas: number, foos: number): Promise<Setting> {
  await CONTROLLERS['ours']!.program();
  const plane = await startControlPlane('embedded');
  const server = await FooServer.install(plane.kubeconfig);
  return {
    sample: () => shardSample(server, replicas, foos),
    [Symbol.asyncDispose]: async () => {
      await server.close();
      await plane[Symbol.asyncDispose]();
    },
  };
}

/** The Foos are created when each replica holds a shard. */
async function shardSample(server: FooServer, replicas: number, foos: number): Promise<Sample> {
  const { program, args: common } = CONTROLLERS['ours']!;
  const command = await program();
  await server.clear();
  await server.clearLeases();
  const sharding = [
    '--leader-elect',
    '--leader-elect-resource-namespace=default',
    `--shards=${replicas}`,
  ];
  const args = [...common, ...(replicas === 1 ? [] : sharding)];
  await using stack = new AsyncDisposableStack();
  const running = Array.from({ length: replicas }, () =>
    stack.use(new MeteredProcess(command, { args, env: { KUBECONFIG: server.kubeconfig } })),
  );
  const until = async (isDone: () => Promise<boolean>) => {
    const deadline = performance.now() + TIMEOUT_MS;
    while (!(await isDone())) {
      for (const one of running) one.requireRunning();
      if (performance.now() > deadline) throw new Error(`not done after ${TIMEOUT_MS / 1000} s`);
      await sleep(50);
    }
  };
  await sleep(2000);
  if (replicas > 1) {
    await until(async () => new Set(await server.leaseHolders(replicas)).size === replicas);
  }
  const before = running.map((one) => one.usage().cpuMs);
  const started = performance.now();
  await server.createFoos(foos);
  await until(async () => (await server.deployments()) === foos);
  await until(async () => (await server.events()) >= foos);
  await until(async () => (await server.statuses()) === foos);
  const jobS = (performance.now() - started) / 1000;
  const usages = running.map((one) => one.usage());
  const delivered = await server.verify(foos);
  if (delivered !== foos) throw new Error(`${foos - delivered} events are lost`);
  const cpuMs = usages.reduce((sum, usage, index) => sum + usage.cpuMs - (before[index] ?? 0), 0);
  return {
    jobS,
    jobCpuS: cpuMs / 1000,
    rssMb: Math.max(...usages.map((usage) => usage.peakRssMb)),
  };
}
