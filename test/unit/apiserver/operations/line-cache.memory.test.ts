import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { LineCache } from '../../../../src/apiserver/operations/line-cache.ts';
import type { StoredObject } from '../../../../src/apiserver/objects/resource-definition.ts';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

function object(name: string): StoredObject {
  const metadata = { name, uid: name, resourceVersion: '1', creationTimestamp: '' };
  return { apiVersion: 'v1', kind: 'Thing', metadata };
}

test('a watch line of an object is encoded once for each form', () => {
  const lines = new LineCache();
  const encoded: string[] = [];
  const line = (of: StoredObject, form: string) =>
    lines.line(of, form, () => {
      encoded.push(`${of.metadata.name} ${form}`);
      return new Uint8Array(10);
    });
  const [a, b] = [object('a'), object('b')];
  assert.equal(line(a, 'ADDED'), line(a, 'ADDED'));
  line(a, 'MODIFIED');
  line(b, 'ADDED');
  line(a, 'ADDED');
  assert.deepEqual(encoded, ['a ADDED', 'a MODIFIED', 'b ADDED']);
  assert.equal(lines.bytes, 30);
});

test('the oldest lines are evicted beyond 4 MiB', () => {
  const lines = new LineCache();
  const MIB = 1024 ** 2;
  const objects = Array.from({ length: 20 }, (_, index) => object(`o${index}`));
  for (const each of objects) {
    lines.line(each, 'ADDED', () => new Uint8Array(MIB));
    assert.ok(lines.bytes <= 4 * MIB, `${lines.bytes}`);
  }
  const kept = objects.filter((each) => {
    let isKept = true;
    lines.line(each, 'ADDED', () => {
      isKept = false;
      return new Uint8Array(1);
    });
    return isKept;
  });
  assert.ok(kept.length > 0 && kept.every((each) => objects.indexOf(each) >= 16));
});

test('a cached line does not keep its object in memory', async () => {
  const lines = new LineCache();
  const held = new WeakRef({ ...object('a'), data: { text: 'x'.repeat(1000) } });
  lines.line(held.deref() ?? object('b'), 'ADDED', () => new Uint8Array(10));
  await nextTurn();
  collectGarbage();
  assert.equal(held.deref(), undefined);
  assert.equal(lines.bytes, 10);
});
