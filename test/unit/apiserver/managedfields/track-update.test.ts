import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../../src/util/json-value.ts';
import { count, owners, times, updated } from './harness.ts';

const SECOND = 1000;

test('the creator owns all fields except those that identify the object', () => {
  const object = updated(
    undefined,
    count({ replicas: 3, ports: [{ port: 80 }] }, { namespace: 'n', labels: { app: 'a' } }),
  );
  assert.deepEqual(owners(object), {
    'me Update': [
      '.metadata.labels',
      '.metadata.labels.app',
      '.spec',
      '.spec.ports',
      '.spec.ports[port=80,protocol="TCP"]',
      '.spec.ports[port=80,protocol="TCP"].port',
      '.spec.replicas',
    ],
  });
  assert.deepEqual(times(object), ['1970-01-01T00:00:00Z']);
});

test('a change moves the ownership of changed fields only', () => {
  const created = updated(undefined, count({ replicas: 3, name: 'a' }));
  const scaled = updated(
    created,
    { ...created, spec: { replicas: 5, name: 'a' } },
    {
      manager: 'other',
      now: 5 * SECOND,
    },
  );
  assert.deepEqual(owners(scaled), {
    'me Update': ['.spec', '.spec.name'],
    'other Update': ['.spec.replicas'],
  });
  assert.deepEqual(times(scaled), ['1970-01-01T00:00:00Z', '1970-01-01T00:00:05Z']);
});

test('a removed field has no owner, and a manager without fields no entry', () => {
  const created = updated(undefined, count({}));
  const named = updated(created, { ...created, spec: { name: 'a' } }, { manager: 'namer' });
  const bare = updated(named, { ...named, spec: {} }, { manager: 'remover' });
  assert.deepEqual(owners(bare), { 'me Update': ['.spec'] });
});

test('a second change by the same manager extends its fields and updates the time', () => {
  const created = updated(undefined, count({ replicas: 3 }));
  const changed = updated(
    created,
    { ...created, spec: { replicas: 3, name: 'a' } },
    {
      now: 5 * SECOND,
    },
  );
  assert.deepEqual(owners(changed), { 'me Update': ['.spec', '.spec.name', '.spec.replicas'] });
  assert.deepEqual(times(changed), ['1970-01-01T00:00:05Z']);
});

test('an update without changes does not change managedFields', () => {
  const created = updated(undefined, count({ replicas: 3 }));
  const again = updated(created, structuredClone(created), { manager: 'other', now: 9 * SECOND });
  assert.deepEqual(again, created);
});

test('the same manager has an entry for each subresource and API version', () => {
  const created = updated(undefined, count({ replicas: 3 }));
  const ready = updated(
    created,
    { ...created, status: { ready: true } },
    { subresource: 'status' },
  );
  assert.deepEqual(owners(ready), {
    'me Update': ['.spec', '.spec.replicas'],
    'me Update status': ['.status', '.status.ready'],
  });
  const next = updated(
    created,
    { ...created, spec: { replicas: 4 } },
    {
      apiVersion: 'demo.mark8s.io/v2',
      now: SECOND,
    },
  );
  assert.equal(times(next).length, 2);
});

test('an endpoint does not own fields that it does not write', () => {
  const object = updated(undefined, { ...count({ replicas: 1 }), status: { ready: true } });
  assert.deepEqual(owners(object), { 'me Update': ['.spec', '.spec.replicas'] });
});

test('atomic fields are owned as a whole, sets by value', () => {
  const spec = { args: ['a', 'b'], tags: ['x'], selector: { a: '1' }, open: { deep: [1] } };
  const created = updated(undefined, count(spec));
  assert.deepEqual(owners(created)['me Update'], [
    '.spec',
    '.spec.args',
    '.spec.open',
    '.spec.open.deep',
    '.spec.selector',
    '.spec.tags',
    '.spec.tags[="x"]',
  ]);
  const changed = updated(
    created,
    { ...created, spec: { ...spec, args: ['a'], tags: ['x', 'y'], selector: { a: '2' } } },
    { manager: 'other' },
  );
  assert.deepEqual(owners(changed)['other Update'], [
    '.spec.args',
    '.spec.selector',
    '.spec.tags[="y"]',
  ]);
});

test('an empty list resets the managers and stops tracking', () => {
  const created = updated(undefined, count({ replicas: 3 }));
  for (const managedFields of [[], [{}]]) {
    const metadata = { ...(created['metadata'] as JsonObject), managedFields };
    const reset = updated(created, { ...created, metadata, spec: { replicas: 4 } });
    assert.equal('managedFields' in (reset['metadata'] as JsonObject), false);
    const later = updated(reset, { ...reset, spec: { replicas: 5 } });
    assert.deepEqual(owners(later), {});
  }
});

test('uses valid managedFields of the request and ignores invalid ones', () => {
  const created = updated(undefined, count({ replicas: 3, name: 'a' }));
  const send = (managedFields: unknown, subresource?: string) => {
    const metadata = { ...(created['metadata'] as JsonObject), managedFields };
    return owners(updated(created, { ...created, metadata }, subresource ? { subresource } : {}));
  };
  const entry = {
    manager: 'renamed',
    operation: 'Update',
    apiVersion: 'demo.mark8s.io/v1',
    fieldsType: 'FieldsV1',
    fieldsV1: { 'f:spec': { 'f:name': {} } },
  };
  assert.deepEqual(send([entry]), { 'renamed Update': ['.spec.name'] });
  const asBefore = { 'me Update': ['.spec', '.spec.name', '.spec.replicas'] };
  assert.deepEqual(send(undefined), asBefore);
  assert.deepEqual(send([{ ...entry, operation: 'Steal' }]), asBefore);
  assert.deepEqual(send([{ ...entry, fieldsV1: { x: 1 } }]), asBefore);
  assert.deepEqual(send([{ ...entry, fieldsType: 'V2' }]), asBefore);
  assert.deepEqual(send('nonsense'), asBefore);
  assert.deepEqual(send([entry], 'status'), asBefore);
});

test('merges the oldest Update managers beyond ten', () => {
  let object = updated(undefined, count({ limits: {} }), { manager: 'm0' });
  for (let index = 1; index <= 12; index++) {
    const limits = Object.fromEntries(
      Array.from({ length: index }, (_, each) => [`k${each + 1}`, 'x']),
    );
    const options = { manager: `m${index}`, now: index * SECOND };
    object = updated(object, { ...object, spec: { limits } }, options);
  }
  const all = owners(object);
  assert.equal(Object.keys(all).length, 10);
  assert.deepEqual(all['ancient-changes Update'], [
    '.spec',
    '.spec.limits',
    '.spec.limits.k1',
    '.spec.limits.k2',
    '.spec.limits.k3',
  ]);
  assert.deepEqual(all['m12 Update'], ['.spec.limits.k12']);
});

test('a manager without a name becomes unknown', () => {
  assert.deepEqual(Object.keys(owners(updated(undefined, count({ name: 'a' }), { manager: '' }))), [
    'unknown Update',
  ]);
});

test('items with the same key are owned as a whole', () => {
  const created = updated(undefined, count({ ports: [{ port: 80 }, { port: 80, name: 'a' }] }));
  assert.deepEqual(owners(created)['me Update'], [
    '.spec',
    '.spec.ports',
    '.spec.ports[port=80,protocol="TCP"]',
  ]);
  const mended = updated(
    created,
    { ...created, spec: { ports: [{ port: 80, name: 'a' }] } },
    {
      manager: 'mender',
    },
  );
  assert.deepEqual(owners(mended)['mender Update'], [
    '.spec.ports[port=80,protocol="TCP"]',
    '.spec.ports[port=80,protocol="TCP"].name',
    '.spec.ports[port=80,protocol="TCP"].port',
  ]);
});

test('an item that becomes a duplicate is owned as a whole', () => {
  const created = updated(undefined, count({ ports: [{ port: 80, name: 'a' }] }));
  const doubled = updated(
    created,
    { ...created, spec: { ports: [{ port: 80, name: 'a' }, { port: 80 }] } },
    { manager: 'other' },
  );
  assert.deepEqual(owners(doubled), {
    'me Update': ['.spec', '.spec.ports'],
    'other Update': ['.spec.ports[port=80,protocol="TCP"]'],
  });
});

test('a change of type removes the fields below', () => {
  const created = updated(undefined, count({ open: { a: { x: 1 } } }));
  const changed = updated(created, { ...created, spec: { open: { a: 5 } } }, { manager: 'other' });
  assert.deepEqual(owners(changed), {
    'me Update': ['.spec', '.spec.open'],
    'other Update': ['.spec.open.a'],
  });
});
