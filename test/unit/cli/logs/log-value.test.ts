import assert from 'node:assert/strict';
import { test } from 'node:test';
import { logText, logValue, ObjectReference } from '../../../../src/cli/logs/log-value.ts';

test('does not change JSON values', () => {
  const value = { a: [1, 'x', null, true], b: {} };
  assert.deepEqual(logValue('k', value), value);
});

test('omits undefined values, and writes numbers without a JSON form as text', () => {
  assert.equal(logValue('k', undefined), undefined);
  assert.deepEqual(logValue('k', { a: undefined, b: [undefined] }), { b: [null] });
  assert.deepEqual(
    [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY].map((n) => logValue('k', n)),
    ['NaN', '+Inf', '-Inf'],
  );
  assert.equal(logValue('k', 2n ** 70n), '1180591620717411303424');
});

test('formats errors, dates, URLs, maps and sets', () => {
  assert.equal(logValue('k', new Error('a', { cause: new Error('b') })), 'a: b');
  assert.equal(logValue('k', new Date(0)), '1970-01-01T00:00:00.000Z');
  assert.equal(logValue('k', new URL('https://u:p4ss@host/')), 'https://[redacted]@host/');
  assert.deepEqual(logValue('k', new Map([['a', 1]])), { a: 1 });
  assert.deepEqual(logValue('k', new Set([1, 2])), [1, 2]);
  assert.equal(logValue('k', Buffer.from('secret')), '(6 bytes)');
});

test('writes Kubernetes objects as references at every depth', () => {
  const pod = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'web', namespace: 'default', uid: 'u' },
    data: { x: 'aGk=' },
  };
  assert.deepEqual(logValue('pod', pod), new ObjectReference('web', 'default'));
  assert.deepEqual(logValue('pods', [pod]), [new ObjectReference('web', 'default')]);
  assert.deepEqual(logValue('node', { name: 'n1' }), new ObjectReference('n1'));
  assert.deepEqual(logValue('k', { name: 'n1', ready: true }), { name: 'n1', ready: true });
});

test('masks secrets by name at every level', () => {
  assert.equal(logValue('token', 'abc'), '[redacted]');
  assert.equal(logValue('token', ''), '');
  assert.equal(logValue('password', 1234), '[redacted]');
  assert.deepEqual(logValue('k', { user: { password: 'x', roles: ['a'] }, credentials: {} }), {
    user: { password: '[redacted]', roles: ['a'] },
    credentials: '[redacted]',
  });
});

test('cuts long texts, and wide and deep values', () => {
  assert.equal(logText('x'.repeat(20), 8), 'xxxxxxxx… (12 more characters)');
  assert.ok(JSON.stringify(logValue('k', 'x'.repeat(1e6))).length < 11_000);
  assert.equal(logValue('k', 'x'.repeat(20_000), Number.POSITIVE_INFINITY), 'x'.repeat(20_000));
  const wide = logValue(
    'k',
    Array.from({ length: 1e5 }, (_, index) => index),
  );
  assert.ok(Array.isArray(wide));
  assert.equal(wide.length, 501);
  assert.equal(wide.at(-1), '…');
  let deep: unknown = 'bottom';
  for (let level = 0; level < 100_000; level++) deep = { deep };
  assert.equal(JSON.stringify(logValue('k', deep)), `${'{"deep":'.repeat(8)}"…"${'}'.repeat(8)}`);
});

test('replaces incomplete characters', () => {
  assert.equal(logText('a\uD800b'), 'a\uFFFDb');
  assert.equal(logText('ab\u{1F600}c', 3), 'ab\uFFFD… (2 more characters)');
});

test('cuts a value that contains itself', () => {
  const circle: Record<string, unknown> = { a: 1 };
  circle['self'] = circle;
  assert.doesNotThrow(() => JSON.stringify(logValue('k', circle)));
});

test('writes a member called __proto__ as data', () => {
  const hostile: unknown = JSON.parse('{"__proto__":{"polluted":true}}');
  const value = logValue('k', hostile);
  assert.equal(JSON.stringify(value), '{"__proto__":{"polluted":true}}');
  assert.equal(Reflect.get({}, 'polluted'), undefined);
});
