import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { applyPatch, describeConflicts } from '../../../../src/apiserver/patch/apply.ts';
import { displayPath } from '../../../../src/apiserver/patch/field-set.ts';
import { PatchError } from '../../../../src/apiserver/patch/json-patch.ts';
import type { JsonObject } from '../../../../src/apiserver/schema/json-value.ts';
import { NestingError } from '../../../../src/apiserver/schema/json-value.ts';
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

test('an apply creates what is not there', () => {
  const object = applied(undefined, count({ replicas: 3 }, { labels: { app: 'a' } }));
  assert.deepEqual(object['spec'], { replicas: 3 });
  assert.deepEqual(owners(object), { 'me Apply': ['.metadata.labels.app', '.spec.replicas'] });
});

test('applying the same again returns the live object itself', () => {
  const wanted = count({ replicas: 3, ports: [{ port: 80 }], open: { a: [1] } });
  const live = applied(undefined, wanted);
  assert.equal(applied(live, structuredClone(wanted), { now: 9 * SECOND }), live);
});

test('a field that another owns and that would change is a conflict', () => {
  const live = updated(undefined, count({ replicas: 3, name: 'a' }), { manager: 'kubectl' });
  const conflicts = conflictsOf(live, count({ replicas: 5 }));
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

test('several conflicts are listed by manager', () => {
  const created = updated(
    undefined,
    count({ replicas: 3, name: 'a', ports: [{ port: 80, name: 'x' }] }),
    {
      manager: 'kubectl',
    },
  );
  const live = applied(created, count({ limits: { cpu: '1' } }), { manager: 'helm' });
  const wanted = count({
    replicas: 5,
    ports: [{ port: 80, name: 'y' }],
    limits: { cpu: '2' },
  });
  assert.equal(
    describeConflicts(conflictsOf(live, wanted)).message,
    [
      'Apply failed with 3 conflicts: conflicts with "helm":',
      '- .spec.limits.cpu',
      `conflicts with "kubectl" using ${API_VERSION}:`,
      '- .spec.ports[port=80,protocol="TCP"].name',
      '- .spec.replicas',
    ].join('\n'),
  );
});

test('a conflict with a subresource says so', () => {
  const live = updated(undefined, count({ replicas: 3 }), {
    manager: 'scaler',
    subresource: 'scale',
  });
  assert.equal(
    describeConflicts(conflictsOf(live, count({ replicas: 5 }))).causes[0]?.message,
    `conflict with "scaler" with subresource "scale" using ${API_VERSION}`,
  );
});

test('force takes the field over', () => {
  const live = updated(undefined, count({ replicas: 3, name: 'a' }), { manager: 'kubectl' });
  const object = applied(live, count({ replicas: 5 }), { force: true });
  assert.deepEqual(object['spec'], { replicas: 5, name: 'a' });
  assert.deepEqual(owners(object), {
    'me Apply': ['.spec.replicas'],
    'kubectl Update': ['.spec', '.spec.name'],
  });
});

test('who applies the value that is there shares the field', () => {
  const live = updated(undefined, count({ replicas: 3 }), { manager: 'kubectl' });
  const object = applied(live, count({ replicas: 3 }), { now: 5 * SECOND });
  assert.deepEqual(object['spec'], live['spec']);
  assert.deepEqual(owners(object), {
    'me Apply': ['.spec.replicas'],
    'kubectl Update': ['.spec', '.spec.replicas'],
  });
  assert.deepEqual(times(object), ['1970-01-01T00:00:05Z', '1970-01-01T00:00:00Z']);
});

test('what is applied no more is removed, if nobody else owns it', () => {
  const spec = {
    replicas: 3,
    name: 'a',
    limits: { cpu: '1', memory: '2' },
    tags: ['x', 'y'],
    ports: [{ port: 80, name: 'http' }, { port: 81 }],
  };
  const first = applied(undefined, count(spec));
  const shared = applied(first, count({ name: 'a', tags: ['y'] }), { manager: 'other' });
  const object = applied(shared, count({ limits: { cpu: '1' }, ports: [{ port: 80 }] }));
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

test('what others added below a field that goes stays, with what leads to it', () => {
  const mine = applied(undefined, count({ limits: { cpu: '1' } }));
  const spec = { limits: { cpu: '1', memory: '2' } };
  const live = updated(mine, { ...mine, spec }, { manager: 'kubectl' });
  assert.deepEqual(applied(live, named())['spec'], { limits: { memory: '2' } });
});

test('an item stays if another applied it too, and goes if others only added to it', () => {
  const mine = applied(undefined, count({ ports: [{ port: 80 }, { port: 81 }] }));
  const shared = applied(mine, count({ ports: [{ port: 80, name: 'http' }] }), {
    manager: 'other',
  });
  const ports = [
    { port: 80, name: 'http' },
    { port: 81, name: 'web' },
  ];
  const live = updated(shared, { ...shared, spec: { ports } }, { manager: 'kubectl' });
  assert.deepEqual(applied(live, named())['spec'], { ports: [{ port: 80, name: 'http' }] });
});

test('fields that were never applied are left alone', () => {
  const live = updated(undefined, count({ replicas: 3, name: 'a' }), { manager: 'kubectl' });
  const once = applied(live, count({ limits: { cpu: '1' } }));
  assert.deepEqual(applied(once, named())['spec'], { replicas: 3, name: 'a' });
});

test('who applies nothing any more has no entry', () => {
  const live = applied(applied(undefined, count({ name: 'a' })), count({ replicas: 1 }), {
    manager: 'other',
  });
  assert.deepEqual(owners(applied(live, named())), { 'other Apply': ['.spec.replicas'] });
});

test('lists keep the order of the live object where the applied one does not say', () => {
  const merged = (live: readonly string[], wanted: readonly string[]) => {
    const created = updated(undefined, count({ tags: live }));
    return (applied(created, count({ tags: wanted }))['spec'] as JsonObject)['tags'];
  };
  assert.deepEqual(merged(['a', 'b', 'c'], ['b']), ['a', 'b', 'c']);
  assert.deepEqual(merged(['a', 'b', 'c'], ['d']), ['a', 'b', 'c', 'd']);
  assert.deepEqual(merged(['a', 'b', 'c'], ['c', 'a']), ['b', 'c', 'a']);
  assert.deepEqual(merged(['a', 'b'], ['x', 'b', 'y']), ['a', 'x', 'b', 'y']);
});

test('atomic parts are replaced whole', () => {
  const live = applied(undefined, count({ args: ['a', 'b'], selector: { a: '1', b: '2' } }));
  const object = applied(live, count({ args: ['b'], selector: { b: '2' } }));
  assert.deepEqual(object['spec'], { args: ['b'], selector: { b: '2' } });
  assert.deepEqual(owners(object), { 'me Apply': ['.spec.args', '.spec.selector'] });
});

test('what no schema declares is merged by member, lists whole', () => {
  const live = updated(undefined, count({ open: { a: 1, list: [1, 2], deep: { x: 1 } } }));
  const object = applied(live, count({ open: { deep: { y: 2 }, list: [3] } }), { force: true });
  assert.deepEqual(object['spec'], { open: { a: 1, list: [3], deep: { x: 1, y: 2 } } });
});

test('finalizers and owner references merge, whatever the kind declares', () => {
  const reference = (uid: string) => ({ apiVersion: 'v1', kind: 'Pod', name: uid, uid });
  const live = updated(
    undefined,
    count({}, { finalizers: ['a'], ownerReferences: [reference('1')] }),
  );
  const wanted = count({}, { finalizers: ['b'], ownerReferences: [reference('2')] });
  const metadata = applied(live, wanted)['metadata'] as JsonObject;
  assert.deepEqual(metadata['finalizers'], ['a', 'b']);
  assert.deepEqual(metadata['ownerReferences'], [reference('1'), reference('2')]);
  assert.deepEqual(owners(applied(live, wanted))['me Apply'], [
    '.metadata.finalizers[="b"]',
    '.metadata.ownerReferences[uid="2"]',
    '.spec',
  ]);
});

test('an object that nobody is known to have written counts as written before', () => {
  const live = deepFreeze(count({ replicas: 3 }, { uid: '1' }));
  assert.deepEqual(
    conflictsOf(live, count({ replicas: 5 })).map(({ manager, path }) => [
      manager,
      displayPath(path),
    ]),
    [['before-first-apply', '.spec.replicas']],
  );
  assert.deepEqual(owners(applied(live, count({ name: 'a' }))), {
    'me Apply': ['.spec.name'],
    'before-first-apply Update': ['.spec', '.spec.replicas'],
  });
});

test('what the endpoint does not write is neither taken nor owned', () => {
  const wanted = { ...count({ replicas: 1 }), status: { ready: true } };
  const live = applied(undefined, wanted);
  assert.equal('status' in live, false);
  assert.deepEqual(owners(live), { 'me Apply': ['.spec.replicas'] });
  assert.equal(applied(live, { ...wanted, status: {} }), live);

  const labels = { labels: { a: 'b' } };
  const ready = { ...count({ replicas: 9 }, labels), status: { ready: true } };
  const object = applied(live, ready, { subresource: 'status' });
  assert.deepEqual(object['spec'], { replicas: 1 });
  assert.deepEqual(object['status'], { ready: true });
  assert.deepEqual(owners(object)['me Apply status'], ['.status.ready']);
});

test('what only the server writes is ignored, what it checks is passed on', () => {
  const live = applied(undefined, count({ replicas: 1 }));
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
  assert.equal(applied(stored, count({ replicas: 1 }, exported)), stored);
  const stale = applied(stored, count({ replicas: 1 }, { resourceVersion: '6' }));
  assert.equal((stale['metadata'] as JsonObject)['resourceVersion'], '6');
});

test('part by part becomes whole when the schema becomes atomic', () => {
  const live = applied(undefined, count({ limits: { cpu: '1' } }));
  const atomic = structuredClone(SCHEMA) as JsonObject & typeof SCHEMA;
  const limits = atomic.properties?.['spec']?.properties?.['limits'] as JsonObject;
  limits['x-kubernetes-map-type'] = 'atomic';
  const result = applyPatch({
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

test('what cannot be applied is refused, and says why', () => {
  const refused = (wanted: JsonObject, code: number, message: RegExp | string, live?: JsonObject) =>
    assert.throws(
      () => tryApply(live, wanted),
      (error) => {
        assert.ok(error instanceof PatchError, String(error));
        assert.equal(error.code, code);
        if (typeof message === 'string') assert.equal(error.message, message);
        else assert.match(error.message, message);
        return true;
      },
    );
  refused({ ...count({}), apiVersion: 'demo.mark8s.io/v2' }, 400, /^Incorrect version specified/);
  refused(count({}, { managedFields: [] }), 400, 'metadata.managedFields must be nil');
  refused(
    count({ foo: 1 }, { namespace: 'n' }),
    500,
    `failed to create typed patch object (n/x; ${API_VERSION}, Kind=Count): .spec.foo: field not declared in schema`,
  );
  refused(
    count({ replicas: 'x' }),
    500,
    /\.spec\.replicas: expected numeric \(int or float\), got string$/,
  );
  refused(
    count({ ports: [{ port: 1 }, { port: 1 }] }),
    500,
    /\.spec\.ports: duplicate entries for key \[port=1,protocol="TCP"\]$/,
  );
  refused(count({ tags: [{}] }), 500, /\.spec\.tags: element 0: /);
  refused(count({ ports: {} }), 500, /\.spec\.ports: expected list, got/);
  const broken = deepFreeze(count({}, { managedFields: [{ operation: 'Steal' }] }));
  refused(count({}), 500, /managed fields/, broken);
  assert.throws(() => tryApply(undefined, count({ open: nested(100_000) })), NestingError);
});

test('a member called __proto__ is data', () => {
  const wanted = count({ open: JSON.parse('{"__proto__": {"polluted": 1}}') });
  const object = applied(updated(undefined, count({ open: {} })), wanted);
  const open = (object['spec'] as JsonObject)['open'] as JsonObject;
  assert.deepEqual(Object.keys(open), ['__proto__']);
  assert.equal(({} as JsonObject)['polluted'], undefined);
  const gone = (applied(object, count({}))['spec'] as JsonObject)['open'];
  assert.deepEqual(gone, {});
});

const text = fc.constantFrom('a', 'b', 'c');
const spec: fc.Arbitrary<JsonObject> = fc
  .record(
    {
      replicas: fc.constantFrom(1, 2),
      name: text,
      args: fc.array(text, { maxLength: 2 }),
      // Nobody owns an empty set or list map: it would stay.
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

test('applying twice is applying once, whatever others have done', () => {
  fc.assert(
    fc.property(spec, spec, spec, (created, others, wanted) => {
      const live = applied(
        updated(undefined, count(created), { manager: 'creator' }),
        count(others),
        {
          manager: 'other',
          force: true,
        },
      );
      const once = applied(live, count(wanted), { force: true });
      assert.equal(applied(once, count(wanted), { now: 5 * SECOND }), once);
    }),
  );
});

test('what was applied alone and is applied no more is gone', () => {
  fc.assert(
    fc.property(spec, (wanted) => {
      const base = applied(undefined, count({}), { manager: 'base' });
      const object = applied(applied(base, count(wanted)), count({}));
      assert.deepEqual(object['spec'], {});
    }),
  );
});

test('what is applied is there, and what others applied and nobody contests stays', () => {
  fc.assert(
    fc.property(spec, spec, (theirs, mine) => {
      const live = applied(undefined, count(theirs), { manager: 'other' });
      const object = applied(live, count(mine), { force: true });
      const again = tryApply(object, count(mine), { manager: 'witness' });
      assert.ok(again.kind === 'applied');
      assert.deepEqual(again.object['spec'], object['spec'], 'mine is all there');
      const without = applied(object, count({}));
      const restored = applied(without, count(theirs), { manager: 'other' });
      for (const key of Object.keys(theirs)) assert.ok(key in (restored['spec'] as JsonObject));
    }),
  );
});
