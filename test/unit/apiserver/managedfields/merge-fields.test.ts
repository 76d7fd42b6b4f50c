import assert from 'node:assert/strict';
import { test } from 'node:test';
import { displayPath } from '../../../../src/apiserver/managedfields/field-set.ts';
import { fieldsOf, mergeFields } from '../../../../src/apiserver/managedfields/merge-fields.ts';
import type { JsonObject } from '../../../../src/util/json-value.ts';
import { deepFreeze } from '../schema/arbitraries.ts';
import { SCHEMA } from './harness.ts';

function merged(live: JsonObject, applied: JsonObject): unknown {
  return mergeFields(deepFreeze({ spec: live }), deepFreeze({ spec: applied }), SCHEMA)['spec'];
}

/** Merges two sets whose items are letters. */
function order(live: string, applied: string): string {
  const { tags } = merged({ tags: Array.from(live) }, { tags: Array.from(applied) }) as {
    tags: string[];
  };
  return tags.join('');
}

test('applied items keep their order, other items their place', () => {
  assert.equal(order('abc', 'b'), 'abc');
  assert.equal(order('abc', 'adb'), 'adbc');
  assert.equal(order('acb', 'adc'), 'adcb');
  assert.equal(order('bac', 'bda'), 'bdac');
  assert.equal(order('abc', 'ca'), 'bca');
  assert.equal(order('', 'ba'), 'ba');
});

test('takes the applied one of items with the same key', () => {
  assert.equal(order('aax', 'ay'), 'ayx');
  const ports = [{ port: 80, name: 'old' }, { port: 80 }];
  assert.deepEqual(merged({ ports }, { ports: [{ port: 80, name: 'new' }] }), {
    ports: [{ port: 80, name: 'new' }],
  });
});

test('null does not change a merged map or list', () => {
  const live = { limits: { cpu: '1' }, tags: ['a'], name: 'x' };
  assert.deepEqual(merged(live, { limits: null, tags: null, name: null }), {
    ...live,
    name: null,
  });
});

test('replaces a value of another type', () => {
  assert.deepEqual(merged({ open: { a: { x: 1 } } }, { open: { a: [1] } }), { open: { a: [1] } });
  assert.deepEqual(merged({ open: { a: [1] } }, { open: { a: { x: 1 } } }), {
    open: { a: { x: 1 } },
  });
});

test('the field set has leaves, items and members with undeclared names', () => {
  const spec = {
    name: 'x',
    ports: [{ port: 80, name: 'a' }, { port: 81 }, { port: 81 }],
    limits: { cpu: '1' },
    open: { a: {}, b: { c: null } },
    tags: [],
  };
  assert.deepEqual([...fieldsOf({ spec }, SCHEMA).paths()].map(displayPath), [
    '.spec.limits.cpu',
    '.spec.name',
    '.spec.open.a',
    '.spec.open.b',
    '.spec.open.b.c',
    '.spec.ports[port=80,protocol="TCP"]',
    '.spec.ports[port=80,protocol="TCP"].name',
    '.spec.ports[port=80,protocol="TCP"].port',
    '.spec.ports[port=81,protocol="TCP"]',
  ]);
});
