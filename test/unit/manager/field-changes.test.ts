import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { updateOf } from '../../../src/manager/field-changes.ts';
import type { DeepReadonly, KubernetesObject } from '../../../src/api/object.ts';

function object(rest: object, kind = 'Pod'): DeepReadonly<KubernetesObject> {
  const metadata = { name: 'web', uid: '1', resourceVersion: '1', creationTimestamp: '' };
  return { apiVersion: 'v1', kind, metadata, ...rest };
}

/** The changes between two objects as `FIELD BEFORE AFTER`. */
function changes(before: object, after: object, kind?: string): string[] | undefined {
  const update = updateOf(object(before, kind), object(after, kind));
  return update.changes?.map(
    ({ field, before = 'absent', after = 'absent' }) => `${field} ${before} ${after}`,
  );
}

describe('the description of an update', () => {
  it('has the values of the changed fields', () => {
    assert.deepEqual(
      changes(
        { spec: { replicas: 2, paused: true, ports: [1] } },
        { spec: { replicas: 3, image: 'a"b', ports: [1, 2] }, status: { phase: 'Running' } },
      ),
      [
        '.spec.replicas 2 3',
        '.spec.image absent "a\\"b"',
        '.spec.ports [1 item] [2 items]',
        '.spec.paused true absent',
        '.status absent {1 field}',
      ],
    );
    assert.equal(updateOf(object({}), object({ metadata: { uid: '2' } })).changes, undefined);
  });

  it('has short values of few fields', () => {
    const many = Object.fromEntries(
      Array.from({ length: 9 }, (_, at) => [`f${at}`, 'x'.repeat(99)]),
    );
    const shown = changes({ spec: { all: {} } }, { spec: { all: many } }) ?? [];
    assert.equal(shown.length, 5);
    assert.ok(shown.every((text) => text.length < 110));
  });

  it('masks secrets', () => {
    const password = 'hunter2hunter2';
    for (const [before, after, kind] of [
      [{ data: { a: 'eA==' } }, { data: { a: password } }, 'Secret'],
      [{ stringData: { a: '1' } }, { stringData: { a: password } }, 'Secret'],
      [{ spec: { password: '1' } }, { spec: { password } }, 'Pod'],
      [{ spec: { env: [{ value: '1' }] } }, { spec: { env: [{ value: password }] } }, 'Pod'],
      [{ spec: { url: '' } }, { spec: { url: `https://me:${password}@host/` } }, 'Pod'],
      [{ spec: { header: '' } }, { spec: { header: `Bearer ${password}` } }, 'Pod'],
    ] as const) {
      const text = JSON.stringify(changes(before, after, kind));
      assert.ok(text.includes('[redacted]') && !text.includes(password), text);
    }
  });
});
