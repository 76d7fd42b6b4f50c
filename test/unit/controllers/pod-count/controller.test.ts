import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isApiError } from '../../../../src/api/api-error.ts';
import { NODES, PODS } from '../../../../src/api/builtin.ts';
import type { Node } from '../../../../src/api/builtin.ts';
import { keyOf } from '../../../../src/api/object-key.ts';
import type { Draft } from '../../../../src/api/object.ts';
import {
  INTERVAL_MS,
  isControlPlane,
  LABEL,
  podCountSync,
} from '../../../../src/controllers/pod-count/controller.ts';
import { done } from '../../../../src/workqueue/outcome.ts';
import { assertEndsAtEachRequest, SyncBench } from '../../../support/sync-bench.ts';

const MASTER = { 'node-role.kubernetes.io/control-plane': '', zone: 'a' };

function nodeDraft(labels: Record<string, string> = MASTER): Draft<Node> {
  return { apiVersion: 'v1', kind: 'Node', metadata: { name: 'master', labels } };
}

async function setUp(labels = MASTER) {
  const bench = await SyncBench.with();
  const nodes = bench.cache<Node>({});
  const node = await bench.create(NODES, nodeDraft(labels));
  nodes.show(node);
  const pods = { size: 3 };
  const sync = podCountSync({
    nodes: nodes.lister,
    pods,
    recorder: bench.recorder,
    clock: bench.clock,
  });
  const run = () => bench.sync(sync, keyOf(node));
  const live = () => bench.client.get(NODES, { name: 'master' });
  return { bench, node, nodes, pods, run, live };
}

describe('A sync of a node', () => {
  it('patches only the label with the number of Pods, with the uid of the node', async () => {
    const { bench, node, run, live } = await setUp();
    assert.deepEqual(await run(), done());
    const [write, ...others] = bench.writes;
    assert.deepEqual(others, []);
    assert.equal(write?.what, 'patch nodes');
    assert.equal(write?.fieldManager, 'pod-count-controller');
    assert.deepEqual(write?.body, {
      metadata: { uid: node.metadata.uid, labels: { [LABEL]: '3' } },
    });
    assert.deepEqual((await live()).metadata.labels, { ...MASTER, [LABEL]: '3' });
    assert.deepEqual(bench.events, ['Normal SuccessCalculatePod: pod count is 3']);
  });

  it('writes nothing if the label has the number', async () => {
    const { bench, nodes, run, live } = await setUp();
    await run();
    nodes.show(await live());
    assert.deepEqual(await run(), done());
    assert.equal(bench.writes.length, 1);
    assert.equal(bench.events.length, 1);
  });

  it('writes at most once in ten seconds, and is requeued for the next write', async () => {
    const { bench, nodes, pods, run, live } = await setUp();
    await run();
    nodes.show(await live());
    pods.size = 4;
    await bench.clock.advance(INTERVAL_MS - 1);
    const outcome = await run();
    assert.equal(outcome.kind, 'requeueAfter');
    assert.equal(outcome.kind === 'requeueAfter' && outcome.ms, 1);
    assert.equal(bench.writes.length, 1);
    await bench.clock.advance(1);
    assert.deepEqual(await run(), done());
    assert.equal((await live()).metadata.labels?.[LABEL], '4');
  });

  it('writes nothing to a node that has no role, is being deleted, or is gone', async () => {
    const { bench, nodes, node, run } = await setUp({ zone: 'a' } as typeof MASTER);
    assert.deepEqual(await run(), done());
    const deletionTimestamp = '2026-01-01T00:00:00Z';
    const metadata = { ...node.metadata, labels: MASTER, deletionTimestamp };
    nodes.show({ ...node, metadata });
    assert.deepEqual(await run(), done());
    nodes.hide(node);
    assert.deepEqual(await run(), done());
    assert.deepEqual(bench.steps, []);
  });

  it('forgets the last write to a node that lost its role', async () => {
    const { bench, nodes, node, pods, run, live } = await setUp();
    await run();
    nodes.hide(node);
    await run();
    nodes.show(await live());
    pods.size = 4;
    assert.deepEqual(await run(), done());
    assert.equal(bench.writes.length, 2);
  });

  it('is done if the node is gone, and does not label another node with its name', async () => {
    const { bench, node, run, live } = await setUp();
    await bench.client.delete(NODES, node.metadata);
    assert.deepEqual(await run(), done());
    assert.deepEqual(bench.events, []);
    await bench.create(NODES, nodeDraft());
    await assert.rejects(run());
    assert.equal((await live()).metadata.labels?.[LABEL], undefined);
    assert.deepEqual(bench.events, []);
  });

  it('retries after five minutes without permission, and logs how to grant it', async () => {
    const { bench, run } = await setUp();
    bench.server.faults.failNext('PATCH', 403, { times: 2 });
    const outcome = await run();
    assert.equal(outcome.kind === 'requeueAfter' && outcome.ms, 5 * 60_000);
    const line = bench.lines.find(({ level }) => level === 'error');
    assert.match(String(line?.fields['fix']), /patch on nodes/);
    assert.deepEqual(bench.events, []);
    await bench.clock.advance(5 * 60_000 - 1);
    const again = await run();
    assert.equal(again.kind === 'requeueAfter' && again.ms, 1);
    assert.equal(bench.writes.length, 1);
    await bench.clock.advance(1);
    await run();
    assert.equal(bench.writes.length, 2);
  });

  it('throws any other error, and is retried earlier than in ten seconds', async () => {
    const { bench, run } = await setUp();
    bench.server.faults.failNext('PATCH', 500);
    await assert.rejects(run(), (error) => isApiError(error, 'internal'));
    assert.deepEqual(await run(), done());
    assert.deepEqual(bench.events, ['Normal SuccessCalculatePod: pod count is 3']);
    assert.equal((await bench.list(PODS)).length, 0);
  });

  it('ends when the daemon stops during any request, and reports no failure', () =>
    assertEndsAtEachRequest(setUp));
});

describe('A control-plane node', () => {
  it('has one of the two role labels, with any value', () => {
    const metadata = { name: 'n', uid: 'u', resourceVersion: '1', creationTimestamp: '' };
    const withLabels = (labels?: Record<string, string>): Node => ({
      ...nodeDraft(),
      metadata: { ...metadata, ...(labels ? { labels } : {}) },
    });
    assert.ok(isControlPlane(withLabels({ 'node-role.kubernetes.io/control-plane': 'x' })));
    assert.ok(isControlPlane(withLabels({ 'node-role.kubernetes.io/master': '' })));
    assert.ok(!isControlPlane(withLabels({ 'node-role.kubernetes.io/worker': '' })));
    assert.ok(!isControlPlane(withLabels()));
  });
});
