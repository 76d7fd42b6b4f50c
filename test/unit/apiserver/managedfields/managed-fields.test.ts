import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FieldManager } from '../../../../src/apiserver/managedfields/managed-fields.ts';
import { Managers, withManagers } from '../../../../src/apiserver/managedfields/managed-fields.ts';
import { FieldSet } from '../../../../src/apiserver/managedfields/field-set.ts';
import type { ManagedFieldsEntry } from '../../../../src/api/object.ts';

function entry(manager: string, second: number, field: string = manager): ManagedFieldsEntry {
  return {
    manager,
    operation: 'Update',
    apiVersion: 'v1',
    time: `2026-01-01T00:00:${String(second).padStart(2, '0')}Z`,
    fieldsType: 'FieldsV1',
    fieldsV1: { [`f:${field}`]: {} },
  };
}

function parsed(entries: readonly ManagedFieldsEntry[]): Managers {
  const managers = Managers.parse(entries);
  assert.ok(managers);
  return managers;
}

test('sorts Apply before Update, then by time, then by name', () => {
  const entries = [
    entry('c', 9),
    entry('b', 5),
    { ...entry('z', 9), operation: 'Apply' as const },
    entry('a', 5),
    { ...entry('a', 5), subresource: 'status' },
  ];
  assert.deepEqual(
    parsed(entries)
      .toEntries()
      .map(({ manager, subresource }) => [manager, subresource]),
    [
      ['z', undefined],
      ['a', undefined],
      ['a', 'status'],
      ['b', undefined],
      ['c', undefined],
    ],
  );
});

test('an unchanged entry stays the same object', () => {
  const [kept, changed] = [entry('a', 1), entry('b', 2)];
  const managers = parsed([kept, changed]);
  const next = managers.map(({ name, fields }) =>
    name === 'b' ? FieldSet.fromJson({ 'f:x': {} }) : fields,
  );
  const entries = next.toEntries();
  assert.equal(entries[0], kept);
  assert.deepEqual(entries[1]?.fieldsV1, { 'f:x': {} });
  assert.equal(
    managers.map(({ fields }) => fields),
    managers,
  );
  const same: FieldManager = { ...[...managers][0]!, fields: FieldSet.fromJson({ 'f:a': {} }) };
  assert.equal(managers.with(same), managers);
});

test('Apply has one entry for all API versions, Update one for each', () => {
  const applier = { ...entry('a', 1), operation: 'Apply' as const };
  assert.equal(parsed([applier, { ...applier, apiVersion: 'v2' }]).toEntries().length, 1);
  assert.equal(
    parsed([entry('a', 1), { ...entry('a', 1), apiVersion: 'v2' }]).toEntries().length,
    2,
  );
});

test('later merges extend the entry of merged managers', () => {
  const entries = [
    entry('oldest', 1),
    { ...entry('ancient-changes', 2), fieldsV1: { 'f:past': {} } },
    ...Array.from({ length: 9 }, (_, index) => entry(`m${index}`, 10 + index)),
  ];
  const capped = parsed(entries).capped().toEntries();
  assert.equal(capped.length, 10);
  const bucket = capped.find(({ manager }) => manager === 'ancient-changes');
  assert.deepEqual(bucket?.fieldsV1, { 'f:m0': {}, 'f:past': {} });
});

test('does not merge ten Update managers', () => {
  const entries = Array.from({ length: 10 }, (_, index) => entry(`m${index}`, index));
  const managers = parsed(entries);
  assert.equal(managers.capped(), managers);
});

test('an object without managers has no managedFields', () => {
  const object = { metadata: { name: 'a', managedFields: [entry('a', 1)] } };
  assert.deepEqual(withManagers(object, Managers.NONE), { metadata: { name: 'a' } });
});
