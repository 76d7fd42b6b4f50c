import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DEPLOYMENTS } from '../../../src/api/builtin.ts';
import type { Deployment } from '../../../src/api/builtin.ts';
import { isApiError } from '../../../src/api/api-error.ts';
import type { DeepReadonly, Draft, KubernetesObject } from '../../../src/api/object.ts';
import { controllerReference } from '../../../src/api/metadata.ts';
import { objectPath } from '../../../src/api/resource.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import {
  deleteOwnedObject,
  ensureOwnedObject,
  slowStart,
} from '../../../src/manager/owned-object.ts';
import type { OwnedObjectOutcome } from '../../../src/manager/owned-object.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import type { HttpHandler } from '../../../src/util/http.ts';

const OWNER: KubernetesObject = {
  apiVersion: 'example.com/v1',
  kind: 'App',
  metadata: {
    name: 'shop',
    namespace: 'default',
    uid: 'uid-of-shop',
    resourceVersion: '1',
    creationTimestamp: '2026-01-01T00:00:00Z',
  },
};

function desiredDeployment(
  owner: KubernetesObject,
  { replicas = 2, labels = { app: 'shop' } }: { replicas?: number; labels?: object } = {},
): Draft<Deployment> & { metadata: { name: string } } {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: {
      name: 'shop',
      namespace: 'default',
      labels: { ...labels },
      ownerReferences: [controllerReference(owner)],
    },
    spec: {
      replicas,
      selector: { matchLabels: { app: 'shop' } },
      template: {
        metadata: { labels: { app: 'shop' } },
        spec: { containers: [{ name: 'app', image: 'nginx' }] },
      },
    },
  };
}

class OwnedObjectFixture {
  readonly requests: string[] = [];
  loseResponseTo: string | undefined;
  /** Called before the next PATCH. */
  beforePatch: (() => Promise<unknown>) | undefined;
  readonly server: ApiServer = new ApiServer({ clock: new FakeClock() });
  readonly client: HttpClient;
  signal = new AbortController().signal;
  readonly #handler: HttpHandler = async (request) => {
    this.requests.push(request.method);
    const before = request.method === 'PATCH' ? this.beforePatch : undefined;
    if (before) this.beforePatch = undefined;
    await before?.();
    const response = await this.server.handler(request);
    if (request.method !== this.loseResponseTo) return response;
    this.loseResponseTo = undefined;
    throw new Error('connection reset');
  };

  constructor() {
    this.client = new HttpClient({ handler: this.#handler, server: 'https://test' });
  }

  ensure(
    desired: ReturnType<typeof desiredDeployment>,
    cached: DeepReadonly<Deployment> | undefined,
    owner: KubernetesObject = OWNER,
  ): Promise<OwnedObjectOutcome<Deployment>> {
    this.requests.length = 0;
    const options = {
      resource: DEPLOYMENTS,
      owner,
      desired,
      cached,
      fieldManager: 'app-controller',
    };
    return ensureOwnedObject(this, options);
  }

  live(): Promise<Deployment> {
    return this.client.get(DEPLOYMENTS, { namespace: 'default', name: 'shop' });
  }
}

describe('ensureOwnedObject', () => {
  it('creates a missing object, and sends nothing for one in the desired state', async () => {
    const fixture = new OwnedObjectFixture();
    assert.equal((await fixture.ensure(desiredDeployment(OWNER), undefined)).kind, 'created');
    assert.deepEqual(fixture.requests, ['POST']);
    assert.equal(
      (await fixture.ensure(desiredDeployment(OWNER), await fixture.live())).kind,
      'unchanged',
    );
    assert.deepEqual(fixture.requests, []);
  });

  it('finds an owned object whose creation had no response', async () => {
    const fixture = new OwnedObjectFixture();
    fixture.loseResponseTo = 'POST';
    await assert.rejects(fixture.ensure(desiredDeployment(OWNER), undefined));
    assert.equal((await fixture.ensure(desiredDeployment(OWNER), undefined)).kind, 'unchanged');
    assert.deepEqual(fixture.requests, ['POST', 'GET']);
  });

  it('reverts changes to desired fields, and keeps fields that others added', async () => {
    const fixture = new OwnedObjectFixture();
    await fixture.ensure(desiredDeployment(OWNER), undefined);
    await fixture.client.patch(
      DEPLOYMENTS,
      { namespace: 'default', name: 'shop' },
      { type: 'merge', body: { metadata: { labels: { team: 'a' } }, spec: { replicas: 9 } } },
      { fieldManager: 'other' },
    );
    assert.equal(
      (await fixture.ensure(desiredDeployment(OWNER), await fixture.live())).kind,
      'updated',
    );
    const { metadata, spec } = await fixture.live();
    assert.equal(spec?.replicas, 2);
    assert.deepEqual(metadata.labels, { app: 'shop', team: 'a' });
  });

  it('removes fields that are no longer desired, also of the created object', async () => {
    const fixture = new OwnedObjectFixture();
    await fixture.ensure(
      desiredDeployment(OWNER, { labels: { app: 'shop', old: 'yes' } }),
      undefined,
    );
    await fixture.ensure(desiredDeployment(OWNER, { replicas: 3 }), await fixture.live());
    assert.deepEqual(fixture.requests, ['GET', 'PATCH', 'PATCH']);
    assert.deepEqual((await fixture.live()).metadata.labels, { app: 'shop' });
    await fixture.ensure(
      desiredDeployment(OWNER, { replicas: 4, labels: {} }),
      await fixture.live(),
    );
    assert.deepEqual(fixture.requests, ['GET', 'PATCH'], 'managedFields are upgraded once');
    assert.deepEqual((await fixture.live()).metadata.labels ?? {}, {});
    const raw = await fixture.client.raw({
      path: objectPath(DEPLOYMENTS, { namespace: 'default', name: 'shop' }),
    });
    const { managedFields } = (raw as KubernetesObject).metadata;
    assert.deepEqual(
      managedFields?.map(({ manager, operation }) => `${manager} ${operation}`),
      ['app-controller Apply'],
    );
  });

  it('reads an object again that changes while its managedFields are upgraded', async () => {
    const fixture = new OwnedObjectFixture();
    await fixture.ensure(desiredDeployment(OWNER), undefined);
    const cached = await fixture.live();
    const at = { namespace: 'default', name: 'shop' };
    fixture.beforePatch = () =>
      fixture.client.patch(DEPLOYMENTS, at, { type: 'merge', body: { spec: { paused: true } } });
    await fixture.ensure(desiredDeployment(OWNER, { replicas: 3 }), cached);
    assert.deepEqual(fixture.requests, ['GET', 'PATCH', 'PATCH', 'GET', 'PATCH', 'PATCH']);
  });

  it('does not change an unowned object with the same name', async () => {
    const fixture = new OwnedObjectFixture();
    const unowned = desiredDeployment(OWNER);
    await fixture.client.create(DEPLOYMENTS, {
      ...unowned,
      metadata: { ...unowned.metadata, ownerReferences: [] },
    });
    const before = await fixture.live();
    for (const cached of [undefined, before]) {
      assert.equal((await fixture.ensure(desiredDeployment(OWNER), cached)).kind, 'nameCollision');
    }
    assert.deepEqual(await fixture.live(), before);
  });

  it('reports an owned object that is being deleted, and that of a previous owner of the name, as terminating', async () => {
    const fixture = new OwnedObjectFixture();
    await fixture.ensure(desiredDeployment(OWNER), undefined);
    const successor = { ...OWNER, metadata: { ...OWNER.metadata, uid: 'uid-of-another' } };
    const outcome = await fixture.ensure(
      desiredDeployment(successor),
      await fixture.live(),
      successor,
    );
    assert.equal(outcome.kind, 'terminating');
    const deleting = await fixture.live();
    deleting.metadata.deletionTimestamp = '2026-01-01T00:00:01Z';
    assert.equal((await fixture.ensure(desiredDeployment(OWNER), deleting)).kind, 'terminating');
    assert.deepEqual(fixture.requests, []);
  });

  it('does not change the owned object of an owner with another name, group or kind', async () => {
    for (const other of [
      { ...OWNER, apiVersion: 'example.org/v1' },
      { ...OWNER, apiVersion: 'v1' },
      { ...OWNER, kind: 'Application' },
      { ...OWNER, metadata: { ...OWNER.metadata, name: 'store' } },
    ]) {
      const fixture = new OwnedObjectFixture();
      const metadata = { ...other.metadata, uid: 'uid-of-another' };
      await fixture.client.create(DEPLOYMENTS, desiredDeployment({ ...other, metadata }));
      assert.equal(
        (await fixture.ensure(desiredDeployment(OWNER), await fixture.live())).kind,
        'nameCollision',
      );
    }
    const fixture = new OwnedObjectFixture();
    const metadata = { ...OWNER.metadata, uid: 'uid-of-another' };
    const newer = { ...OWNER, apiVersion: 'example.com/v2', metadata };
    await fixture.client.create(DEPLOYMENTS, desiredDeployment(newer));
    assert.equal(
      (await fixture.ensure(desiredDeployment(OWNER), await fixture.live())).kind,
      'terminating',
    );
  });

  it('rejects with a conflict if the owned object was deleted or replaced since the cache saw it', async () => {
    const fixture = new OwnedObjectFixture();
    await fixture.ensure(desiredDeployment(OWNER), undefined);
    const stale = await fixture.live();
    await fixture.client.delete(DEPLOYMENTS, { namespace: 'default', name: 'shop' });
    const gone = await fixture
      .ensure(desiredDeployment(OWNER, { replicas: 5 }), stale)
      .catch((e: unknown) => e);
    assert.ok(isApiError(gone, 'conflict'), String(gone));
    await fixture.ensure(desiredDeployment(OWNER), undefined);
    const replaced = await fixture
      .ensure(desiredDeployment(OWNER, { replicas: 5 }), stale)
      .catch((error: unknown) => error);
    assert.ok(isApiError(replaced, 'conflict'), String(replaced));
    assert.equal((await fixture.live()).spec?.replicas, 2);
  });

  it('does not update an owned object if update is false', async () => {
    const fixture = new OwnedObjectFixture();
    await fixture.ensure(desiredDeployment(OWNER), undefined);
    const cached = await fixture.live();
    fixture.requests.length = 0;
    const options = { resource: DEPLOYMENTS, owner: OWNER, fieldManager: 'app-controller', cached };
    const desired = desiredDeployment(OWNER, { replicas: 5 });
    const outcome = await ensureOwnedObject(fixture, { ...options, desired, update: false });
    assert.deepEqual([outcome.kind, fixture.requests], ['unchanged', []]);
  });

  it('rejects with alreadyExists if the object with the name was deleted meanwhile', async () => {
    const fixture = new OwnedObjectFixture();
    await fixture.client.create(DEPLOYMENTS, desiredDeployment(OWNER));
    fixture.server.faults.beforeRequest(({ method }) => (method === 'GET' ? 404 : undefined));
    await assert.rejects(fixture.ensure(desiredDeployment(OWNER), undefined), (error) =>
      isApiError(error, 'alreadyExists'),
    );
  });

  it('rejects with the error of a request that failed for another reason', async () => {
    const fixture = new OwnedObjectFixture();
    await fixture.ensure(desiredDeployment(OWNER), undefined);
    const cached = await fixture.live();
    const invalid = fixture.ensure(desiredDeployment(OWNER, { replicas: -1 }), cached);
    await assert.rejects(invalid, { kind: 'invalid', message: /replicas/ });
    for (const forbidden of ['GET', 'POST', 'PATCH']) {
      const allow = fixture.server.faults.beforeRequest(({ method }) =>
        method === forbidden ? 403 : undefined,
      );
      const changed = desiredDeployment(OWNER, { replicas: 5 });
      const ensured = fixture.ensure(changed, forbidden === 'PATCH' ? cached : undefined);
      await assert.rejects(ensured, { kind: 'forbidden' }, forbidden);
      allow();
    }
  });

  it('rejects with the reason of the signal if it aborts', async () => {
    const fixture = new OwnedObjectFixture();
    await fixture.ensure(desiredDeployment(OWNER), undefined);
    const cached = await fixture.live();
    for (const [method, known] of [
      ['POST', undefined],
      ['GET', undefined],
      ['PATCH', cached],
    ] as const) {
      const controller = new AbortController();
      const stopped = new Error(`stopped at ${method}`);
      fixture.signal = controller.signal;
      fixture.server.faults.beforeRequest((request) => {
        if (request.method === method) controller.abort(stopped);
        return undefined;
      });
      await assert.rejects(
        fixture.ensure(desiredDeployment(OWNER, { replicas: 5 }), known),
        stopped,
      );
      fixture.server.faults.clear();
    }
  });
});

describe('deleteOwnedObject', () => {
  it('deletes the owned object and no other object of its name', async () => {
    const fixture = new OwnedObjectFixture();
    await fixture.ensure(desiredDeployment(OWNER), undefined);
    const owned = await fixture.live();
    assert.equal(await deleteOwnedObject(fixture, DEPLOYMENTS, owned), true);
    await assert.rejects(fixture.live(), { kind: 'notFound' });
    assert.equal(await deleteOwnedObject(fixture, DEPLOYMENTS, owned), false);
    await fixture.ensure(desiredDeployment(OWNER), undefined);
    await assert.rejects(deleteOwnedObject(fixture, DEPLOYMENTS, owned), { kind: 'conflict' });
    assert.notEqual((await fixture.live()).metadata.uid, owned.metadata.uid);
  });

  it('rejects with the error of a request that failed for another reason', async () => {
    const fixture = new OwnedObjectFixture();
    await fixture.ensure(desiredDeployment(OWNER), undefined);
    fixture.server.faults.beforeRequest(({ method }) => (method === 'DELETE' ? 403 : undefined));
    const owned = await fixture.live();
    await assert.rejects(deleteOwnedObject(fixture, DEPLOYMENTS, owned), { kind: 'forbidden' });
  });
});

describe('slowStart', () => {
  it('starts batches of 1, 2, 4 and so on', async () => {
    const items = Array.from({ length: 10 }, (_, at) => at);
    const batches: number[][] = [[]];
    const failure = await slowStart(items, async (item) => {
      batches.at(-1)?.push(item);
      await Promise.resolve();
      if (batches.at(-1)?.length !== 0) batches.push([]);
      return undefined;
    });
    assert.equal(failure, undefined);
    assert.deepEqual(
      batches.filter((batch) => batch.length > 0),
      [[0], [1, 2], [3, 4, 5, 6], [7, 8, 9]],
    );
  });

  it('stops after a batch with a failure, and returns the first one', async () => {
    const started: number[] = [];
    const failure = await slowStart([0, 1, 2, 3, 4], async (item) => {
      started.push(item);
      return item > 0 ? `failure of ${item}` : undefined;
    });
    assert.deepEqual([failure, started], ['failure of 1', [0, 1, 2]]);
  });

  it('continues after fewer failures in a row than permitted, one at a time', async () => {
    const started: number[] = [];
    const failing = new Set([0, 2, 3, 6, 7, 8]);
    const failure = await slowStart(
      Array.from({ length: 20 }, (_, at) => at),
      async (item) => {
        started.push(item);
        return failing.has(item) ? `failure of ${item}` : undefined;
      },
      3,
    );
    assert.deepEqual([failure, started.at(-1)], ['failure of 0', 8]);
  });
});
