import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NAMESPACES, PODS } from '../../../../src/api/builtin.ts';
import type { Pod } from '../../../../src/api/builtin.ts';
import { COUNTS } from '../../../../src/api/generated/count.ts';
import type { Count, CountStatus } from '../../../../src/api/generated/count.ts';
import type { Draft } from '../../../../src/api/object.ts';
import { objectKey } from '../../../../src/api/object-key.ts';
import { isApiError } from '../../../../src/api/api-error.ts';
import { controllerReference } from '../../../../src/api/metadata.ts';
import { COUNT_COMPONENT } from '../../../../src/controllers/count/pods.ts';
import { podLabels } from '../../../../src/controllers/count/pods.ts';
import { countSync } from '../../../../src/controllers/count/controller.ts';
import { TerminalError } from '../../../../src/workqueue/outcome.ts';
import { assertEndsAtEachRequest, NAMESPACE, SyncBench } from '../../../support/sync-bench.ts';
import { countDraft } from '../../../support/test-cluster.ts';

const KEY = objectKey(NAMESPACE, 'test-count');

class Bench {
  readonly bench: SyncBench;
  readonly counts;
  readonly pods;
  readonly #sync;

  constructor(bench: SyncBench) {
    this.bench = bench;
    this.counts = bench.cache<Count>();
    this.pods = bench.cache<Pod>();
    this.#sync = countSync(bench.kit, this.counts.lister, this.pods.lister);
  }

  static async with(spec: Partial<Count['spec']>): Promise<Bench & { readonly count: Count }> {
    const bench = await SyncBench.with(COUNTS);
    const count = await bench.create(COUNTS, countDraft(NAMESPACE, spec));
    const fixture = new Bench(bench);
    fixture.counts.show(count);
    return Object.assign(fixture, { count });
  }

  run(): Promise<unknown> {
    return this.bench.sync(this.#sync, KEY);
  }

  /** Updates the caches to the state of the server, and syncs. */
  async runFresh(): Promise<void> {
    this.counts.show(...(await this.bench.list(COUNTS)));
    const present = await this.bench.list(PODS);
    const gone = this.pods.lister
      .list()
      .filter(({ metadata }) => present.every((pod) => pod.metadata.uid !== metadata.uid));
    this.pods.hide(...gone);
    this.pods.show(...present);
    await this.run();
  }

  async ready(name: string): Promise<void> {
    const body = {
      status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
    } as const;
    const at = { namespace: NAMESPACE, name };
    await this.bench.client.patch(PODS, at, { type: 'merge', body }, { subresource: 'status' });
  }

  async status(): Promise<CountStatus> {
    return (await this.bench.get(COUNTS, 'test-count')).status ?? assert.fail('no status');
  }
}

function podDraft(name: string, owner?: Count): Draft<Pod> {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: NAMESPACE,
      ...(owner && { labels: podLabels(owner), ownerReferences: [controllerReference(owner)] }),
    },
    spec: { containers: [{ name: 'app', image: 'nginx' }] },
  };
}

describe('A sync of a Count', () => {
  it('creates missing Pods with an owner reference, then writes the status with their number', async () => {
    const { bench, count, ...fixture } = await Bench.with({ count: 3 }).then(expose);
    await fixture.run();
    const created = bench.writes.filter(({ what }) => what === 'create pods');
    assert.deepEqual(created.map(({ name }) => name).sort(), [
      'test-count-0',
      'test-count-1',
      'test-count-2',
    ]);
    for (const { body, fieldManager } of created) {
      assert.equal(fieldManager, COUNT_COMPONENT);
      assert.deepEqual(body.metadata?.['ownerReferences'], [controllerReference(count)]);
    }
    assert.deepEqual(bench.events, [
      'Normal SuccessfulCreate: Created pod: test-count-0',
      'Normal SuccessfulCreate: Created pod: test-count-1',
      'Normal SuccessfulCreate: Created pod: test-count-2',
    ]);
    const write = bench.writes.at(-1);
    assert.equal(write?.what, 'patch counts/status');
    const { uid, resourceVersion } = count.metadata;
    assert.deepEqual(write?.body.metadata, { uid, resourceVersion });
    assert.equal(write?.fieldManager, COUNT_COMPONENT);
    const status = await fixture.status();
    assert.equal(status.replicas, 3);
    assert.equal(status.readyReplicas, 0);
    assert.equal(status.healthy, false);
  });

  it('writes and records nothing in the desired state', async () => {
    const { bench, ...fixture } = await Bench.with({ count: 1 }).then(expose);
    await fixture.run();
    await fixture.ready('test-count-0');
    await fixture.runFresh();
    assert.equal(bench.steps.slice(-3).join(), 'event Synced,sent Synced,patch counts/status');
    const before = bench.steps.length;
    await fixture.runFresh();
    assert.deepEqual(bench.steps.slice(before), []);
    const status = await fixture.status();
    assert.equal(status.healthy, true);
    assert.equal(status.conditions?.find(({ type }) => type === 'Ready')?.status, 'True');
  });

  it('records Synced once for each generation, before the status that shows it', async () => {
    const { bench, ...fixture } = await Bench.with({ count: 1 }).then(expose);
    const synced = () => bench.steps.filter((step) => step === 'event Synced').length;
    await fixture.run();
    assert.equal(synced(), 0);
    await fixture.ready('test-count-0');
    await fixture.runFresh();
    assert.equal(synced(), 1);
    await fixture.runFresh();
    assert.equal(synced(), 1);
    const body = { spec: { count: 0 } };
    await bench.client.patch(
      COUNTS,
      { namespace: NAMESPACE, name: 'test-count' },
      { type: 'merge', body },
    );
    await fixture.runFresh();
    await fixture.runFresh();
    assert.equal(synced(), 2);
  });

  it('deletes surplus Pods by uid, the highest ordinals first, and records each deletion', async () => {
    const { bench, count, ...fixture } = await Bench.with({ count: 1 }).then(expose);
    const uids = new Map<string, string>();
    for (const ordinal of [0, 1, 2]) {
      const pod = await bench.create(PODS, podDraft(`test-count-${ordinal}`, count));
      uids.set(pod.metadata.name, pod.metadata.uid);
    }
    await fixture.runFresh();
    const deleted = bench.writes.filter(({ what }) => what === 'delete pods');
    assert.deepEqual(
      deleted.map(({ name }) => name),
      ['test-count-2', 'test-count-1'],
    );
    for (const { name, body } of deleted) {
      assert.deepEqual(body.preconditions, { uid: uids.get(name) });
    }
    assert.deepEqual(bench.events, [
      'Normal SuccessfulDelete: Deleted pod: test-count-2',
      'Normal SuccessfulDelete: Deleted pod: test-count-1',
    ]);
  });

  it('does not delete a Pod that has the name of a cached Pod, but another uid', async () => {
    const { bench, count, ...fixture } = await Bench.with({ count: 0 }).then(expose);
    const former = await bench.create(PODS, podDraft('test-count-0', count));
    fixture.pods.show(former);
    await bench.client.delete(PODS, former.metadata);
    const next = await bench.create(PODS, podDraft('test-count-0'));
    await assert.rejects(fixture.run(), (error) => isApiError(error, 'conflict'));
    const present = await bench.get(PODS, 'test-count-0');
    assert.equal(present.metadata.uid, next.metadata.uid);
    assert.deepEqual(
      bench.events.filter((event) => event.startsWith('Warning')),
      [],
    );
  });

  it('counts a Pod that is already gone as deleted', async () => {
    const { bench, count, ...fixture } = await Bench.with({ count: 0 }).then(expose);
    const pod = await bench.create(PODS, podDraft('test-count-0', count));
    fixture.pods.show(pod);
    await bench.client.delete(PODS, pod.metadata);
    await fixture.run();
    assert.deepEqual(
      bench.events.filter((event) => event.startsWith('Warning')),
      [],
    );
  });

  it('counts only Pods that it controls by uid', async () => {
    const { bench, ...fixture } = await Bench.with({ count: 1 }).then(expose);
    const namesake: Count = await bench.create(COUNTS, countDraft(NAMESPACE, {}, 'other'));
    const unowned = await bench.create(PODS, podDraft('test-count-7', namesake));
    fixture.pods.show(unowned, await bench.create(PODS, podDraft('test-count-8')));
    await fixture.run();
    assert.deepEqual(bench.taken(), ['create pods test-count-0', 'patch counts/status test-count']);
  });

  it('reports a name collision with an unowned Pod, and creates the other Pods', async () => {
    const { bench, ...fixture } = await Bench.with({ count: 2 }).then(expose);
    fixture.pods.show(await bench.create(PODS, podDraft('test-count-0')));
    await assert.rejects(fixture.run(), /already exists and is not managed by Count/);
    assert.deepEqual(bench.taken(), ['create pods test-count-1', 'patch counts/status test-count']);
    assert.ok(bench.events.some((event) => event.startsWith('Warning ErrResourceExists: ')));
    const { conditions = [] } = await fixture.status();
    assert.equal(conditions.find(({ type }) => type === 'Stalled')?.reason, 'ErrResourceExists');
    assert.equal(conditions.find(({ type }) => type === 'Ready')?.status, 'False');
  });

  it('reads an existing Pod that is not in the cache', async () => {
    const { bench, ...fixture } = await Bench.with({ count: 1 }).then(expose);
    await bench.create(PODS, podDraft('test-count-0'));
    await assert.rejects(fixture.run(), /already exists and is not managed by Count/);
    assert.deepEqual(bench.reads, ['pods test-count-0']);
    assert.ok(bench.events.some((event) => event.startsWith('Warning ErrResourceExists: ')));
  });

  it('waits without a warning for the Pod of a previous Count of the same name', async () => {
    for (const isCached of [true, false]) {
      const { bench, count, ...fixture } = await Bench.with({ count: 1 }).then(expose);
      const former = { ...count, metadata: { ...count.metadata, uid: 'uid-of-the-former' } };
      const pod = await bench.create(PODS, podDraft('test-count-0', former));
      if (isCached) fixture.pods.show(pod);
      await fixture.run();
      assert.deepEqual(bench.events, [], String(isCached));
      assert.equal((await fixture.status()).replicas, 0);
    }
  });

  it('restores the labels of a Pod, by which autoscalers find it', async () => {
    const { bench, count, ...fixture } = await Bench.with({ count: 1 }).then(expose);
    const draft = podDraft('test-count-0', count);
    const metadata = { ...draft.metadata, labels: { team: 'a' } };
    fixture.pods.show(await bench.create(PODS, { ...draft, metadata }));
    await fixture.run();
    assert.deepEqual(bench.steps, ['patch pods', 'patch counts/status']);
    assert.equal((await fixture.status()).replicas, 1);
    const [pod] = await bench.list(PODS);
    assert.deepEqual(pod?.metadata.labels, { team: 'a', ...podLabels(count) });
  });

  it('does nothing for a Count that is being deleted or not in the cache', async () => {
    const { bench, count, ...fixture } = await Bench.with({ count: 1 }).then(expose);
    const deletionTimestamp = '2026-01-01T00:00:00Z';
    fixture.counts.show({ ...count, metadata: { ...count.metadata, deletionTimestamp } });
    await fixture.run();
    fixture.counts.hide(count);
    await fixture.run();
    assert.deepEqual(bench.steps, []);
  });

  for (const [verb, method, reason] of [
    ['creation', 'POST', 'FailedCreate'],
    ['deletion', 'DELETE', 'FailedDelete'],
  ] as const) {
    it(`reports a failed ${verb} in an event, in the status, and to the queue`, async () => {
      const { bench, count, ...fixture } = await Bench.with({
        count: method === 'POST' ? 8 : 0,
      }).then(expose);
      if (method === 'DELETE') {
        fixture.pods.show(await bench.create(PODS, podDraft('test-count-0', count)));
      }
      bench.server.faults.failNext({ method, resource: 'pods' }, 403, { times: 100 });
      await assert.rejects(fixture.run(), (error) => !(error instanceof TerminalError));
      // The controller stops after five failures in a row.
      const tried = bench.writes.filter(({ what }) => what.endsWith(' pods'));
      assert.equal(tried.length, method === 'POST' ? 5 : 1);
      assert.equal(bench.events.length, 1);
      assert.match(bench.events[0] ?? '', new RegExp(`^Warning ${reason}: Error `));
      const { conditions = [], healthy } = await fixture.status();
      const ready = conditions.find(({ type }) => type === 'Ready');
      assert.equal(ready?.status, 'False');
      assert.equal(ready?.reason, reason);
      assert.equal(healthy, false);
      // A retry may succeed, so the Count is not stalled.
      assert.equal(
        conditions.find(({ type }) => type === 'Stalled'),
        undefined,
      );
    });

    it(`reports no failed ${verb} if the daemon stops`, async () => {
      const { bench, count, ...fixture } = await Bench.with({
        count: method === 'POST' ? 1 : 0,
      }).then(expose);
      if (method === 'DELETE') {
        fixture.pods.show(await bench.create(PODS, podDraft('test-count-0', count)));
      }
      bench.server.faults.beforeRequest(({ method: asked }) => {
        if (asked !== method) return undefined;
        bench.stop.abort(new Error('stopping'));
        return 'reset';
      });
      await assert.rejects(fixture.run());
      assert.deepEqual(bench.events, []);
      assert.ok(!bench.steps.includes('patch counts/status'));
    });
  }

  it('stalls on a Pod that the server rejects as invalid, and records that once', async () => {
    const { bench, ...fixture } = await Bench.with({ count: 1, name: 'nginx' }).then(expose);
    bench.server.faults.failNext({ method: 'POST', resource: 'pods' }, 422, { times: 100 });
    await assert.rejects(fixture.run());
    const { conditions = [] } = await fixture.status();
    assert.equal(conditions.find(({ type }) => type === 'Stalled')?.reason, 'FailedCreate');
    fixture.counts.show(await bench.get(COUNTS, 'test-count'));
    await assert.rejects(fixture.run());
    assert.equal(bench.events.length, 1);
  });

  it('reports no creation that fails because the namespace is being deleted', async () => {
    const { bench, ...fixture } = await Bench.with({ count: 1 }).then(expose);
    await bench.client.delete(NAMESPACES, { name: NAMESPACE });
    await fixture.run();
    assert.deepEqual(bench.events, []);
  });

  it('stalls on an invalid spec, keeps its Pods, and records the event once', async () => {
    const { bench, count, ...fixture } = await Bench.with({ count: 1 }).then(expose);
    await fixture.run();
    const spec = { name: 'nginx', count: -1 };
    const before = bench.steps.length;
    const live = await bench.get(COUNTS, 'test-count');
    fixture.counts.show({ ...live, spec });
    await assert.rejects(fixture.run(), TerminalError);
    assert.deepEqual(bench.steps.slice(before), [
      'event InvalidSpec',
      'sent InvalidSpec',
      'patch counts/status',
    ]);
    const updated = await bench.get(COUNTS, 'test-count');
    assert.equal(updated.status?.observedGeneration, updated.metadata.generation);
    const stalled = updated.status?.conditions?.find(({ type }) => type === 'Stalled');
    assert.equal(stalled?.reason, 'InvalidSpec');
    // The last observed replicas remain.
    assert.equal(updated.status?.replicas, 1);
    assert.equal(updated.status?.healthy, false);
    fixture.counts.show({ ...updated, spec });
    await fixture.run();
    assert.equal(bench.steps.length, before + 3);
    assert.equal(count.metadata.name, 'test-count');
  });

  it('fails if the status cannot be written, and records its events once', async () => {
    const { bench, ...fixture } = await Bench.with({ count: 0 }).then(expose);
    bench.server.faults.failNext({ method: 'PATCH', resource: 'counts' }, 422, { times: 2 });
    await assert.rejects(fixture.run());
    await assert.rejects(fixture.run());
    assert.deepEqual(bench.events, ['Normal Synced: Count synced successfully']);
  });

  it('retries if the object with the name was deleted meanwhile', async () => {
    const { bench, ...fixture } = await Bench.with({ count: 1 }).then(expose);
    const pod = await bench.create(PODS, podDraft('test-count-0'));
    bench.server.faults.beforeRequest(({ method }) => {
      if (method === 'GET') return 404;
      return undefined;
    });
    await assert.rejects(fixture.run(), (error) => isApiError(error, 'alreadyExists'));
    assert.deepEqual(bench.events, []);
    assert.ok(pod.metadata.uid);
  });

  it('logs when a Count becomes healthy or unhealthy', async () => {
    const { bench, ...fixture } = await Bench.with({ count: 1 }).then(expose);
    const healthLines = () =>
      bench.lines.map(({ message }) => message).filter((message) => message.includes('healthy'));
    await fixture.run();
    await fixture.ready('test-count-0');
    await fixture.runFresh();
    await bench.client.delete(PODS, { namespace: NAMESPACE, name: 'test-count-0' });
    await fixture.runFresh();
    assert.deepEqual(healthLines().slice(-2), ['Count is healthy', 'Count is not healthy']);
  });

  it('keeps conditions of other writers in the status', async () => {
    const { bench, ...fixture } = await Bench.with({ count: 1 }).then(expose);
    const unowned = {
      type: 'Audited',
      status: 'True',
      reason: 'Nightly',
      message: 'fine',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    } as const;
    await bench.client.patch(
      COUNTS,
      { namespace: NAMESPACE, name: 'test-count' },
      { type: 'merge', body: { status: { conditions: [unowned] } } },
      { subresource: 'status' },
    );
    await fixture.runFresh();
    const { conditions = [] } = await fixture.status();
    assert.deepEqual(conditions[0], unowned);
    assert.ok(conditions.length > 1);
  });

  it('ends when the daemon stops during any request, and reports no failure', () =>
    assertEndsAtEachRequest(async () => {
      const { bench, count, run } = await Bench.with({ count: 1 }).then(expose);
      // The cache does not contain the Pod yet, so the sync reads it from the server.
      await bench.create(PODS, podDraft('test-count-0', count));
      return { bench, run };
    }));
});

/** Returns the members of the fixture with bound methods, for destructuring. */
function expose(fixture: Bench & { readonly count: Count }) {
  return {
    bench: fixture.bench,
    count: fixture.count,
    counts: fixture.counts,
    pods: fixture.pods,
    run: () => fixture.run(),
    runFresh: () => fixture.runFresh(),
    ready: (name: string) => fixture.ready(name),
    status: () => fixture.status(),
  };
}
