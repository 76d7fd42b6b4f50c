import { COUNTS } from '../../src/api/generated/count.ts';
import { ATS } from '../../src/api/generated/at.ts';
import type { HttpHandler, HttpResponse } from '../../src/util/http.ts';
import type { Scrape } from '../../test/support/scraped-daemons.ts';
import { DAEMON, ScrapedDaemons } from '../../test/support/scraped-daemons.ts';

/** A run of daemons that Prometheus scrapes, and the alerts that it must cause. */
export interface Scenario {
  readonly name: string;
  /** Alerts that fire; no others may fire. */
  readonly fires: readonly string[];
  readonly run: (world: ScrapedDaemons) => Promise<void>;
  /** Replaces sample values that a scenario cannot cause safely. */
  readonly replaceSample?: (sample: { readonly name: string; readonly value: number }) => number;
}

const MINUTE_MS = 60_000;

/** Runs a scenario in virtual time and returns its scrapes. */
export async function scrapesOf({ run, replaceSample }: Scenario): Promise<readonly Scrape[]> {
  const world = new ScrapedDaemons();
  try {
    world.startCluster();
    await run(world);
    return replaceSample
      ? world.scrapes.map((scrape) => changed(scrape, replaceSample))
      : world.scrapes;
  } finally {
    world.server.faults.clear();
    await world.end();
  }
}

function changed(scrape: Scrape, replaceSample: NonNullable<Scenario['replaceSample']>): Scrape {
  const text = scrape.text?.replaceAll(
    /^([a-z]\w*)((?:\{.*\})?) (\S+)$/gm,
    (_line, name: string, labels: string, value: string) =>
      `${name}${labels} ${replaceSample({ name, value: Number(value) })}`,
  );
  return { ...scrape, text };
}

/** Two replicas, with an object of each kind. */
async function startTwoReplicas(world: ScrapedDaemons): Promise<() => Promise<void>> {
  await world.installAll();
  await world.applyExamples();
  const stop = world.startScraped('a');
  world.startScraped('b');
  await world.passScraped(5 * MINUTE_MS);
  return stop;
}

async function counts(world: ScrapedDaemons, number: number): Promise<void> {
  for (let i = 0; i < number; i++) await world.applyCount({ count: 1 }, `count-${i}`);
}

function at(world: ScrapedDaemons, dueMs: number) {
  const schedule = new Date(Math.floor(dueMs / 1000) * 1000).toISOString();
  return world.client.create(ATS, {
    apiVersion: 'cnat.programming-kubernetes.info/v1alpha1',
    kind: 'At',
    metadata: { namespace: world.namespace, name: 'tea' },
    spec: { schedule, command: 'echo tea' },
  });
}

/** A network that can drop all packets. */
class PacketLoss {
  #isDropping = false;

  start(): void {
    this.#isDropping = true;
  }

  readonly around = (handler: HttpHandler): HttpHandler => {
    const never = (signal?: AbortSignal): Promise<never> =>
      new Promise((_, reject) => {
        const end = () => reject(signal?.reason instanceof Error ? signal.reason : new Error());
        if (signal?.aborted) end();
        signal?.addEventListener('abort', end, { once: true });
      });
    const dropPackets = async function* (
      this: PacketLoss,
      { body }: HttpResponse,
      signal?: AbortSignal,
    ): AsyncGenerator<Uint8Array> {
      for await (const chunk of body) {
        if (this.#isDropping) await never(signal);
        yield chunk;
      }
    }.bind(this);
    return async (request) => {
      const isLease = request.path.includes('/leases');
      if (this.#isDropping && !isLease) return never(request.signal);
      const response = await handler(request);
      return isLease ? response : { ...response, body: dropPackets(response, request.signal) };
    };
  };
}

/** Two replicas without work. */
export const HEALTHY: Scenario = {
  name: 'healthy',
  fires: [],
  run: async (world) => {
    await startTwoReplicas(world);
    await world.passScraped(5 * MINUTE_MS);
  },
};

export const SCENARIOS: readonly Scenario[] = [
  HEALTHY,
  {
    name: 'a rollout, a lost leader, an outage of two minutes, and recovery',
    fires: [],
    run: async (world) => {
      const stop = await startTwoReplicas(world);
      // The new replica starts before the old one stops.
      world.startScraped('c');
      await world.passScraped(MINUTE_MS);
      await stop();
      await world.passScraped(MINUTE_MS / 2);
      world.forget('a');
      await world.client.patch(COUNTS, world.at, { type: 'merge', body: { spec: { count: 5 } } });
      await at(world, world.now() + 3 * MINUTE_MS);
      await world.passScraped(10 * MINUTE_MS);
      const restore = world.server.faults.beforeRequest(({ userAgent }) =>
        userAgent.startsWith(DAEMON) ? 'reset' : undefined,
      );
      await world.passScraped(2 * MINUTE_MS);
      restore();
      await world.passScraped(30 * MINUTE_MS);
    },
  },
  {
    name: 'a CRD is not installed',
    fires: [],
    run: async (world) => {
      await world.installCrd();
      await world.applyCount();
      world.startScraped('a');
      await world.passScraped(30 * MINUTE_MS);
    },
  },
  {
    name: 'no leader election, one replica',
    fires: [],
    run: async (world) => {
      await world.installAll();
      await world.applyExamples();
      world.startScraped('a', { config: { leaderElection: undefined } });
      await world.passScraped(20 * MINUTE_MS);
    },
  },
  {
    name: 'the only replica is gone',
    fires: ['CrdControllerAbsent'],
    run: async (world) => {
      await world.installAll();
      const stop = world.startScraped('a');
      await world.passScraped(5 * MINUTE_MS);
      await stop();
      await world.passScraped(15 * MINUTE_MS);
    },
  },
  {
    name: 'no replica may write the Lease',
    fires: ['CrdControllerNoLeader'],
    run: async (world) => {
      await world.installAll();
      world.server.faults.beforeRequest(({ info }) =>
        info?.resource === 'leases' ? 403 : undefined,
      );
      world.startScraped('a');
      world.startScraped('b');
      await world.passScraped(5 * MINUTE_MS);
    },
  },
  {
    name: 'replicas have different Leases',
    fires: ['CrdControllerManyLeaders'],
    run: async (world) => {
      await world.installAll();
      world.startScraped('a');
      world.startScraped('b', { leaseNamespace: 'kube-system' });
      await world.passScraped(5 * MINUTE_MS);
    },
  },
  {
    name: 'one object fails in a quiet cluster',
    fires: ['CrdControllerReconcileErrors'],
    run: async (world) => {
      await startTwoReplicas(world);
      world.server.faults.beforeRequest(({ info, method }) =>
        method === 'POST' && info?.resource === 'pods' ? 403 : undefined,
      );
      await counts(world, 1);
      await world.passScraped(40 * MINUTE_MS);
    },
  },
  {
    name: 'a request never ends',
    fires: ['CrdControllerWorkerStuck'],
    run: async (world) => {
      await world.installAll();
      const isStuck = (path: string, method: string) =>
        method === 'POST' && path.split('?')[0]?.endsWith('/pods') === true;
      world.startScraped('a', {
        requestTimeoutMs: 0,
        around: (handler) => (request) =>
          isStuck(request.path, request.method)
            ? new Promise((_, reject) => {
                request.signal?.addEventListener('abort', () => reject(new Error('aborted')));
              })
            : handler(request),
      });
      await counts(world, 1);
      await world.passScraped(15 * MINUTE_MS);
    },
  },
  {
    name: 'writes take 20 seconds under load',
    fires: ['CrdControllerQueueSlow'],
    run: async (world) => {
      await world.installAll();
      world.server.faults.beforeRequest(async ({ info, method, userAgent }) => {
        if (userAgent === DAEMON && method === 'POST' && info?.resource === 'pods') {
          await world.sleep(20_000);
        }
      });
      world.startScraped('a');
      await counts(world, 1000);
      await world.passScraped(30 * MINUTE_MS);
    },
  },
  {
    name: 'a fifth of the requests get 503',
    fires: ['CrdControllerAPIErrors'],
    run: async (world) => {
      await startTwoReplicas(world);
      let requests = 0;
      world.server.faults.beforeRequest(({ userAgent }) =>
        userAgent.startsWith(DAEMON) && ++requests % 5 === 0 ? 503 : undefined,
      );
      await world.passScraped(20 * MINUTE_MS);
    },
  },
  {
    name: 'the client-side rate limit is too low',
    fires: ['CrdControllerThrottled', 'CrdControllerQueueSlow'],
    run: async (world) => {
      await world.installAll();
      world.startScraped('a', { qps: 1, config: { controllers: ['count'] } });
      await counts(world, 500);
      await world.passScraped(30 * MINUTE_MS);
    },
  },
  {
    name: 'the event loop is busy',
    fires: ['CrdControllerEventLoopLag'],
    run: async (world) => {
      await startTwoReplicas(world);
      await world.passScraped(10 * MINUTE_MS);
    },
    replaceSample: ({ name, value }) => (name === 'nodejs_eventloop_lag_p99_seconds' ? 0.8 : value),
  },
  {
    name: 'the heap is nearly full',
    fires: ['CrdControllerHeapNearLimit'],
    run: async (world) => {
      await startTwoReplicas(world);
      await world.passScraped(10 * MINUTE_MS);
    },
    replaceSample: ({ name, value }) => {
      if (name === 'crd_controller_heap_limit_bytes') return 256 * 2 ** 20;
      return name === 'nodejs_heap_size_used_bytes' ? 230 * 2 ** 20 : value;
    },
  },
  {
    name: 'the network drops everything except leases',
    fires: ['CrdControllerInformerStale', 'CrdControllerAPIErrors'],
    run: async (world) => {
      await world.installAll();
      await world.applyExamples();
      const network = new PacketLoss();
      world.startScraped('a', { around: network.around });
      await world.passScraped(5 * MINUTE_MS);
      network.start();
      await world.passScraped(20 * MINUTE_MS);
    },
  },
  {
    name: 'an At is due while no replica runs',
    fires: ['CrdControllerAtMissed'],
    run: async (world) => {
      await world.installAll();
      await at(world, world.now() + MINUTE_MS);
      await world.pass(10 * MINUTE_MS);
      world.startScraped('a');
      await world.passScraped(5 * MINUTE_MS);
    },
  },
  {
    name: 'the Pod of an At is rejected for three minutes',
    fires: ['CrdControllerAtMissed'],
    run: async (world) => {
      await startTwoReplicas(world);
      await world.passScraped(15 * MINUTE_MS);
      const admit = world.server.faults.beforeRequest(({ info, method }) =>
        method === 'POST' && info?.resource === 'pods' ? 403 : undefined,
      );
      await at(world, world.now() + MINUTE_MS);
      await world.passScraped(4 * MINUTE_MS);
      admit();
      await world.passScraped(5 * MINUTE_MS);
    },
  },
];
