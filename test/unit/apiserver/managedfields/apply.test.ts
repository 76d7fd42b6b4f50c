import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { applyPatch, describeConflicts } from '../../../../src/apiserver/managedfields/apply.ts';
import { displayPath } from '../../../../src/apiserver/managedfields/field-set.ts';
import { PatchError } from '../../../../src/apiserver/patch/json-patch.ts';
import type { JsonObject } from '../../../../src/util/json-value.ts';
import { NestingError } from '../../../../src/util/json-value.ts';
import { deepFreeze, nested } from '../schema/arbitraries.ts';
import {
  API_VERSION,
  SCHEMA,
  applied,
  conflictsOf,
  count,
  named,
  owners,
  times,
  tryApply,
  updated,
} from './harness.ts';

const SECOND = 1000;

test('an apply creates an absent object', async () => {
  const object = await applied(undefined, count({ replicas: 3 }, { labels: { app: 'a' } }));
  assert.deepEqual(object['spec'], { replicas: 3 });
  assert.deepEqual(owners(object), { 'me Apply': ['.metadata.labels.app', '.spec.replicas'] });
});

test('an identical apply returns the live object itself', async () => {
  const wanted = count({ replicas: 3, ports: [{ port: 80 }], open: { a: [1] } });
  const live = await applied(undefined, wanted);
  assert.equal(await applied(live, structuredClone(wanted), { now: 9 * SECOND }), live);
});

test('changing a field of another manager is a conflict', async () => {
  const live = updated(undefined, count({ replicas: 3, name: 'a' }), { manager: 'kubectl' });
  const conflicts = await conflictsOf(live, count({ replicas: 5 }));
  assert.deepEqual(describeConflicts(conflicts), {
    message: `Apply failed with 1 conflict: conflict with "kubectl" using ${API_VERSION}: .spec.replicas`,
    causes: [
      {
        reason: 'FieldManagerConflict',
        message: `conflict with "kubectl" using ${API_VERSION}`,
        field: '.spec.replicas',
      },
    ],
  });
});

test('lists several conflicts by manager', async () => {
  const created = updated(
    undefined,
    count({ replicas: 3, name: 'a', ports: [{ port: 80, name: 'x' }] }),
    {
      manager: 'kubectl',
    },
  );
  const live = await applied(created, count({ limits: { cpu: '1' } }), { manager: 'helm' });
  const wanted = count({
    replicas: 5,
    ports: [{ port: 80, name: 'y' }],
    limits: { cpu: '2' },
  });
  assert.equal(
    describeConflicts(await conflictsOf(live, wanted)).message,
    [
      'Apply failed with 3 conflicts: conflicts with "helm":',
      '- .spec.limits.cpu',
      `conflicts with "kubectl" using ${API_VERSION}:`,
      '- .spec.ports[port=80,protocol="TCP"].name',
      '- .spec.replicas',
    ].join('\n'),
  );
});

test('a conflict names the subresource', async () => {
  const created = updated(undefined, count({ replicas: 1 }), { manager: 'kubectl' });
  const live = updated(created, count({ replicas: 3 }), {
    manager: 'scaler',
    subresource: 'scale',
  });
  assert.equal(
    describeConflicts(await conflictsOf(live, count({ replicas: 5 }))).causes[0]?.message,
    `conflict with "scaler" with subresource "scale" using ${API_VERSION}`,
  );
});

test('force takes over the field', async () => {
  const live = updated(undefined, count({ replicas: 3, name: 'a' }), { manager: 'kubectl' });
  const object = await applied(live, count({ replicas: 5 }), { force: true });
  assert.deepEqual(object['spec'], { replicas: 5, name: 'a' });
  assert.deepEqual(owners(object), {
    'me Apply': ['.spec.replicas'],
    'kubectl Update': ['.spec', '.spec.name'],
  });
});

test('applying the present value shares the field', async () => {
  const live = updated(undefined, count({ replicas: 3 }), { manager: 'kubectl' });
  const object = await applied(live, count({ replicas: 3 }), { now: 5 * SECOND });
  assert.deepEqual(object['spec'], live['spec']);
  assert.deepEqual(owners(object), {
    'me Apply': ['.spec.replicas'],
    'kubectl Update': ['.spec', '.spec.replicas'],
  });
  // The time of an apply is that of its last change.
  assert.deepEqual(times(object), [undefined, '1970-01-01T00:00:00Z']);
});

test('removes omitted fields that no other manager owns', async () => {
  const spec = {
    replicas: 3,
    name: 'a',
    limits: { cpu: '1', memory: '2' },
    tags: ['x', 'y'],
    ports: [{ port: 80, name: 'http' }, { port: 81 }],
  };
  const first = await applied(undefined, count(spec));
  const shared = await applied(first, count({ name: 'a', tags: ['y'] }), { manager: 'other' });
  const object = await applied(shared, count({ limits: { cpu: '1' }, ports: [{ port: 80 }] }));
  assert.deepEqual(object['spec'], {
    name: 'a',
    limits: { cpu: '1' },
    tags: ['y'],
    ports: [{ port: 80 }],
  });
  assert.deepEqual(owners(object), {
    'me Apply': [
      '.spec.limits.cpu',
      '.spec.ports[port=80,protocol="TCP"]',
      '.spec.ports[port=80,protocol="TCP"].port',
    ],
    'other Apply': ['.spec.name', '.spec.tags[="y"]'],
  });
});

test('keeps fields of other managers below a removed field, and their parents', async () => {
  const mine = await applied(undefined, count({ limits: { cpu: '1' } }));
  const spec = { limits: { cpu: '1', memory: '2' } };
  const live = updated(mine, { ...mine, spec }, { manager: 'kubectl' });
  assert.deepEqual((await applied(live, named()))['spec'], { limits: { memory: '2' } });
});

test('keeps an item that another manager applied too, removes one that others only extended', async () => {
  const mine = await applied(undefined, count({ ports: [{ port: 80 }, { port: 81 }] }));
  const shared = await applied(mine, count({ ports: [{ port: 80, name: 'http' }] }), {
    manager: 'other',
  });
  const ports = [
    { port: 80, name: 'http' },
    { port: 81, name: 'web' },
  ];
  const live = updated(shared, { ...shared, spec: { ports } }, { manager: 'kubectl' });
  assert.deepEqual((await applied(live, named()))['spec'], { ports: [{ port: 80, name: 'http' }] });
});

test('does not change fields that were never applied', async () => {
  const live = updated(undefined, count({ replicas: 3, name: 'a' }), { manager: 'kubectl' });
  const once = await applied(live, count({ limits: { cpu: '1' } }));
  assert.deepEqual((await applied(once, named()))['spec'], { replicas: 3, name: 'a' });
});

test('removes the entry of a manager without fields', async () => {
  const live = await applied(
    await applied(undefined, count({ name: 'a' })),
    count({ replicas: 1 }),
    {
      manager: 'other',
    },
  );
  assert.deepEqual(owners(await applied(live, named())), { 'other Apply': ['.spec.replicas'] });
});

test('lists keep the live order unless the applied list sets another', async () => {
  const merged = async (live: readonly string[], wanted: readonly string[]) => {
    const created = updated(undefined, count({ tags: live }));
    return ((await applied(created, count({ tags: wanted })))['spec'] as JsonObject)['tags'];
  };
  assert.deepEqual(await merged(['a', 'b', 'c'], ['b']), ['a', 'b', 'c']);
  assert.deepEqual(await merged(['a', 'b', 'c'], ['d']), ['a', 'b', 'c', 'd']);
  assert.deepEqual(await merged(['a', 'b', 'c'], ['c', 'a']), ['b', 'c', 'a']);
  assert.deepEqual(await merged(['a', 'b'], ['x', 'b', 'y']), ['a', 'x', 'b', 'y']);
});

test('replaces atomic lists and maps as a whole', async () => {
  const live = await applied(undefined, count({ args: ['a', 'b'], selector: { a: '1', b: '2' } }));
  const object = await applied(live, count({ args: ['b'], selector: { b: '2' } }));
  assert.deepEqual(object['spec'], { args: ['b'], selector: { b: '2' } });
  assert.deepEqual(owners(object), { 'me Apply': ['.spec.args', '.spec.selector'] });
});

test('merges undeclared objects by member and replaces undeclared lists', async () => {
  const live = updated(undefined, count({ open: { a: 1, list: [1, 2], deep: { x: 1 } } }));
  const object = await applied(live, count({ open: { deep: { y: 2 }, list: [3] } }), {
    force: true,
  });
  assert.deepEqual(object['spec'], { open: { a: 1, list: [3], deep: { x: 1, y: 2 } } });
});

test('merges finalizers and owner references for every kind', async () => {
  const reference = (uid: string) => ({ apiVersion: 'v1', kind: 'Pod', name: uid, uid });
  const live = updated(
    undefined,
    count({}, { finalizers: ['a'], ownerReferences: [reference('1')] }),
  );
  const wanted = count({}, { finalizers: ['b'], ownerReferences: [reference('2')] });
  const metadata = (await applied(live, wanted))['metadata'] as JsonObject;
  assert.deepEqual(metadata['finalizers'], ['a', 'b']);
  assert.deepEqual(metadata['ownerReferences'], [reference('1'), reference('2')]);
  assert.deepEqual(owners(await applied(live, wanted))['me Apply'], [
    '.metadata.finalizers[="b"]',
    '.metadata.ownerReferences[uid="2"]',
    '.spec',
  ]);
});

test('an object without managers is owned by before-first-apply', async () => {
  const live = deepFreeze(count({ replicas: 3 }, { uid: '1' }));
  assert.deepEqual(
    (await conflictsOf(live, count({ replicas: 5 }))).map(({ manager, path }) => [
      manager,
      displayPath(path),
    ]),
    [['before-first-apply', '.spec.replicas']],
  );
  assert.deepEqual(owners(await applied(live, count({ name: 'a' }))), {
    'me Apply': ['.spec.name'],
    'before-first-apply Update': ['.spec', '.spec.replicas'],
  });
});

test('merges fields that the endpoint does not write, and does not own them', async () => {
  const wanted = { ...count({ replicas: 1 }), status: { ready: true } };
  const live = await applied(undefined, wanted);
  assert.deepEqual(live['status'], { ready: true });
  assert.deepEqual(owners(live), { 'me Apply': ['.spec.replicas'] });
  assert.equal(await applied(live, { ...wanted, status: {} }), live);

  const labels = { labels: { a: 'b' } };
  const ready = { ...count({ replicas: 9 }, labels), status: { ready: true } };
  const object = await applied(live, ready, { subresource: 'status' });
  assert.deepEqual(object['spec'], { replicas: 9 });
  assert.deepEqual(owners(object), {
    'me Apply': ['.spec.replicas'],
    'me Apply status': ['.status.ready'],
  });
});

test('merges metadata that only the server writes, and does not own it', async () => {
  const live = await applied(undefined, count({ replicas: 1 }));
  const stored = deepFreeze({
    ...live,
    metadata: {
      ...(live['metadata'] as JsonObject),
      creationTimestamp: '2026-01-01T00:00:00Z',
      generation: 1,
      resourceVersion: '7',
      uid: 'u',
    },
  });
  const exported = { creationTimestamp: null, generation: 5, resourceVersion: '7', uid: 'u' };
  const changed = await applied(stored, count({ replicas: 1 }, exported));
  assert.equal((changed['metadata'] as JsonObject)['generation'], 5);
  assert.deepEqual(owners(changed), { 'me Apply': ['.spec.replicas'] });
  const stale = await applied(stored, count({ replicas: 1 }, { resourceVersion: '6' }));
  assert.equal((stale['metadata'] as JsonObject)['resourceVersion'], '6');
});

test('a field that becomes atomic is owned as a whole', async () => {
  const live = await applied(undefined, count({ limits: { cpu: '1' } }));
  const atomic = structuredClone(SCHEMA) as JsonObject & typeof SCHEMA;
  const limits = atomic.properties?.['spec']?.properties?.['limits'] as JsonObject;
  limits['x-kubernetes-map-type'] = 'atomic';
  const result = await applyPatch({
    live,
    applied: count({ limits: { memory: '1' } }),
    manager: 'me',
    apiVersion: API_VERSION,
    schema: atomic,
    now: 0,
  });
  assert.ok(result.kind === 'applied');
  assert.deepEqual(result.object['spec'], { limits: { memory: '1' } });
  assert.deepEqual(owners(result.object), { 'me Apply': ['.spec.limits'] });
});

test('rejects objects that cannot be applied, with the reason', async () => {
  const refused = (wanted: JsonObject, code: number, message: RegExp | string, live?: JsonObject) =>
    assert.rejects(
      () => tryApply(live, wanted),
      (error) => {
        assert.ok(error instanceof PatchError, String(error));
        assert.equal(error.code, code);
        if (typeof message === 'string') assert.equal(error.message, message);
        else assert.match(error.message, message);
        return true;
      },
    );
  await refused(
    { ...count({}), apiVersion: 'demo.mark8s.io/v2' },
    400,
    /^Incorrect version specified/,
  );
  await refused(count({}, { managedFields: [] }), 400, 'metadata.managedFields must be nil');
  await refused(
    count({ foo: 1 }, { namespace: 'n' }),
    500,
    `failed to create typed patch object (n/x; ${API_VERSION}, Kind=Count): .spec.foo: field not declared in schema`,
  );
  await refused(
    count({ replicas: 'x' }),
    500,
    /\.spec\.replicas: expected numeric \(int or float\), got string$/,
  );
  await refused(
    count({ ports: [{ port: 1 }, { port: 1 }] }),
    500,
    /\.spec\.ports: duplicate entries for key \[port=1,protocol="TCP"\]$/,
  );
  await refused(count({ tags: [{}] }), 500, /\.spec\.tags: element 0: /);
  await refused(count({ ports: {} }), 500, /\.spec\.ports: expected list, got/);
  const broken = deepFreeze(count({}, { managedFields: [{ operation: 'Steal' }] }));
  await refused(count({}), 500, /managed fields/, broken);
  await assert.rejects(() => tryApply(undefined, count({ open: nested(100_000) })), NestingError);
});

test('a member named __proto__ is data', async () => {
  const wanted = count({ open: JSON.parse('{"__proto__": {"polluted": 1}}') });
  const object = await applied(updated(undefined, count({ open: {} })), wanted);
  const open = (object['spec'] as JsonObject)['open'] as JsonObject;
  assert.deepEqual(Object.keys(open), ['__proto__']);
  assert.equal(({} as JsonObject)['polluted'], undefined);
  const gone = ((await applied(object, count({})))['spec'] as JsonObject)['open'];
  assert.deepEqual(gone, null);
});

const text = fc.constantFrom('a', 'b', 'c');
const spec: fc.Arbitrary<JsonObject> = fc
  .record(
    {
      replicas: fc.constantFrom(1, 2),
      name: text,
      args: fc.array(text, { maxLength: 2 }),
      // An empty list of type set or map has no owner and is not removed.
      tags: fc.uniqueArray(text, { minLength: 1 }),
      ports: fc.uniqueArray(
        fc.record(
          {
            port: fc.constantFrom(80, 81),
            protocol: fc.constantFrom('TCP', 'UDP'),
            name: text,
          },
          { requiredKeys: ['port'] },
        ),
        { minLength: 1, selector: ({ port, protocol = 'TCP' }) => `${port}${protocol}` },
      ),
      selector: fc.dictionary(text, text),
      limits: fc.dictionary(text, text),
      open: fc.dictionary(text, fc.oneof(text, fc.array(text), fc.dictionary(text, text))),
    },
    { requiredKeys: [] },
  )
  .map((value) => structuredClone(value) as JsonObject);

test('applying is idempotent, independent of other managers', async () => {
  await fc.assert(
    fc.asyncProperty(spec, spec, spec, async (created, others, wanted) => {
      const live = await applied(
        updated(undefined, count(created), { manager: 'creator' }),
        count(others),
        {
          manager: 'other',
          force: true,
        },
      );
      const once = await applied(live, count(wanted), { force: true });
      assert.equal(await applied(once, count(wanted), { now: 5 * SECOND }), once);
    }),
    { numRuns: 30 },
  );
});

test('removes all fields that only one manager applied and now omits', async () => {
  await fc.assert(
    fc.asyncProperty(spec, async (wanted) => {
      const base = await applied(undefined, count({}), { manager: 'base' });
      const object = await applied(await applied(base, count(wanted)), count({}));
      const isEmpty = Object.keys(wanted).length === 0;
      assert.deepEqual(object['spec'], isEmpty ? {} : null);
    }),
    { numRuns: 30 },
  );
});

test('contains all applied fields, and the fields of other managers without conflict', async () => {
  await fc.assert(
    fc.asyncProperty(spec, spec, async (theirs, mine) => {
      const live = await applied(undefined, count(theirs), { manager: 'other' });
      const object = await applied(live, count(mine), { force: true });
      const again = await tryApply(object, count(mine), { manager: 'witness' });
      assert.ok(again.kind === 'applied');
      assert.deepEqual(again.object['spec'], object['spec'], 'mine is all there');
      const without = await applied(object, count({}));
      const restored = await applied(without, count(theirs), { manager: 'other' });
      for (const key of Object.keys(theirs)) assert.ok(key in (restored['spec'] as JsonObject));
    }),
    { numRuns: 30 },
  );
});
