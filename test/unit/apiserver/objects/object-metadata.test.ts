import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { deletionFinalizers } from '../../../../src/apiserver/objects/finalizers.ts';
import {
  validateMetadata,
  validateMetadataUpdate,
} from '../../../../src/apiserver/objects/object-metadata.ts';
import { nameProblems } from '../../../../src/api/object-names.ts';
import { formatFieldError } from '../../../../src/api/field-error.ts';
import type { ObjectMeta } from '../../../../src/api/object.ts';

const META: ObjectMeta = {
  name: 'web',
  namespace: 'default',
  uid: 'u',
  resourceVersion: '1',
  creationTimestamp: '2026-01-01T00:00:00Z',
};

function problems(change: Partial<ObjectMeta>): string[] {
  return validateMetadata({ ...META, ...change }, true, 'dns1123Subdomain').map(formatFieldError);
}

function changeProblems(next: ObjectMeta, previous: ObjectMeta): string[] {
  const kind = { namespaced: true, group: '' };
  return validateMetadataUpdate(next, previous, kind, undefined).errors.map(formatFieldError);
}

describe('names', () => {
  test('each format accepts the names that a real server accepts', () => {
    const ok = (name: string, format: Parameters<typeof nameProblems>[1]) =>
      nameProblems(name, format).length === 0;
    assert.ok(ok('a.b-c', 'dns1123Subdomain'));
    assert.ok(ok('a'.repeat(253), 'dns1123Subdomain'));
    assert.ok(!ok('a'.repeat(254), 'dns1123Subdomain'));
    assert.ok(!ok('-a', 'dns1123Subdomain'));
    assert.ok(!ok('a.b', 'dns1123Label'));
    assert.ok(ok('1a', 'dns1123Label'));
    assert.ok(!ok('1a', 'dns1035Label'));
    assert.ok(ok('system:x', 'pathSegment'));
    assert.ok(!ok('a/b', 'pathSegment'));
    assert.ok(!ok('..', 'pathSegment'));
  });

  test('the length of a name is reported in characters, that of a label value in bytes', () => {
    const long = 'a'.repeat(254);
    assert.deepEqual(nameProblems(long, 'dns1123Subdomain'), [
      'must be no more than 253 characters',
    ]);
    assert.deepEqual(problems({ labels: { app: 'a'.repeat(64) } }), [
      `metadata.labels: Invalid value: "${'a'.repeat(64)}": must be no more than 63 bytes`,
    ]);
  });

  test('a generateName is checked too; it may end with a hyphen', () => {
    assert.deepEqual(problems({ generateName: 'web-' }), []);
    assert.match(
      problems({ generateName: '-' })[0] ?? '',
      /^metadata\.generateName: Invalid value: "-": /,
    );
    assert.match(problems({ generateName: 'Web-' })[0] ?? '', /^metadata\.generateName: /);
  });

  test('a very long name is rejected without a slow regular expression', () => {
    const started = performance.now();
    assert.equal(nameProblems(`${'a-'.repeat(500_000)}!`, 'dns1123Subdomain').length, 2);
    assert.ok(performance.now() - started < 1000);
  });
});

describe('metadata', () => {
  test('valid metadata has no problems', () => {
    assert.deepEqual(
      problems({
        labels: { app: 'web', 'example.com/tier': '' },
        annotations: { 'example.com/Note': 'x' },
        finalizers: ['example.com/cleanup'],
        ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'a', uid: 'b', controller: true }],
      }),
      [],
    );
  });

  test('each field is checked, with the texts of a real server', () => {
    assert.deepEqual(problems({ name: '' }), [
      'metadata.name: Required value: name or generateName is required',
    ]);
    assert.match(problems({ labels: { 'a/b/c': 'x' } })[0] ?? '', /a valid label key must consist/);
    assert.match(problems({ labels: { a: 'no spaces' } })[0] ?? '', /a valid label must be/);
    assert.match(problems({ labels: { '/a': 'x' } })[0] ?? '', /prefix part must be non-empty/);
    assert.match(
      problems({ annotations: { big: 'x'.repeat(300_000) } })[0] ?? '',
      /metadata.annotations: Too long: may not be more than 262144 bytes/,
    );
    const owner = { apiVersion: 'v1', kind: 'Pod', name: 'a', uid: 'b', controller: true };
    assert.match(
      problems({ ownerReferences: [owner, { ...owner, name: 'c' }] })[0] ?? '',
      /Only one reference can have Controller set to true. Found "true" in references for Pod\/a and Pod\/c$/,
    );
    assert.match(
      problems({ ownerReferences: [{ ...owner, uid: '' }] })[0] ?? '',
      /ownerReferences\[0\].uid: Required value: must not be empty/,
    );
    assert.equal(problems({ finalizers: ['orphan', 'foregroundDeletion'] }).length, 1);
  });

  test('an update cannot change the identity of an object', () => {
    assert.deepEqual(changeProblems({ ...META, uid: 'other' }, META), [
      'metadata.uid: Invalid value: "other": field is immutable',
    ]);
  });

  test('an object that is being deleted can lose finalizers but not gain any', () => {
    const dying = { ...META, deletionTimestamp: 't', finalizers: ['a/b', 'c/d'] };
    assert.deepEqual(changeProblems({ ...dying, finalizers: ['a/b'] }, dying), []);
    assert.match(
      changeProblems({ ...dying, finalizers: ['a/b', 'e/f'] }, dying)[0] ?? '',
      /no new finalizers can be added if the object is being deleted, found new finalizers \[\]string\{"e\/f"\}/,
    );
  });
});

test('the propagation policy selects the finalizer of garbage collection', () => {
  const own = ['example.com/x'];
  assert.deepEqual(deletionFinalizers(own, undefined), own);
  assert.deepEqual(deletionFinalizers(own, 'Foreground'), [...own, 'foregroundDeletion']);
  assert.deepEqual(deletionFinalizers([...own, 'foregroundDeletion'], 'Orphan'), [
    ...own,
    'orphan',
  ]);
  assert.deepEqual(deletionFinalizers([...own, 'orphan'], 'Background'), own);
  assert.deepEqual(deletionFinalizers([...own, 'orphan'], undefined), [...own, 'orphan']);
});
