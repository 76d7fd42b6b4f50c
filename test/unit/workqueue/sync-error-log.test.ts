import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorCause } from '../../../src/workqueue/sync-error-log.ts';

/** Whether the errors of two keys have the same cause. */
function isOne(form: (name: string, namespace: string, number: number) => unknown): boolean {
  const causes = [
    errorCause(form('web', 'prod', 17), 'prod/web'),
    errorCause(form('db.main-1', 'staging', 4711), 'staging/db.main-1'),
  ];
  return causes[0] === causes[1];
}

test('ignores the name of the object and names derived from it', () => {
  assert.ok(isOne((name) => new Error(`pods "${name}-0" is forbidden`)));
  assert.ok(isOne((name, namespace) => new Error(`Cannot create ${namespace}/${name}: refused`)));
  assert.ok(isOne((_, namespace) => new Error(`namespaces "${namespace}" not found`)));
  assert.ok(isOne((_, __, number) => new Error(`resourceVersion ${number} is too old, wait 5s`)));
  assert.ok(
    isOne((name) => `services "${name}"`),
    'what is thrown may be no error',
  );
});

test('distinguishes other differences', () => {
  assert.ok(!isOne((name) => new Error(name === 'web' ? 'refused' : 'timeout')));
  assert.ok(!isOne((name) => (name === 'web' ? new TypeError('no') : new Error('no'))));
  assert.ok(!isOne((name) => new Error(`quota team-${name === 'web' ? 1 : 2} exceeded`)));
  assert.ok(
    !isOne((name) => new Error('failed', { cause: new Error(name === 'web' ? 'a' : 'b') })),
  );
  assert.ok(!isOne((name) => new AggregateError([new Error(name === 'web' ? 'a' : 'b')])));
});

test('ends for a circular chain of causes', () => {
  const error = new Error('one');
  error.cause = error;
  assert.equal(typeof errorCause(error, 'a/b'), 'string');
});

test('escapes a name with special characters', () => {
  assert.equal(errorCause(new Error('a'), '('), errorCause(new Error('a'), '(['));
});
