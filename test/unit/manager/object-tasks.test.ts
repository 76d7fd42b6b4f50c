import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { CONFIG_MAPS, LEASES } from '../../../src/api/builtin.ts';
import type { ConfigMap } from '../../../src/api/builtin.ts';
import type { ObjectKey } from '../../../src/api/object-key.ts';
import type { DeepReadonly } from '../../../src/api/object.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { WriteFence } from '../../../src/client/write-fence.ts';
import { callService } from '../../../src/manager/call-service.ts';
import { formatCall, SyncHistory } from '../../../src/manager/sync-history.ts';
import type { Controller } from '../../../src/manager/controller.ts';
import { objectTask, objectTimer } from '../../../src/manager/object-tasks.ts';
import type { ObjectTaskContext } from '../../../src/manager/object-tasks.ts';
import { runControllers } from '../../../src/manager/run-controllers.ts';
import type {
  ControllerKit,
  ControllerManagerOptions,
} from '../../../src/manager/run-controllers.ts';
import { metricsOf } from '../../../src/metrics/metrics.ts';
import { createRegistry, expose } from '../../../src/metrics/registry.ts';
import type { ShardHandler } from '../../../src/sharding/shards.ts';
import { Deferred } from '../../../src/util/deferred.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { FakeFetch } from '../../../src/util/fake-fetch.ts';
import { TerminalError } from '../../../src/workqueue/outcome.ts';
import { recordingLogger } from '../../support/recording-logger.ts';
import { isAbruptStop } from '../../../src/util/runnable.ts';

const NAMESPACE = 'default';

let clock: FakeClock;
let server: ApiServer;
let client: HttpClient;
let log: ReturnType<typeof recordingLogger>;
/** Starts and ends of tasks: `start a`, `end a`. */
let events: string[];

function setUp(): void {
  clock = new FakeClock();
  server = new ApiServer({ clock });
  client = new HttpClient({ handler: server.handler, server: 'https://test', clock });
  log = recordingLogger();
  events = [];
}

const create = (name: string, data: Record<string, string> = {}) =>
  client.create(CONFIG_MAPS, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: NAMESPACE, name },
    data,
  });
const remove = (name: string) => client.delete(CONFIG_MAPS, { namespace: NAMESPACE, name });
const edit = (name: string, data: Record<string, string | null>) =>
  client.patch(CONFIG_MAPS, { namespace: NAMESPACE, name }, { type: 'merge', body: { data } });

/** Runs controllers; returns the function that stops them. */
async function run(
  build: (kit: ControllerKit) => Controller,
  options: Partial<ControllerManagerOptions> = {},
): Promise<{ readonly stop: () => Promise<void>; readonly ended: Promise<unknown> }> {
  const stop = new AbortController();
  const running = runControllers(
    { client, clock, log: log.log, controllers: (kit) => [build(kit)], ...options },
    stop.signal,
  );
  const ended = running.catch((error: unknown) => error);
  await clock.advance(1000);
  return {
    ended,
    stop: async () => {
      stop.abort();
      await clock.advance(40_000);
      await running;
    },
  };
}

const selected = (kit: ControllerKit) =>
  kit.informers.for(CONFIG_MAPS, { fieldSelector: 'metadata.name!=kube-root-ca.crt' });

/** A task that runs until its signal aborts. */
async function untilStopped(
  { metadata }: DeepReadonly<ConfigMap>,
  { signal }: ObjectTaskContext,
): Promise<void> {
  events.push(`start ${metadata.name}`);
  await clock.sleep(Number.MAX_SAFE_INTEGER, signal);
  events.push(`end ${metadata.name}`);
}

const tasks = (task: typeof untilStopped) => (kit: ControllerKit) =>
  objectTask(kit, selected(kit), {
    name: 'tail',
    when: ({ data }) => data?.['tail'] !== 'no',
    run: task,
  });

it('tasks and timers call services with the fetch of the kit, and the calls of timers are in the history', async () => {
  setUp();
  const service = new FakeFetch();
  const history = new SyncHistory();
  await create('a');
  const probe = (name: string) => ({
    name,
    run: async (_: unknown, context: ObjectTaskContext) => {
      await callService(context, 'GET', `https://service.test/${name}`);
    },
  });
  for (const build of [
    (kit: ControllerKit) => objectTask(kit, selected(kit), probe('task')),
    (kit: ControllerKit) =>
      objectTimer(kit, selected(kit), { ...probe('timer'), intervalMs: 600_000 }),
  ]) {
    const { stop } = await run(build, { fetch: service.fetch, history });
    await stop();
  }
  const { last = [] } = history.of('timer', `${NAMESPACE}/a`) ?? {};
  assert.deepEqual(last[0]?.calls.map(formatCall), ['GET https://service.test 200 0ms']);
  const calls = ['task', 'timer'].map((name) => `GET https://service.test/${name}`);
  assert.deepEqual(service.calls, calls);
});

describe('A task of each object', () => {
  beforeEach(setUp);

  it('runs from the creation of its object to the deletion, and through its changes', async () => {
    await create('a');
    const { stop } = await run(tasks(untilStopped));
    await create('b');
    await edit('a', { text: 'new' });
    await clock.advance(120_000);
    assert.deepEqual(events.splice(0), ['start a', 'start b']);
    await remove('a');
    await clock.advance(1000);
    assert.deepEqual(events.splice(0), ['end a']);
    await edit('b', { tail: 'no' });
    await clock.advance(1000);
    assert.deepEqual(events.splice(0), ['end b']);
    await edit('b', { tail: null });
    await clock.advance(1000);
    assert.deepEqual(events.splice(0), ['start b']);
    await stop();
    assert.deepEqual(events, ['end b']);
  });

  it('of a new object of the same name starts when the previous one has ended', async () => {
    const gate = new Deferred();
    const { stop } = await run(
      tasks(async (object, context) => {
        await untilStopped(object, context);
        await gate.promise;
        events.push('released');
      }),
    );
    await create('a');
    await clock.advance(1000);
    await remove('a');
    await create('a');
    await clock.advance(15_000);
    assert.deepEqual(events, ['start a', 'end a']);
    const warned = log.lines.filter(({ message }) => message.startsWith('Task has not stopped'));
    assert.equal(warned.length, 1);
    gate.resolve();
    await clock.advance(1000);
    assert.deepEqual(events, ['start a', 'end a', 'released', 'start a']);
    await stop();
  });

  it('that fails is logged, counted and started again with backoff, which a healthy minute resets', async () => {
    const registry = createRegistry();
    const starts: number[] = [];
    const { stop } = await run(
      tasks(async (_, { signal }) => {
        starts.push(clock.monotonic());
        if (starts.length === 4) await clock.sleep(120_000, signal);
        throw new Error('connection reset');
      }),
      { metrics: metricsOf(registry) },
    );
    await create('a');
    await clock.advance(121_000);
    const gaps = starts.slice(1).map((ms, index) => ms - (starts[index] ?? 0));
    assert.deepEqual(gaps.slice(0, 5), [5, 10, 20, 120_005, 10]);
    const { text } = await expose(registry);
    assert.match(text, /controller_runtime_reconcile_errors_total\{controller="tail"\} [1-9]/);
    assert.ok(log.lines.some(({ error }) => String(error) === 'Error: connection reset'));
    await stop();
  });

  it('that has completed, or failed with a terminal error, is not started again', async () => {
    let starts = 0;
    const { stop } = await run(
      tasks(async ({ data }) => {
        starts++;
        if (data?.['bad']) throw new TerminalError('spec is invalid');
      }),
    );
    await create('a');
    await create('b', { bad: 'yes' });
    await clock.advance(1000);
    assert.equal(starts, 2);
    await edit('a', { text: 'new' });
    await edit('b', { text: 'new' });
    await clock.advance(600_000);
    assert.equal(starts, 2);
    await remove('b');
    await create('b');
    await clock.advance(1000);
    assert.equal(starts, 3);
    await stop();
  });

  it('stops when the process loses its lease', async () => {
    const fence = new WriteFence();
    const fenced = new HttpClient({
      handler: fence.wrap(server.handler),
      server: 'https://test',
      clock,
    });
    await create('a');
    const { ended } = await run(tasks(untilStopped), {
      client: fenced,
      leaderElection: { client, fence, identity: 'one', namespace: NAMESPACE, name: 'test' },
    });
    await clock.advance(5000);
    assert.deepEqual(events, ['start a']);
    server.faults.beforeRequest(({ path }) => (path.includes('/leases/') ? 500 : undefined));
    await clock.advance(20_000);
    assert.deepEqual(events, ['start a', 'end a']);
    assert.ok(isAbruptStop(await ended, 'leadershipLost'));
    server.faults.clear();
    const lease = await client.get(LEASES, { namespace: NAMESPACE, name: 'test' });
    assert.equal(lease.spec?.holderIdentity, 'one');
  });

  it('starts again when a process that stepped down leads again', async () => {
    let isCut = false;
    const lease = new HttpClient({
      handler: (request) =>
        isCut ? Promise.reject(new Error('connection reset')) : server.handler(request),
      server: 'https://test',
      clock,
    });
    const leaderElection = { identity: 'one', namespace: NAMESPACE, name: 'test', stepDown: true };
    await create('a');
    const { stop } = await run(tasks(untilStopped), {
      leaderElection: { ...leaderElection, client: lease, fence: new WriteFence() },
    });
    await clock.advance(5000);
    isCut = true;
    await clock.advance(20_000);
    assert.deepEqual(events, ['start a', 'end a']);
    isCut = false;
    await clock.advance(20_000);
    assert.deepEqual(events, ['start a', 'end a', 'start a']);
    await stop();
  });

  it('stops before its shard is released', async () => {
    const handlers: ShardHandler[] = [];
    const sharding = {
      shardOf: (key: ObjectKey) => (key.endsWith('/a') ? 0 : 1),
      holds: () => true,
      onShard: (serve: ShardHandler) => void handlers.push(serve),
    };
    const { stop } = await run((kit) => tasks(untilStopped)({ ...kit, sharding }));
    await create('a');
    await create('b');
    const hold = (shard: number) => {
      const release = new AbortController();
      const released = Promise.all(handlers.map((serve) => serve(shard, release.signal)));
      return async () => {
        release.abort();
        await released;
      };
    };
    const releaseFirst = hold(0);
    hold(1);
    await clock.advance(1000);
    assert.deepEqual(events.splice(0), ['start a', 'start b']);
    await releaseFirst();
    assert.deepEqual(events.splice(0), ['end a']);
    hold(0);
    await clock.advance(1000);
    assert.deepEqual(events.splice(0), ['start a']);
    await stop();
  });
});

describe('A timer of each object', () => {
  beforeEach(setUp);

  const timer =
    (call: typeof untilStopped, jitter = 0) =>
    (kit: ControllerKit) =>
      objectTimer(kit, selected(kit), {
        name: 'probe',
        intervalMs: 60_000,
        jitter,
        when: ({ data }) => data?.['probe'] !== 'no',
        run: call,
      });

  it('fires at its interval with the current object, until the object is deleted', async () => {
    await create('a', { n: '1' });
    const { stop } = await run(timer(async ({ data }) => void events.push(`tick ${data?.['n']}`)));
    await edit('a', { n: '2' });
    await clock.advance(58_000);
    assert.deepEqual(events.splice(0), ['tick 1']);
    await clock.advance(119_000);
    assert.deepEqual(events.splice(0), ['tick 2', 'tick 2']);
    await remove('a');
    await clock.advance(600_000);
    assert.deepEqual(events, []);
    await stop();
  });

  it('that fails is called again with backoff', async () => {
    await create('a');
    const calls: number[] = [];
    const { stop } = await run(
      timer(async () => {
        calls.push(clock.monotonic());
        if (calls.length < 3) throw new Error('timeout');
      }),
    );
    await clock.advance(30_000);
    assert.deepEqual(
      calls.slice(1).map((ms, index) => ms - (calls[index] ?? 0)),
      [5, 10],
    );
    await stop();
  });

  it('aborts a call whose object is deleted or no longer selected', async () => {
    await create('a');
    await create('b');
    const { stop } = await run(timer(untilStopped));
    assert.deepEqual(events.splice(0).toSorted(), ['start a', 'start b']);
    await remove('a');
    await edit('b', { probe: 'no' });
    await clock.advance(120_000);
    assert.deepEqual(events.toSorted(), ['end a', 'end b']);
    await stop();
  });

  it('rejects an interval that is not positive', async () => {
    const { ended } = await run((kit) =>
      objectTimer(kit, selected(kit), { name: 'x', intervalMs: 0, run: untilStopped }),
    );
    assert.match(String(await ended), /^RangeError: .*intervalMs must be positive/);
  });
});
