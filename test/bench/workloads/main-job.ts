/**
 * The main job of a controller: Foos become a Deployment, an event and a status each, on a complete API server.
 * Measured from the start of the program (or, in a burst, from the first created Foo) until the server has all
 * of them.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parse } from 'yaml';
import { startControlPlane } from '../support/control-plane.ts';
import type { ServerKind } from '../support/control-plane.ts';
import { MeteredProcess } from '../support/metered-process.ts';
import type { Usage } from '../support/metered-process.ts';
import {
  daemonFromBundle,
  daemonFromSource,
  goProgram,
  nodeProgram,
  rustProgram,
} from '../support/programs.ts';
import type { Program } from '../support/programs.ts';
import { inParallel, readKubeconfig, ServerApi } from '../support/server-api.ts';
import { grouped, numberIn, numbersIn } from '../support/workload.ts';
import type { Case, Options, Sample, Setting, Workload } from '../support/workload.ts';

interface Contestant {
  readonly program: () => Promise<Program>;
  readonly args?: readonly string[];
  /** Name of the flag that sets the number of concurrent syncs. */
  readonly workers: string;
}

/** The baseline comes first. Its workers are ten unless set. */
const CONTESTANTS: Readonly<Record<string, Contestant>> = {
  bare: { program: async () => nodeProgram('clients/bare-controller.ts'), workers: 'workers' },
  ours: {
    program: daemonFromBundle,
    args: ['--controllers=foo'],
    workers: 'concurrent-foo-syncs',
  },
  'ours-source': {
    program: async () => daemonFromSource,
    args: ['--controllers=foo'],
    workers: 'concurrent-foo-syncs',
  },
  'client-go': { program: () => goProgram('controller'), workers: 'workers' },
  'kube-rs': { program: () => rustProgram('controller'), workers: 'workers' },
};

const GROUP = '/apis/samplecontroller.k8s.io/v1alpha1';
const NAMESPACE = 'bench';
const FOOS = `${GROUP}/namespaces/${NAMESPACE}/foos`;
const DEPLOYMENTS = `/apis/apps/v1/namespaces/${NAMESPACE}/deployments`;
const EVENTS = `/api/v1/namespaces/${NAMESPACE}/events`;

/** Concurrent requests that create Foos. */
const WIDTH = 20;

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
  },
  short: { objects: '300', workers: '0', start: 'existing', server: 'embedded' },
  columns: [
    { key: 'wallS', title: 'wall s', digits: 2, ratio: true },
    { key: 'cpuS', title: 'CPU s', digits: 2, ratio: true },
    { key: 'peakRssMb', title: 'peak RSS MiB', ratio: true },
    { key: 'eventsLost', title: 'events lost' },
  ],
  cases(options: Options): readonly Case[] {
    const { server = '', start = '', sources = '' } = options;
    const timeoutMs = numberIn(options, 'timeout-seconds') * 1000;
    const contestants = Object.keys(CONTESTANTS).filter(
      (name) => name !== 'ours-source' || sources === 'both',
    );
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
            open: () => open(kind as ServerKind, { objects, workers, when, timeoutMs }),
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

async function open(kind: ServerKind, job: Job): Promise<Setting> {
  // Not during a round. A failure is reported by the sample.
  for (const { program } of Object.values(CONTESTANTS)) await program().catch(() => undefined);
  const plane = await startControlPlane(kind);
  const api = new ServerApi(readKubeconfig(plane.kubeconfig), WIDTH);
  await installFoos(api);
  return {
    sample: (name) => sample(api, plane.kubeconfig, { ...job, contestant: CONTESTANTS[name]! }),
    [Symbol.asyncDispose]: async () => {
      await api.close();
      await plane[Symbol.asyncDispose]();
    },
  };
}

async function installFoos(api: ServerApi): Promise<void> {
  const file = join(import.meta.dirname, '../../../crds/foos.samplecontroller.k8s.io.yaml');
  const definition = parse(readFileSync(file, 'utf8')) as object;
  await api.request('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition);
  const metadata = { name: NAMESPACE };
  await api.request('POST', '/api/v1/namespaces', {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata,
  });
  for (;;) {
    try {
      await api.count(FOOS);
      return;
    } catch {
      // The resource is not served yet.
      await sleep(50);
    }
  }
}

async function sample(
  api: ServerApi,
  kubeconfig: string,
  { contestant, objects, workers, when, timeoutMs }: Job & { readonly contestant: Contestant },
): Promise<Sample> {
  const program = await contestant.program();
  for (const path of [FOOS, DEPLOYMENTS, EVENTS]) await api.request('DELETE', path);
  if (when !== 'burst') await createFoos(api, objects);
  const flags = workers === 0 ? [] : [`--${contestant.workers}=${workers}`];
  const args = [...(contestant.args ?? []), ...flags];
  let started = performance.now();
  await using running = new MeteredProcess(program, { args, env: { KUBECONFIG: kubeconfig } });
  let before: Usage = { cpuMs: 0, rssMb: 0, peakRssMb: 0 };
  if (when === 'burst') {
    // Caches are synced and leases acquired when a program has been idle for a moment.
    await sleep(2000);
    before = running.usage();
    started = performance.now();
    await createFoos(api, objects);
  }
  const deadline = started + timeoutMs;
  const counts = { deployments: 0, events: 0 };
  let completedAt = 0;
  for (;;) {
    running.requireRunning();
    const events = await api.count(EVENTS);
    if (events > counts.events) completedAt = performance.now();
    counts.events = events;
    if (counts.deployments < objects) counts.deployments = await api.count(DEPLOYMENTS);
    const now = performance.now();
    if (counts.deployments >= objects && (events >= objects || now > completedAt + LOST_AFTER_MS)) {
      if ((await statuses(api)) === objects) break;
      completedAt = performance.now();
    }
    if (now > deadline) {
      const got = `${counts.deployments} Deployments, ${events} events`;
      throw new Error(`not finished after ${timeoutMs / 1000} s: ${got} ${running.log}`);
    }
    await sleep(counts.deployments < objects ? 100 : 20);
  }
  const usage = running.usage();
  const delivered = await verify(api, objects);
  return {
    wallS: (completedAt - started) / 1000,
    cpuS: (usage.cpuMs - before.cpuMs) / 1000,
    peakRssMb: usage.peakRssMb,
    eventsLost: objects - delivered,
  };
}

function createFoos(api: ServerApi, objects: number): Promise<void> {
  return inParallel(objects, WIDTH, (number) =>
    api.request('POST', FOOS, {
      apiVersion: 'samplecontroller.k8s.io/v1alpha1',
      kind: 'Foo',
      metadata: { name: `foo-${number}` },
      spec: { deploymentName: `foo-${number}`, replicas: 1 },
    }),
  );
}

interface Listed {
  readonly items: readonly {
    readonly metadata: {
      readonly uid: string;
      readonly generation: number;
      readonly ownerReferences?: readonly { readonly uid: string }[];
    };
    readonly status?: {
      readonly observedGeneration?: number;
      readonly conditions?: readonly object[];
    };
    readonly involvedObject?: { readonly uid: string };
  }[];
}

/** Returns the number of Foos with a complete status. */
async function statuses(api: ServerApi): Promise<number> {
  const { items } = await api.request<Listed>('GET', FOOS);
  return items.filter(
    ({ metadata, status }) =>
      status?.observedGeneration === metadata.generation && (status.conditions?.length ?? 0) > 0,
  ).length;
}

/** Returns the number of Foos with an event. @throws {Error} if a Foo has no Deployment of its own */
async function verify(api: ServerApi, objects: number): Promise<number> {
  const list = async (path: string) => (await api.request<Listed>('GET', path)).items;
  const foos = new Set((await list(FOOS)).map(({ metadata }) => metadata.uid));
  const owners = (await list(DEPLOYMENTS)).map(
    ({ metadata }) => metadata.ownerReferences?.[0]?.uid,
  );
  const owned = new Set(owners.filter((uid) => uid !== undefined && foos.has(uid)));
  if (foos.size !== objects || owned.size !== objects || owners.length !== objects) {
    throw new Error(`${foos.size} Foos own ${owned.size} of ${owners.length} Deployments`);
  }
  const events = (await list(EVENTS)).map(({ involvedObject }) => involvedObject?.uid ?? '');
  return new Set(events.filter((uid) => foos.has(uid))).size;
}
