import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { ApiError, isApiError } from '../../../src/api/api-error.ts';
import { CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, EVENTS } from '../../../src/api/builtin.ts';
import { COUNTS } from '../../../src/api/generated/count.ts';
import type { Count } from '../../../src/api/generated/count.ts';
import { objectKey } from '../../../src/api/object-key.ts';
import { isReady } from '../../../src/api/readiness.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { callService } from '../../../src/manager/call-service.ts';
import { Controller } from '../../../src/manager/controller.ts';
import type { ControllerKit } from '../../../src/manager/controller-kit.ts';
import { objectController } from '../../../src/manager/object-controller.ts';
import type {
  ObjectControllerOptions,
  ReconcileContext,
} from '../../../src/manager/object-controller.ts';
import { OwnedObjects } from '../../../src/manager/owned-objects.ts';
import { predicates } from '../../../src/manager/predicate.ts';
import { runControllers } from '../../../src/manager/run-controllers.ts';
import type { ControllerManagerOptions } from '../../../src/manager/run-controllers.ts';
import { formatCall, SyncHistory } from '../../../src/manager/sync-history.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { FakeFetch } from '../../../src/util/fake-fetch.ts';
import { rejectOnAbort } from '../../../src/util/abort.ts';
import { exponentialLimiter } from '../../../src/workqueue/rate-limiter.ts';
import { done, requeueAfter, SyncError, TerminalError } from '../../../src/workqueue/outcome.ts';
import { countDraft, crdOf } from '../../support/test-cluster.ts';

const AT = { namespace: 'default', name: 'test-count' };
const READY = { kind: 'ready', reason: 'Counted', message: 'all is counted' } as const;
const CONDITION = { status: 'True', reason: 'Asked', message: 'of the service' } as const;
const FINALIZER = 'test.example/cleanup';

/** Runs a controller with these options and one Count. */
async function start(
  context: TestContext,
  options: Omit<ObjectControllerOptions<Count>, 'name'>,
  {
    clock = new FakeClock(),
    fetch,
    history,
    prepare,
    controllers = (kit) => [
      objectController(kit, kit.informers.for(COUNTS), { name: 'tally', ...options }),
    ],
  }: Pick<ControllerManagerOptions, 'fetch' | 'history'> & {
    readonly clock?: FakeClock;
    /** Called before the controller starts. */
    readonly prepare?: (server: ApiServer) => void;
    readonly controllers?: (kit: ControllerKit) => readonly Controller[];
  } = {},
) {
  const server = new ApiServer({ clock });
  prepare?.(server);
  const client = new HttpClient({ handler: server.handler, server: 'https://test', clock });
  await client.create(CUSTOM_RESOURCE_DEFINITIONS, crdOf(COUNTS));
  const stop = new AbortController();
  const running = runControllers(
    {
      client,
      clock,
      fetch,
      history,
      freeze: true,
      controllers,
    },
    stop.signal,
  );
  context.after(async () => {
    stop.abort();
    await clock.advance(30_000);
    await running;
  });
  await client.create(COUNTS, countDraft(AT.namespace));
  const live = () => client.get(COUNTS, AT);
  return {
    clock,
    server,
    client,
    live,
    ready: async () => {
      const ready = (await live()).status?.conditions?.find(({ type }) => type === 'Ready');
      return `${ready?.status} ${ready?.reason}: ${ready?.message}`;
    },
    events: async () =>
      (await client.list(EVENTS)).items.map(
        ({ type, reason, source }) => `${type} ${reason} ${source?.component}`,
      ),
  };
}

test('reports the readiness that it returns, with an event, and requeues', async (context) => {
  let syncs = 0;
  const { clock, server, live, events } = await start(context, {
    reconcile: async () => {
      syncs += 1;
      return { ...READY, status: { replicas: 2 }, outcome: requeueAfter(60_000) };
    },
  });
  await clock.advance(10_000);
  const { status, ...object } = await live();
  assert.equal(status?.replicas, 2);
  assert.ok(isReady({ ...object, status }));
  assert.deepEqual(await events(), ['Normal Counted tally-controller']);
  const { revision } = server;
  const before = syncs;
  await clock.advance(120_000);
  assert.equal(syncs, before + 2);
  assert.equal(server.revision, revision);
});

test('reports nothing if it returns an outcome', async (context) => {
  const { clock, live } = await start(context, { reconcile: async () => done() });
  await clock.advance(10_000);
  assert.equal((await live()).status, undefined);
});

test('reports an error that it throws, and retries', async (context) => {
  let failures = 3;
  const { clock, ready, events } = await start(context, {
    reconcile: async () => {
      if (failures === 0) return READY;
      failures -= 1;
      throw failures === 0
        ? new Error('no answer')
        : new SyncError('no one counts', { reason: 'NotCounted' });
    },
  });
  await clock.advance(10_000);
  assert.equal(await ready(), 'True Counted: all is counted');
  assert.deepEqual((await events()).toSorted(), [
    'Normal Counted tally-controller',
    'Warning NotCounted tally-controller',
    'Warning SyncFailed tally-controller',
  ]);
});

test('reports a TerminalError as stalled, and does not retry', async (context) => {
  let syncs = 0;
  const { clock, live } = await start(context, {
    reconcile: async () => {
      syncs += 1;
      throw new TerminalError('the image has no name');
    },
  });
  await clock.advance(600_000);
  const conditions = (await live()).status?.conditions ?? [];
  assert.deepEqual(
    conditions.map(({ type, status }) => `${type}=${status}`),
    ['Ready=False', 'Stalled=True'],
  );
  assert.equal(syncs, 1);
});

test('waits for its backoff after each report, and syncs at once after other changes', async (context) => {
  const times: number[] = [];
  const clock = new FakeClock();
  const options = {
    rateLimiter: exponentialLimiter({ initialMs: 60_000, maxMs: 60_000 }),
    reconcile: async (_: unknown, context: ReconcileContext<Count>) => {
      times.push(clock.now());
      context.status.replicas = times.length;
      const message = `request ${times.length} failed`;
      // The second is not reported.
      throw times.length === 2 ? new ApiError({ kind: 'internal', message }) : new Error(message);
    },
  };
  const { client, live } = await start(context, options, { clock });
  await clock.advance(200_000);
  const waits = times.slice(1).map((time, index) => time - times[index]!);
  assert.deepEqual(waits, [60_000, 60_000, 60_000]);
  assert.equal((await live()).status?.replicas, 4);
  const status = { replicas: 9 };
  for (const [count, body] of [{ metadata: { labels: { a: 'b' } } }, { status }].entries()) {
    const subresource = 'status' in body ? { subresource: 'status' } : {};
    await client.patch(COUNTS, AT, { type: 'merge', body }, subresource);
    await clock.advance(1000);
    assert.equal(times.length, 5 + count);
  }
});

test('writes the fields that reconcile has set before it throws, or without a report', async (context) => {
  const failures: (Error | undefined)[] = [
    new SyncError('no answer', { reason: 'NotCounted' }),
    new ApiError({ kind: 'internal', message: 'out of order' }),
    undefined,
  ];
  const stored: unknown[] = [];
  const { clock, live } = await start(context, {
    rateLimiter: exponentialLimiter({ initialMs: 60_000, maxMs: 60_000 }),
    predicates: [predicates.generationChanged],
    reconcile: async ({ status }, context) => {
      stored.push(status?.replicas);
      context.status.replicas = stored.length;
      if (stored.length > failures.length) return { ...READY, status: { replicas: 9 } };
      const failure = failures[stored.length - 1];
      if (failure) throw failure;
      return requeueAfter(60_000);
    },
  });
  await clock.advance(200_000);
  assert.deepEqual(stored, [undefined, 1, 2, 3]);
  assert.equal((await live()).status?.replicas, 9);
});

test('writes the fields that cleanUp has set before it throws or waits', async (context) => {
  const stored: unknown[] = [];
  const { clock, client } = await start(context, {
    finalizer: FINALIZER,
    reconcile: async () => READY,
    cleanUp: async ({ status }, context) => {
      stored.push(status?.replicas);
      context.status.replicas = stored.length;
      if (stored.length === 1) throw new Error('no answer');
      return stored.length === 2 ? requeueAfter(1000) : undefined;
    },
  });
  await clock.advance(1000);
  await client.delete(COUNTS, AT);
  await clock.advance(10_000);
  assert.deepEqual([...new Set(stored)], [undefined, 1, 2]);
  assert.deepEqual((await client.list(COUNTS)).items, []);
});

test('sets conditions of the kind beside those of the readiness', async (context) => {
  let status: 'True' | 'False' = 'False';
  const { clock, client, server, live, ready } = await start(context, {
    reconcile: async () => ({
      ...READY,
      conditions: [{ ...CONDITION, type: 'Registered', status }],
    }),
  });
  const conditions = async () => (await live()).status?.conditions ?? [];
  await clock.advance(10_000);
  const [first, ...others] = await conditions();
  const observedGeneration = 1;
  const registered = { type: 'Registered', status: 'False', observedGeneration, reason: 'Asked' };
  assert.deepEqual(first, { ...first, ...registered, message: 'of the service' });
  assert.deepEqual(
    others.map(({ type }) => type),
    ['Ready'],
  );
  const { revision } = server;
  await clock.advance(600_000);
  assert.equal(server.revision, revision);
  status = 'True';
  await client.patch(COUNTS, AT, { type: 'merge', body: { metadata: { labels: { a: 'b' } } } });
  await clock.advance(1000);
  const [changed] = await conditions();
  assert.equal(changed?.status, 'True');
  assert.notEqual(changed.lastTransitionTime, first?.lastTransitionTime);
  assert.equal(await ready(), 'True Counted: all is counted');
});

test('does not accept a condition of the readiness beside it', async (context) => {
  const { clock, live } = await start(context, {
    reconcile: async () => ({ ...READY, conditions: [{ ...CONDITION, type: 'Stalled' }] }),
  });
  await clock.advance(1000);
  assert.equal((await live()).status, undefined);
});

test('retries calls of services after 1 s, doubling, and reports a malformed URL as stalled', async (context) => {
  const service = new FakeFetch();
  const times: number[] = [];
  const clock = new FakeClock();
  service.respond = () => {
    times.push(clock.now());
    return 503;
  };
  let url = 'https://service.test';
  const { client, ready } = await start(
    context,
    {
      reconcile: async (_, context) => {
        await callService(context, 'GET', url);
        return READY;
      },
    },
    { clock, fetch: service.fetch },
  );
  await clock.advance(10_000);
  const waits = times.slice(1).map((time, index) => time - times[index]!);
  assert.deepEqual(waits, [1000, 2000, 4000]);
  url = 'service.test';
  await client.patch(COUNTS, AT, { type: 'merge', body: { metadata: { labels: { a: 'b' } } } });
  await clock.advance(600_000);
  assert.match(await ready(), /^False InvalidServiceRequest: /);
  assert.equal(times.length, 4);
});

test('retries a SyncError not before its minimum delay, and calls services with the fetch of the kit', async (context) => {
  const service = new FakeFetch();
  const times: number[] = [];
  const clock = new FakeClock();
  service.respond = () => {
    times.push(clock.now());
    const headers = { 'retry-after': '30' };
    return times.length < 3 ? new Response(null, { status: 429, headers }) : 200;
  };
  const { ready } = await start(
    context,
    {
      reconcile: async (_, context) => {
        await callService(context, 'GET', 'https://service.test');
        return READY;
      },
    },
    { clock, fetch: service.fetch },
  );
  await clock.advance(1000);
  assert.match(await ready(), /^False ServiceFailed: GET to https:\/\/service\.test failed/);
  await clock.advance(120_000);
  const waits = times.slice(1).map((time, index) => time - times[index]!);
  assert.deepEqual(waits, [30_000, 30_000]);
  assert.equal(await ready(), 'True Counted: all is counted');
});

test('lists the calls of services in the history of the syncs, without their queries', async (context) => {
  const service = new FakeFetch();
  const history = new SyncHistory();
  const { clock, client } = await start(
    context,
    {
      reconcile: async () => READY,
      finalizer: FINALIZER,
      cleanUp: async (_, context) => {
        await callService(context, 'DELETE', 'https://service.test/hunter2?token=hunter2');
        return undefined;
      },
    },
    { fetch: service.fetch, history },
  );
  await clock.advance(1000);
  service.answer(503, new Error('refused'));
  await client.delete(COUNTS, AT);
  await clock.advance(10_000);
  const syncs = history.of('tally', 'default/test-count')?.last ?? [];
  const calls = syncs.flatMap(({ calls }) => calls.map(formatCall));
  assert.deepEqual(
    calls.filter((call) => call.includes('service.test')),
    ['503 ServiceFailed', 'ServiceUnreachable', '200'].map(
      (result) => `DELETE https://service.test ${result} 0ms`,
    ),
  );
});

test('reports that a sync took longer than its timeout', async (context) => {
  const { clock, ready } = await start(context, {
    syncTimeoutMs: 10_000,
    reconcile: (_, { signal }) => rejectOnAbort(new Promise<never>(() => undefined), signal),
  });
  await clock.advance(11_000);
  assert.equal(await ready(), 'False Timeout: The sync took longer than 10s');
});

test('does not report failures of the API server that a retry solves', async (context) => {
  const { clock, events, ready } = await start(
    context,
    {
      reconcile: async ({ metadata }, { client, signal }) => {
        await client.get(COUNTS, metadata, { signal });
        return READY;
      },
    },
    {
      prepare: ({ faults }) =>
        faults.failNext({ verb: 'get', resource: 'counts' }, 500, { times: 3 }),
    },
  );
  await clock.advance(10_000);
  assert.match(await ready(), /^True/);
  assert.deepEqual(await events(), ['Normal Counted tally-controller']);
});

test('reports requests that the API server rejects', async (context) => {
  const { clock, ready } = await start(context, {
    reconcile: async ({ metadata }, { client, signal }) => {
      const patch = { type: 'merge', body: { spec: { count: -1 } } } as const;
      await client.patch(COUNTS, metadata, patch, { signal });
      return READY;
    },
  });
  await clock.advance(10_000);
  assert.match(await ready(), /^False SyncFailed: .*spec\.count/);
});

test('cleans up before the object is deleted, and reports failures of it', async (context) => {
  const calls: string[] = [];
  let isDown = true;
  const { clock, client, live, ready } = await start(context, {
    reconcile: async () => {
      calls.push('reconcile');
      return READY;
    },
    finalizer: FINALIZER,
    cleanUp: async () => {
      calls.push('cleanUp');
      if (isDown) throw new SyncError('no answer', { reason: 'ServiceDown' });
    },
  });
  await clock.advance(10_000);
  assert.deepEqual((await live()).metadata.finalizers, [FINALIZER]);
  assert.ok(!calls.includes('cleanUp'));
  await client.delete(COUNTS, AT);
  await clock.advance(10_000);
  assert.equal(await ready(), 'False ServiceDown: no answer');
  isDown = false;
  await clock.advance(60_000);
  await assert.rejects(live(), (error) => isApiError(error, 'notFound'));
  assert.deepEqual(new Set(calls.slice(calls.indexOf('cleanUp'))), new Set(['cleanUp']));
});

test('reports what cleanUp waits for', async (context) => {
  let isLeft = true;
  const { clock, client, server, live, ready } = await start(context, {
    reconcile: async () => READY,
    finalizer: FINALIZER,
    cleanUp: async () =>
      isLeft
        ? {
            kind: 'reconciling',
            reason: 'Emptying',
            message: '3 files are left',
            outcome: requeueAfter(1000),
          }
        : undefined,
  });
  await clock.advance(10_000);
  await client.delete(COUNTS, AT);
  await clock.advance(10_000);
  assert.equal(await ready(), 'False Emptying: 3 files are left');
  const { revision } = server;
  await clock.advance(60_000);
  assert.equal(server.revision, revision);
  isLeft = false;
  await clock.advance(10_000);
  await assert.rejects(live(), (error) => isApiError(error, 'notFound'));
});

test('does not reconcile an object that is being deleted', async (context) => {
  let syncs = 0;
  const { clock, client } = await start(context, {
    reconcile: async () => {
      syncs += 1;
      return done();
    },
  });
  const body = { metadata: { finalizers: ['test.example/other'] } };
  await client.patch(COUNTS, AT, { type: 'merge', body });
  await clock.advance(10_000);
  const before = syncs;
  await client.delete(COUNTS, AT);
  await clock.advance(10_000);
  assert.equal(syncs, before);
});

test('does not report an object as ready while an owned object is being deleted, or is one of its predecessor', async (context) => {
  const reconcile: ObjectControllerOptions<Count>['reconcile'] = async () => READY;
  const { clock, client, ready } = await start(
    context,
    { reconcile },
    {
      controllers: (kit) => {
        const owned = new OwnedObjects(COUNTS, 'tally').add(kit.informers.for(CONFIG_MAPS));
        return [
          objectController(kit, kit.informers.for(COUNTS), {
            name: 'tally',
            reconcile: async (count, context) => {
              await owned.ensure(context, count, [
                { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kept' } },
              ]);
              return READY;
            },
          }).owns(owned),
        ];
      },
    },
  );
  const kept = { ...AT, name: 'kept' };
  const setFinalizers = (finalizers: readonly string[]) =>
    client.patch(CONFIG_MAPS, kept, { type: 'merge', body: { metadata: { finalizers } } });
  const waiting = 'False ObjectsTerminating: Waiting for the deletion of ConfigMap "kept"';
  await clock.advance(10_000);
  assert.equal(await ready(), 'True Counted: all is counted');
  await setFinalizers([FINALIZER]);
  await client.delete(CONFIG_MAPS, kept);
  await clock.advance(10_000);
  assert.equal(await ready(), waiting);
  await setFinalizers([]);
  await clock.advance(10_000);
  assert.equal(await ready(), 'True Counted: all is counted');
  // No garbage collector runs.
  await client.delete(COUNTS, AT);
  await client.create(COUNTS, countDraft(AT.namespace));
  await clock.advance(10_000);
  assert.equal(await ready(), waiting);
  await client.delete(CONFIG_MAPS, kept);
  await clock.advance(10_000);
  assert.equal(await ready(), 'True Counted: all is counted');
});

test('is not ready while another client changes an owned object after each sync', async (context) => {
  let data = 'desired';
  const { clock, client, server, ready, events } = await start(
    context,
    { reconcile: async () => READY },
    {
      controllers: (kit) => {
        const owned = new OwnedObjects(COUNTS, 'tally').add(kit.informers.for(CONFIG_MAPS));
        return [
          objectController(kit, kit.informers.for(COUNTS), {
            name: 'tally',
            reconcile: async (count, context) => {
              await owned.ensure(context, count, [
                { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kept' }, data: { data } },
              ]);
              return READY;
            },
          }).owns(owned),
        ];
      },
    },
  );
  const kept = { ...AT, name: 'kept' };
  const stop = new AbortController();
  const others = runControllers(
    {
      client,
      clock,
      controllers: (kit) => {
        const maps = kit.informers.for(CONFIG_MAPS);
        return [
          new Controller(kit, {
            name: 'other',
            kind: 'ConfigMap',
            sync: async (_key, { signal }) => {
              const map = maps.lister.get(objectKey(kept.namespace, kept.name));
              if (!map || map.data?.['data'] === 'other') return done();
              const patch = { type: 'merge', body: { data: { data: 'other' } } } as const;
              await client.patch(CONFIG_MAPS, kept, patch, { signal, fieldManager: 'other' });
              return done();
            },
          }).for(maps),
        ];
      },
    },
    stop.signal,
  );
  await clock.advance(10 * 60_000);
  const unsettled = await ready();
  assert.match(
    unsettled,
    /^False HotLoop: Another client .*\.data\.data of ConfigMap default\/kept/,
  );
  assert.ok((await events()).includes('Warning HotLoop count-controller'));
  const { resourceVersion } = (await client.get(COUNTS, AT)).metadata;
  const { revision } = server;
  await clock.advance(60 * 60_000);
  assert.equal(await ready(), unsettled);
  assert.ok(server.revision > revision);
  assert.equal((await client.get(COUNTS, AT)).metadata.resourceVersion, resourceVersion);

  data = 'other';
  await clock.advance(10 * 60_000);
  assert.equal(await ready(), 'True Counted: all is counted');
  stop.abort();
  await clock.advance(30_000);
  await others;
});

test('a finalizer and its function require each other', () => {
  const kit = {} as Parameters<typeof objectController>[0];
  const informer = {} as Parameters<typeof objectController<Count>>[1];
  const options = { name: 'tally', reconcile: async () => READY };
  for (const one of [{ finalizer: FINALIZER }, { cleanUp: async () => undefined }]) {
    assert.throws(() => objectController<Count>(kit, informer, { ...options, ...one }), TypeError);
  }
});
