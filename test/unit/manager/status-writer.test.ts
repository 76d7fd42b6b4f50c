import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isApiError, isCausedByInvalid } from '../../../src/api/api-error.ts';
import { CUSTOM_RESOURCE_DEFINITIONS } from '../../../src/api/builtin.ts';
import { COUNTS } from '../../../src/api/generated/count.ts';
import type { Count, CountStatus } from '../../../src/api/generated/count.ts';
import { timestamp } from '../../../src/api/conditions.ts';
import type { KubernetesObject } from '../../../src/api/object.ts';
import { withReadiness } from '../../../src/api/readiness.ts';
import type { Readiness } from '../../../src/api/readiness.ts';
import { groupResourceOf } from '../../../src/api/resource.ts';
import type { Resource } from '../../../src/api/resource.ts';
import { StatusWriter } from '../../../src/manager/status-writer.ts';
import type { StatusEvent, StatusReport } from '../../../src/manager/status-writer.ts';
import { TerminalError } from '../../../src/workqueue/outcome.ts';
import { NAMESPACE, SyncBench } from '../../support/sync-bench.ts';
import { countDraft, crdOf } from '../../support/test-cluster.ts';

const READY = { kind: 'ready', reason: 'Done', message: '' } as const;

const AT = { namespace: NAMESPACE, name: 'test-count' };

interface Balanced extends KubernetesObject {
  spec?: object;
  status?: { loadBalancer: { ingress?: object[] } };
}

const BALANCED: Resource<Balanced> = {
  group: '',
  version: 'v1',
  plural: 'services',
  kind: 'Service',
  namespaced: true,
};

async function setUp() {
  const bench = await SyncBench.with(COUNTS);
  const count = await bench.create(COUNTS, countDraft(NAMESPACE));
  const writer = new StatusWriter(COUNTS, 'test', {
    events: { recorder: () => bench.recorder },
    clock: bench.clock,
  });
  const write = (object: Count, status: CountStatus) => writer.write(bench.context, object, status);
  const live = () => bench.get(COUNTS, 'test-count');
  /** Changes the schema of the resource. */
  const changeCrd = async (change: (version: CrdVersion) => void) => {
    const name = groupResourceOf(COUNTS);
    const crd = await bench.client.get(CUSTOM_RESOURCE_DEFINITIONS, { name });
    const versions = structuredClone(crdOf(COUNTS).spec.versions) as unknown as CrdVersion[];
    for (const version of versions) change(version);
    const spec = { ...crd.spec, versions } as unknown as typeof crd.spec;
    await bench.client.update(CUSTOM_RESOURCE_DEFINITIONS, { ...crd, spec });
    await bench.clock.advance(1000);
  };
  return { bench, count, writer, write, live, changeCrd };
}

interface CrdVersion {
  subresources?: Record<string, unknown>;
  schema: {
    openAPIV3Schema: { properties: { status: { properties: Record<string, unknown> } } };
  };
}

test('writes the status through the subresource, with uid and resourceVersion', async () => {
  const { bench, count, write, live } = await setUp();
  await write(count, { replicas: 1, healthy: false });
  const [sent] = bench.writes;
  assert.equal(sent?.what, 'patch counts/status');
  assert.equal(sent?.fieldManager, 'test');
  const { uid, resourceVersion } = count.metadata;
  assert.deepEqual(sent?.body.metadata, { uid, resourceVersion });
  assert.deepEqual((await live()).status, { replicas: 1, healthy: false });
});

test('removes fields that are missing from the new status', async () => {
  const { count, write, live } = await setUp();
  await write(count, { replicas: 1, readyReplicas: 1 });
  await write(await live(), { replicas: 2 });
  assert.deepEqual((await live()).status, { replicas: 2 });
});

test('removes members that are missing from an object in the new status', async () => {
  const bench = await SyncBench.with(COUNTS);
  const service = await bench.create(BALANCED, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: NAMESPACE, name: 'web' },
    spec: { type: 'LoadBalancer', ports: [{ port: 80 }] },
  });
  const writer = new StatusWriter(BALANCED, 'test');
  const live = () => bench.get(BALANCED, 'web');
  await writer.write(bench.context, service, { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } });
  assert.ok((await live()).status?.loadBalancer.ingress);
  await writer.write(bench.context, await live(), { loadBalancer: {} });
  assert.deepEqual((await live()).status, { loadBalancer: {} });
});

test('a status differs if the value or presence of a field differs', async () => {
  const { count, writer, write, live } = await setUp();
  assert.equal(writer.differs(count, {}), false);
  assert.equal(writer.differs(count, { replicas: 0 }), true);
  await write(count, { replicas: 1 });
  assert.equal(writer.differs(await live(), { replicas: 1 }), false);
  assert.equal(writer.differs(await live(), { replicas: 2 }), true);
  assert.equal(writer.differs(await live(), {}), true);
});

test('rejects with a conflict if the object was changed, deleted or replaced', async () => {
  const { bench, count, writer, write, live } = await setUp();
  const isConflict = (error: unknown) => isApiError(error, 'conflict');
  const body = { metadata: { labels: { a: 'b' } } };
  await bench.client.patch(COUNTS, AT, { type: 'merge', body });
  await assert.rejects(write(count, { replicas: 1 }), isConflict);
  const changed = await live();
  await bench.client.delete(COUNTS, AT);
  await assert.rejects(write(changed, { replicas: 1 }), isConflict);
  assert.equal(writer.hasSubresource, true);
  await bench.create(COUNTS, countDraft(NAMESPACE));
  await assert.rejects(write(changed, { replicas: 1 }), isConflict);
  assert.equal((await live()).status, undefined);
});

test('does not write a pruned field again until the CRD contains it', async () => {
  const { count, writer, write, live, changeCrd } = await setUp();
  await changeCrd(({ schema }) => {
    delete schema.openAPIV3Schema.properties.status.properties['selector'];
  });
  const status = { replicas: 1, selector: 'a=b' };
  await write(count, status);
  assert.deepEqual((await live()).status, { replicas: 1 });
  assert.equal(writer.differs(await live(), status), false);
  assert.equal(writer.differs(await live(), { ...status, replicas: 2 }), true);
  // The CustomResourceDefinition of this release is installed.
  await changeCrd(() => undefined);
  await write(await live(), { ...status, replicas: 2 });
  assert.deepEqual((await live()).status, { replicas: 2, selector: 'a=b' });
  assert.equal(writer.differs(await live(), { replicas: 2, selector: 'c=d' }), true);
});

test('logs a resource without a status subresource once, and uses the subresource when it is added', async () => {
  const { bench, count, writer, write, live, changeCrd } = await setUp();
  const errors = () => bench.lines.filter(({ level }) => level === 'error').length;
  await changeCrd((version) => {
    delete version.subresources;
  });
  await write(count, { replicas: 1 });
  await write(count, { replicas: 1 });
  assert.equal(errors(), 1);
  assert.equal(writer.hasSubresource, false);
  assert.equal((await live()).status, undefined);
  await changeCrd(() => undefined);
  await write(await live(), { replicas: 1 });
  assert.equal(writer.hasSubresource, true);
  assert.deepEqual((await live()).status, { replicas: 1 });
});

const SYNCED: StatusEvent = { type: 'Normal', reason: 'Synced', message: 'Count synced' };

test('report records the event, then writes the status, then throws the error', async () => {
  const { bench, count, writer, live } = await setUp();
  const error = new TerminalError('the spec is invalid');
  const report = { object: count, status: { replicas: 1 }, event: SYNCED, error };
  await assert.rejects(writer.report(bench.context, report), error);
  assert.deepEqual(bench.steps, ['event Synced', 'sent Synced', 'patch counts/status']);
  assert.deepEqual((await live()).status, { replicas: 1 });
});

test('report with an unchanged status records and writes nothing, and throws no TerminalError', async () => {
  const { bench, writer, write, count, live } = await setUp();
  await write(count, { replicas: 1 });
  const report = { object: await live(), status: { replicas: 1 }, event: SYNCED };
  bench.steps.length = 0;
  assert.equal(await writer.report(bench.context, report), false);
  const terminal = { ...report, error: new TerminalError('the spec is invalid') };
  assert.equal(await writer.report(bench.context, terminal), false);
  assert.deepEqual(bench.steps, []);
  const error = new Error('to be retried');
  await assert.rejects(writer.report(bench.context, { ...report, error }), error);
  assert.deepEqual(bench.steps, []);
  const repeated: StatusEvent = { ...SYNCED, type: 'Warning', repeats: true };
  await writer.report(bench.context, { ...report, event: repeated });
  assert.deepEqual(bench.steps, ['event Synced', 'sent Synced']);
  assert.deepEqual(bench.events.at(-1), 'Warning Synced: Count synced');
});

test('report records an event once for each resourceVersion if the write fails', async () => {
  const { bench, count, writer, live } = await setUp();
  const report = (object: Count, replicas: number, message: string = SYNCED.message) =>
    writer.report(bench.context, { object, status: { replicas }, event: { ...SYNCED, message } });
  bench.server.faults.failNext('PATCH', 422, { times: 3 });
  await assert.rejects(report(count, 1), isCausedByInvalid);
  await assert.rejects(report(count, 2), isCausedByInvalid);
  assert.equal(bench.events.length, 1);
  await assert.rejects(report(count, 2, 'another event'), isCausedByInvalid);
  assert.equal(bench.events.length, 2);
  const body = { metadata: { labels: { a: 'b' } } };
  await bench.client.patch(COUNTS, AT, { type: 'merge', body });
  assert.equal(await report(await live(), 2), true);
  assert.equal(bench.events.length, 3, 'another version of the object');
  bench.server.faults.failNext('PATCH', 422);
  await assert.rejects(report(await live(), 3), isCausedByInvalid);
  await report(await live(), 3);
  assert.equal(bench.events.length, 4);
  await writer.report(bench.context, { object: await live(), status: { replicas: 4 } });
  await report(await live(), 3);
  assert.equal(bench.events.length, 5, 'after the status with the event was written');
});

test('report computes observedGeneration and conditions from a readiness, and keeps other fields', async () => {
  const { bench, count, writer, write, live } = await setUp();
  await write(count, { replicas: 3, readyReplicas: 1, healthy: false });
  const readiness = { kind: 'stalled', reason: 'NoQuota', message: 'no Pod is left' } as const;
  const event = { type: 'Warning' } as const;
  const status = { healthy: true, readyReplicas: undefined };
  const report = async () =>
    writer.report(bench.context, { object: await live(), readiness, status, event });
  assert.equal(await report(), true);
  const now = timestamp(bench.clock.now());
  const { conditions, ...rest } = (await live()).status ?? {};
  assert.deepEqual(rest, { replicas: 3, healthy: true, observedGeneration: 1 });
  assert.deepEqual(conditions, withReadiness([], readiness, 1, Date.parse(now)));
  assert.deepEqual(bench.events, ['Warning NoQuota: no Pod is left']);
  await bench.clock.advance(5000);
  assert.equal(await report(), false);
  assert.equal(bench.events.length, 1);
});

test('a readiness records an event when the status or reason of Ready changes', async () => {
  const { bench, writer, live } = await setUp();
  const report = async (readiness: Readiness, status: Partial<CountStatus>, error?: Error) =>
    writer.report(bench.context, { object: await live(), readiness, status, error });
  const waiting = { kind: 'reconciling', reason: 'Waiting', message: 'waits' } as const;
  await report(waiting, { replicas: 1 });
  await report({ ...waiting, message: 'still waits' }, { replicas: 2 });
  await report(READY, { replicas: 3 });
  await report({ ...READY, kind: 'stalled' }, {});
  const error = new TerminalError('no answer');
  await assert.rejects(report({ ...waiting, reason: 'Failed' }, {}, error), error);
  assert.deepEqual(bench.events, [
    'Normal Waiting: waits',
    'Normal Done: ',
    'Warning Done: ',
    'Warning Failed: waits',
  ]);
  // Without a recorder, only the status is written.
  const silent = new StatusWriter(COUNTS, 'test', { clock: bench.clock });
  await silent.report(bench.context, { object: await live(), readiness: READY });
  assert.equal(bench.events.length, 4);
});

test('a readiness does not compile for a kind without conditions', () => {
  const report: StatusReport<Count> = { object: {} as Count, readiness: READY };
  // @ts-expect-error the status has neither conditions nor observedGeneration
  const none: StatusReport<Balanced> = { object: {} as Balanced, readiness: READY };
  void [report, none];
});

test('report rejects an event if there is no recorder', async () => {
  const { bench, count } = await setUp();
  const writer = new StatusWriter(COUNTS, 'test');
  const report = { object: count, status: { replicas: 1 }, event: SYNCED };
  await assert.rejects(writer.report(bench.context, report), /no recorder for the event Synced/);
  assert.deepEqual(bench.writes, []);
});
