/**
 * The cost of open debug pages for a daemon with many delayed keys, some of which are changed all the time (embedded
 * server). Each contestant is a set of pages, which send the requests of the page in a browser.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { startControlPlane } from '../support/control-plane.ts';
import { MeteredProcess } from '../support/metered-process.ts';
import { daemonFromBundle } from '../support/programs.ts';
import { inParallel, readKubeconfig, ServerApi } from '../support/server-api.ts';
import { grouped, numberIn } from '../support/workload.ts';
import type { Case, Options, Setting, Workload } from '../support/workload.ts';

const GROUP = 'cnat.programming-kubernetes.info';
/** Port of the debug pages. */
const PORT = 16_060;

const ATS = `/apis/${GROUP}/v1alpha1/namespaces/default/ats`;

/** Time between two updates of a page, as in `src/serving/page/browser/main.ts`, in milliseconds. */
const INTERVAL_MS = 2000;

/** Requests of an update, by view. The list of keys is loaded less often. */
const KEYS = 'debug/keys';
const MS_PER_LISTED_KEY = 1;
const OVERVIEW = ['debug/status', 'debug/queues?limit=0', 'metrics'];
const KEY = ['why?key=default/at-7', `object?resource=ats.${GROUP}&key=default/at-7`];
const PAGES: Readonly<Record<string, readonly (readonly string[])[]>> = {
  'no page': [],
  overview: [OVERVIEW],
  keys: [[...OVERVIEW, KEYS]],
  key: [[...OVERVIEW, ...KEY.map((path) => `debug/${path}`)]],
  '5 overviews': Array.from({ length: 5 }, () => OVERVIEW),
};

export const workload: Workload = {
  description: 'CPU and memory of a daemon with open debug pages',
  options: { keys: '10000', 'changes-per-second': '20', 'page-seconds': '10' },
  short: { keys: '2000', 'page-seconds': '5' },
  columns: [
    { key: 'cpuPercent', title: 'CPU %', digits: 1 },
    { key: 'rssMb', title: 'RSS MiB' },
  ],
  cases(options: Options): readonly Case[] {
    const keys = numberIn(options, 'keys');
    const changes = numberIn(options, 'changes-per-second');
    return [
      {
        name: `${grouped(keys)} keys, ${changes} changes/s`,
        contestants: Object.keys(PAGES),
        open: () => open(keys, changes, numberIn(options, 'page-seconds') * 1000),
      },
    ];
  },
};

interface At {
  readonly metadata: { readonly name: string };
  readonly spec: object;
}

async function open(keys: number, changes: number, pageMs: number): Promise<Setting> {
  const stack = new AsyncDisposableStack();
  const program = await daemonFromBundle();
  const { kubeconfig } = stack.use(await startControlPlane('embedded'));
  const api = new ServerApi(readKubeconfig(kubeconfig), 20);
  stack.defer(() => api.close());
  await api.install(`ats.${GROUP}.yaml`, ATS);
  await inParallel(keys, 20, (number) =>
    api.request('POST', ATS, {
      apiVersion: `${GROUP}/v1alpha1`,
      kind: 'At',
      metadata: { name: `at-${number}` },
      spec: { schedule: '2100-01-01T00:00:00Z', command: 'echo' },
    }),
  );
  const args = ['--controllers=at', `--debug-bind-address=127.0.0.1:${PORT}`];
  const daemon = stack.use(new MeteredProcess(program, { args, env: { KUBECONFIG: kubeconfig } }));
  while ((await delayedKeys()) < keys) {
    daemon.requireRunning();
    await sleep(500);
  }
  const { items } = await api.request<{ readonly items: readonly At[] }>('GET', ATS);
  let changed = 0;
  const change = async (): Promise<void> => {
    const at = items[changed++ % items.length]!;
    const spec = { ...at.spec, command: `echo ${changed}` };
    const { name } = at.metadata;
    const { metadata } = await api.request<At>('GET', `${ATS}/${name}`);
    await api.request('PUT', `${ATS}/${name}`, { ...at, metadata, spec });
  };
  const failures: unknown[] = [];
  const timer = setInterval(() => {
    void change().catch((error: unknown) => failures.push(error));
  }, 1000 / changes);
  stack.defer(() => clearInterval(timer));
  // The history of syncs fills.
  await sleep(Math.min(20_000, 1_100_000 / changes));
  return {
    sample: async (contestant) => {
      const stop = new AbortController();
      const pages = PAGES[contestant]!.map((paths) => openPage(paths, stop.signal));
      await sleep(1000);
      const before = daemon.usage();
      let rssMb = 0;
      const seconds = pageMs / 1000;
      for (let second = 0; second < seconds; second++) {
        await sleep(1000);
        rssMb += daemon.usage().rssMb / seconds;
      }
      const cpuMs = daemon.usage().cpuMs - before.cpuMs;
      stop.abort();
      await Promise.all(pages);
      if (failures.length > 0) throw new Error('changes failed', { cause: failures[0] });
      return { cpuPercent: (100 * cpuMs) / pageMs, rssMb };
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

async function delayedKeys(): Promise<number> {
  try {
    const { controllers } = JSON.parse(await get('debug/queues')) as {
      readonly controllers: readonly { readonly delayed: { readonly count: number } }[];
    };
    return controllers[0]?.delayed.count ?? 0;
  } catch {
    // The daemon does not serve yet.
    return 0;
  }
}

/** Sends the requests of a page until the signal aborts. */
async function openPage(paths: readonly string[], signal: AbortSignal): Promise<void> {
  const [main, others] = [paths.slice(0, OVERVIEW.length), paths.slice(OVERVIEW.length)];
  let keysDueMs = 0;
  while (!signal.aborted) {
    await Promise.all(main.map(get));
    for (const path of others) {
      if (path !== KEYS) await get(path);
      else if (performance.now() >= keysDueMs) {
        const { keys } = JSON.parse(await get(path)) as { readonly keys: readonly unknown[] };
        keysDueMs = performance.now() + MS_PER_LISTED_KEY * keys.length;
      }
    }
    await sleep(INTERVAL_MS, undefined, { signal }).catch(() => undefined);
  }
}

async function get(path: string): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${PORT}/${path}`);
  const text = await response.text();
  if (!response.ok) throw new Error(`GET ${path}: ${response.status}: ${text}`);
  return text;
}
