import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { ApiServer } from '../../src/apiserver/api-server.ts';
import { EVENTS, PODS } from '../../src/api/builtin.ts';
import type { Pod } from '../../src/api/builtin.ts';
import type { DeepReadonly } from '../../src/api/object.ts';
import { InformerSet } from '../../src/cache/informer-set.ts';
import type { Client } from '../../src/client/client.ts';
import { HttpClient } from '../../src/client/http-client.ts';
import { Controller } from '../../src/manager/controller.ts';
import type { SyncContext } from '../../src/manager/controller-options.ts';
import { SyncHistory } from '../../src/manager/sync-history.ts';
import { reconcileMetrics } from '../../src/metrics/reconcile-metrics.ts';
import { createRegistry } from '../../src/metrics/registry.ts';
import type { Registry } from '../../src/metrics/registry.ts';
import { workqueueMetrics } from '../../src/metrics/workqueue-metrics.ts';
import { EventBroadcaster } from '../../src/record/event-broadcaster.ts';
import { FakeClock } from '../../src/util/fake-clock.ts';
import { runAll } from '../../src/util/runnable.ts';
import { formatCause } from '../../src/workqueue/queue-item.ts';
import { done } from '../../src/workqueue/outcome.ts';
import { recordingLogger } from '../support/recording-logger.ts';
import { Simulation } from '../support/simulation.ts';

const AT = { namespace: 'default', name: 'web' };

type Sync = (pod: DeepReadonly<Pod>, context: SyncContext) => Promise<void>;

/** An API server, one Pod, and Pod controllers built with the public API. */
class HotLoopFixture {
  readonly clock = new FakeClock();
  readonly client: Client;
  readonly history = new SyncHistory();
  readonly registry: Registry = createRegistry();
  readonly #log = recordingLogger();
  readonly #metrics = {
    workqueue: workqueueMetrics(this.registry),
    reconcile: reconcileMetrics(this.registry),
  };
  readonly #stops: (() => Promise<void>)[] = [];

  constructor() {
    const server = new ApiServer({ clock: this.clock });
    const { clock } = this;
    this.client = new HttpClient({ clock, server: 'https://simulated', handler: server.handler });
  }

  async createPod(): Promise<void> {
    await this.client.create(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: AT,
      spec: { containers: [{ name: 'app', image: 'nginx' }] },
    });
  }

  async label(labels: Record<string, string | null>, fieldManager: string): Promise<void> {
    await this.client.patch(PODS, AT, patchOf(labels), { fieldManager });
  }

  /** Starts a controller and records its runs. `stop` stops it. */
  start(name: string, sync: Sync): { readonly runsMs: number[]; stop(): Promise<void> } {
    const { client, clock, history } = this;
    const { log } = this.#log;
    const informers = new InformerSet(client, { clock });
    const events = new EventBroadcaster({ client, clock, log });
    const runsMs: number[] = [];
    const pods = informers.for(PODS);
    const controller = new Controller(
      { client, clock, log, events, history, metrics: this.#metrics },
      {
        name,
        kind: PODS.kind,
        sync: async (key, context) => {
          runsMs.push(clock.monotonic());
          const pod = pods.lister.get(key);
          if (pod) await sync(pod, context);
          return done();
        },
      },
    ).for(pods);
    const abort = new AbortController();
    const running = runAll(
      [informers, events, controller].map((part) => (signal) => part.run(signal)),
      abort.signal,
    );
    const stop = async () => {
      abort.abort();
      await clock.advance(1000);
      await running;
    };
    this.#stops.push(stop);
    return { runsMs, stop };
  }

  async end(): Promise<void> {
    for (const stop of this.#stops) await stop();
  }

  lines(message: string): Record<string, unknown>[] {
    return this.#log.lines
      .filter((line) => line.message === message)
      .map(({ fields: { within: _, ...fields } }) => fields);
  }

  async warnings(): Promise<string[]> {
    const { items } = await this.client.list(EVENTS, { namespace: 'default' });
    return items
      .map(({ type, reason, message, count, source, involvedObject: { name } }) =>
        [type, reason, name, `x${count}`, source?.component, withoutTimes(message)].join(' '),
      )
      .toSorted();
  }

  async metric(name: string): Promise<Record<string, number>> {
    const metric = await this.registry.getSingleMetric(`crd_controller_${name}`)?.get();
    return Object.fromEntries(
      metric?.values.map(({ labels, value }) => [labels['controller'], value]) ?? [],
    );
  }
}

function patchOf(labels: Record<string, string | null>) {
  return { type: 'merge', body: { metadata: { labels } } } as const;
}

function withoutTimes(message = ''): string {
  return message.replaceAll(/within [\d.]+m?s/g, 'within T');
}

/** Returns a sync handler that sets a label to a value. */
const setsLabel =
  (label: string, value: string, fieldManager: string): Sync =>
  async (pod, { client, signal }) => {
    if (pod.metadata.labels?.[label] === value) return;
    await client.patch(PODS, AT, patchOf({ [label]: value }), { fieldManager, signal });
  };

const gaps = (runsMs: readonly number[]): number[] =>
  runsMs.slice(1).map((ms, at) => ms - (runsMs[at] ?? 0));

describe('A controller that writes the time into a status at every sync', () => {
  let simulation: HotLoopFixture;
  let isFixed: boolean;
  let controller: { readonly runsMs: number[] };

  beforeEach(async () => {
    simulation = new HotLoopFixture();
    isFixed = false;
    await simulation.createPod();
    controller = simulation.start('clocks', async (pod, { client, signal }) => {
      // Slow enough for the time to change.
      await simulation.clock.sleep(5);
      const message = `seen at ${simulation.clock.monotonic()}`;
      const body = { status: { message } };
      if (isFixed && pod.status?.message) return;
      await client.patch(
        PODS,
        AT,
        { type: 'merge', body },
        {
          subresource: 'status',
          fieldManager: 'clock-manager',
          signal,
        },
      );
    });
  });
  afterEach(() => simulation.end());

  it('reports the hot loop once, in the log and in one event, and counts it', async () => {
    await simulation.clock.advance(120_000);
    const message =
      'Each sync changes .status.message (field manager "clock-manager"), and only that change triggers the next sync: 10 times within T. Syncs are postponed by up to 5m0s until this stops.';
    assert.deepEqual(await simulation.warnings(), [
      `Warning HotLoop web x1 pod-controller ${message}`,
    ]);
    assert.deepEqual(simulation.lines('Hot loop detected; postponing the syncs of the key'), [
      {
        controller: 'clocks',
        pod: 'default/web',
        fields: ['.status.message'],
        kind: 'selfFed',
        managers: ['clock-manager'],
        times: 10,
      },
    ]);
    assert.deepEqual(await simulation.metric('hot_loops_total'), { clocks: 1 });
    assert.ok(((await simulation.metric('hot_loop_damped_runs_total'))['clocks'] ?? 0) >= 7);
  });

  it('syncs with increasing delay, up to five minutes', async () => {
    await simulation.clock.advance(1_500_000);
    const seconds = gaps(controller.runsMs).map((ms) => Math.round(ms / 1000));
    assert.deepEqual(seconds.slice(0, 11), Array<number>(11).fill(0));
    assert.deepEqual(seconds.slice(11), [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
  });

  it('syncs the key without delay after the controller was fixed', async () => {
    await simulation.clock.advance(20_000);
    isFixed = true;
    await simulation.clock.advance(100_000);
    assert.equal(simulation.lines('Hot loop ended').length, 1);
    const before = controller.runsMs.length;
    await simulation.label({ by: 'user' }, 'kubectl');
    await simulation.clock.advance(1000);
    await simulation.label({ by: 'another' }, 'kubectl');
    await simulation.clock.advance(600_000);
    assert.equal(controller.runsMs.length, before + 2);
    assert.equal((await simulation.warnings()).length, 1);
  });

  it('records its own write as the cause, and the delay, in the run history', async () => {
    await simulation.clock.advance(30_000);
    const { last, syncs } = simulation.history.of('clocks', 'default/web') ?? assert.fail();
    assert.equal(last.length, 5);
    assert.ok(syncs > 12);
    const { causes, calls, end } = last.at(-1) ?? assert.fail();
    assert.deepEqual(causes.map(formatCause), [
      'Pod default/web changed: .status.message',
      'postponed: in a hot loop',
    ]);
    const [{ afterMs, ms } = assert.fail()] = calls;
    assert.deepEqual(calls, [
      { verb: 'patch', resource: 'pods/status', at: 'default/web', afterMs, ms },
    ]);
    assert.equal(end?.result, 'done');
  });
});

describe('Two controllers that set different values of a label', () => {
  it('reports each controller to the other, delays both, and recovers when one stops', async () => {
    const simulation = new HotLoopFixture();
    await simulation.createPod();
    const red = simulation.start('red', setsLabel('team', 'red', 'red-manager'));
    const blue = simulation.start('blue', setsLabel('team', 'blue', 'blue-manager'));
    await simulation.clock.advance(60_000);
    assert.ok(red.runsMs.length + blue.runsMs.length < 80, String(red.runsMs.length));
    const fields = {
      pod: 'default/web',
      fields: ['.metadata.labels.team'],
      kind: 'disputed',
      times: 5,
    };
    const warnedLines = simulation.lines('Hot loop detected; postponing the syncs of the key');
    const both = ['red-manager', 'blue-manager'];
    assert.deepEqual(
      warnedLines.toSorted((a, b) =>
        String(b['controller']).localeCompare(String(a['controller'])),
      ),
      [
        { ...fields, controller: 'red', managers: both },
        { ...fields, controller: 'blue', managers: both.toReversed() },
      ],
    );
    const messageOf = (us: string, them: string) =>
      `Warning HotLoop web x1 pod-controller Conflicting writes to .metadata.labels.team: this controller ("${us}-manager") writes it and "${them}-manager" changes it again, 5 times within T. Syncs are postponed by up to 5m0s until this stops.`;
    assert.deepEqual(await simulation.warnings(), [
      messageOf('blue', 'red'),
      messageOf('red', 'blue'),
    ]);

    await blue.stop();
    await simulation.clock.advance(600_000);
    assert.equal(simulation.lines('Hot loop ended').length, 1);
    const { metadata } = await simulation.client.get(PODS, AT);
    assert.equal(metadata.labels?.['team'], 'red');
    const before = red.runsMs.length;
    await simulation.clock.advance(600_000);
    assert.equal(red.runsMs.length, before, 'steady');
    await simulation.end();
  });
});

describe('A client that resets a field to its default whenever it is changed', () => {
  it('reports the name of that client to the controller that changes the field', async () => {
    const simulation = new HotLoopFixture();
    await simulation.createPod();
    simulation.start('tier', setsLabel('tier', 'gold', 'tier-manager'));
    const stop = new AbortController();
    const defaulting = (async () => {
      const stream = await simulation.client.watch(PODS, {
        namespace: AT.namespace,
        signal: stop.signal,
      });
      for await (const event of stream) {
        if (event.type !== 'modified' || event.object.metadata.labels?.['tier'] !== 'gold')
          continue;
        await simulation.label({ tier: 'default' }, 'policy-webhook');
      }
    })();
    await simulation.clock.advance(30_000);
    const [line] = simulation.lines('Hot loop detected; postponing the syncs of the key');
    assert.deepEqual(line?.['managers'], ['tier-manager', 'policy-webhook']);
    assert.equal((await simulation.warnings()).length, 1);
    stop.abort();
    await defaulting;
    await simulation.end();
  });
});

describe('A Count whose Pods are created and deleted continuously', () => {
  it('detects no hot loop', async () => {
    const simulation = new Simulation();
    simulation.startCluster();
    await simulation.installCrd();
    simulation.startDaemon();
    await simulation.applyCount({ count: 5 });
    await simulation.untilReady(5);
    for (let turn = 0; turn < 8; turn++) {
      await simulation.client.delete(PODS, simulation.podAt(turn % 5), { gracePeriodSeconds: 0 });
      if (turn === 5) await simulation.patchCount({ name: 'nginx:2' });
      await simulation.pass(turn % 3 === 0 ? 5 : 300);
    }
    await simulation.untilReady(5);
    // The readiness of the Pod alternates, and with it the status of the Count.
    for (let turn = 0; turn < 40; turn++) {
      const status = turn % 2 === 0 ? 'False' : 'True';
      const body = { status: { conditions: [{ type: 'Ready', status }] } };
      const patch = { type: 'merge', body } as const;
      await simulation.client.patch(PODS, simulation.podAt(0), patch, { subresource: 'status' });
      if (turn % 5 === 0) await simulation.pass(30);
    }
    await simulation.untilReady(5);
    const messages = simulation.lines.map(({ message }) => message);
    assert.ok(messages.filter((message) => message === 'Created Pod').length >= 8);
    const written = simulation.server.requests.count({ resource: 'counts', subresource: 'status' });
    assert.ok(written > 20, String(written));
    assert.ok(!messages.some((message) => message.startsWith('Hot loop')));
    await simulation.end();
  });
});
