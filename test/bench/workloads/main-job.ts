/**
 * The main job of a controller: Foos become a Deployment, an event and a status each, on a complete API server.
 * Measured from the start of the program (or, in a burst, from the first created Foo) until the server has all
 * of them.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { startControlPlane } from '../support/control-plane.ts';
import type { ServerKind } from '../support/control-plane.ts';
import { CONTROLLERS, FooServer } from '../support/foo-controllers.ts';
import { MeteredProcess } from '../support/metered-process.ts';
import type { Usage } from '../support/metered-process.ts';
import { grouped, numberIn, numbersIn } from '../support/workload.ts';
import type { Case, Options, Sample, Setting, Workload } from '../support/workload.ts';

/** Time without a new event after which the missing events count as lost. */
const LOST_AFTER_MS = 5000;

export const workload: Workload = {
  description: 'a controller brings Foos to a Deployment, an event and a status each',
  options: {
    objects: '2000',
    // 0: the default of each contestant
    workers: '0,10',
    start: 'existing,burst',
    server: 'real',
    'timeout-seconds': '100',
    sources: 'bundle',
    recording: 'off',
  },
  short: { objects: '300', workers: '0', start: 'existing', server: 'embedded' },
  columns: [
    { key: 'wallS', title: 'wall s', digits: 2, ratio: true },
    { key: 'cpuS', title: 'CPU s', digits: 2, ratio: true },
    { key: 'peakRssMb', title: 'peak RSS MiB', ratio: true },
    { key: 'eventsLost', title: 'events lost' },
  ],
  chart: [
    { key: 'wallS', title: 'Main job, wall seconds' },
    { key: 'cpuS', title: 'Main job, CPU seconds' },
    { key: 'peakRssMb', title: 'Main job, peak RSS in MiB' },
  ],
  cases(options: Options): readonly Case[] {
    const { server = '', start = '', sources = '', recording = '' } = options;
    const timeoutMs = numberIn(options, 'timeout-seconds') * 1000;
    const omitted = new Set([
      ...(sources === 'both' ? [] : ['ours-source']),
      ...(recording === 'on' ? [] : ['ours-recorded']),
    ]);
    const contestants = Object.keys(CONTROLLERS).filter((name) => !omitted.has(name));
    return server.split(',').flatMap((kind) =>
      numbersIn(options, 'objects').flatMap((objects) =>
        start.split(',').flatMap((when) =>
          numbersIn(options, 'workers').map((workers) => ({
            name: [
              `${grouped(objects)} ${when === 'burst' ? 'in a burst' : 'existing'} Foos`,
              workers === 0 ? 'default workers' : `${workers} workers`,
              ...(kind === 'real' ? [] : [`${kind} server`]),
            ].join(', '),
            contestants,
            open: (chosen: readonly string[]) =>
              open(kind as ServerKind, chosen, { objects, workers, when, timeoutMs }),
          })),
        ),
      ),
    );
  },
};

interface Job {
  readonly objects: number;
  readonly workers: number;
  readonly when: string;
  readonly timeoutMs: number;
}

async function open(kind: ServerKind, chosen: readonly string[], job: Job): Promise<Setting> {
  // Not during a round. A failure is reported by the sample.
  for (const name of chosen) await CONTROLLERS[name]?.program().catch(() => undefined);
  const plane = await startControlPlane(kind);
  const server = await FooServer.install(plane.kubeconfig);
  return {
    sample: (name) => sample(server, name, job),
    [Symbol.asyncDispose]: async () => {
      await server.close();
      await plane[Symbol.asyncDispose]();
    },
  };
}

async function sample(
  server: FooServer,
  name: string,
  { objects, workers, when, timeoutMs }: Job,
): Promise<Sample> {
  const contestant = CONTROLLERS[name]!;
  const program = await contestant.program();
  await server.clear();
  if (when !== 'burst') await server.createFoos(objects);
  const flags = workers === 0 ? [] : [`--${contestant.workers}=${workers}`];
  let started = performance.now();
  await using running = new MeteredProcess(program, {
    args: [...contestant.args, ...flags],
    env: { KUBECONFIG: server.kubeconfig },
  });
  let before: Usage = { cpuMs: 0, rssMb: 0, peakRssMb: 0 };
  if (when === 'burst') {
    // Then its caches are synced.
    await sleep(2000);
    before = running.usage();
    started = performance.now();
    await server.createFoos(objects);
  }
  const deadline = started + timeoutMs;
  const counts = { deployments: 0, events: 0 };
  let completedAt = 0;
  for (;;) {
    running.requireRunning();
    const events = await server.events();
    if (events > counts.events) completedAt = performance.now();
    counts.events = events;
    if (counts.deployments < objects) counts.deployments = await server.deployments();
    const now = performance.now();
    if (counts.deployments >= objects && (events >= objects || now > completedAt + LOST_AFTER_MS)) {
      if ((await server.statuses()) === objects) break;
      completedAt = performance.now();
    }
    if (now > deadline) {
      const got = `${counts.deployments} Deployments, ${events} events`;
      throw new Error(`not finished after ${timeoutMs / 1000} s: ${got} ${running.log}`);
    }
    await sleep(counts.deployments < objects ? 100 : 20);
  }
  const usage = running.usage();
  const delivered = await server.verify(objects);
  return {
    wallS: (completedAt - started) / 1000,
    cpuS: (usage.cpuMs - before.cpuMs) / 1000,
    peakRssMb: usage.peakRssMb,
    eventsLost: objects - delivered,
  };
}
