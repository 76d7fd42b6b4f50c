import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../../../src/api/api-error.ts';
import { errorText, isProgrammerError } from '../../../../src/cli/common/errors.ts';

test('appends the causes to the message, outermost first', () => {
  const error = new Error('Failed to list Pods', {
    cause: new Error('no route', { cause: new Error('EHOSTUNREACH') }),
  });
  assert.equal(errorText(error), 'Failed to list Pods: no route: EHOSTUNREACH');
});

test('omits a cause that the message contains', () => {
  const error = new Error('Could not read x: ENOENT', { cause: new Error('ENOENT') });
  assert.equal(errorText(error), 'Could not read x: ENOENT');
});

test('appends nothing to the message of an API error', () => {
  const error = new ApiError({
    kind: 'unreachable',
    message: 'Cannot reach the API server https://x: connection refused. Check the port.',
    cause: new Error('dial failed', { cause: new Error('connect ECONNREFUSED 127.0.0.1:1') }),
  });
  assert.equal(
    errorText(new Error('Failed to list', { cause: error })),
    `Failed to list: ${error.message}`,
  );
});

test('ends a circular chain of causes', () => {
  const error = new Error('a');
  const other = new Error('b', { cause: error });
  error.cause = other;
  assert.match(errorText(error), /^a: b/);
});

test('lists several errors, each once', () => {
  const refused = new Error('connect ECONNREFUSED ::1:1');
  const both = new AggregateError([
    refused,
    refused,
    new Error('connect ECONNREFUSED 127.0.0.1:1'),
  ]);
  assert.equal(
    errorText(new Error('No connection', { cause: both })),
    'No connection: [connect ECONNREFUSED ::1:1, connect ECONNREFUSED 127.0.0.1:1]',
  );
  assert.equal(errorText(new AggregateError([refused])), 'connect ECONNREFUSED ::1:1');
  assert.equal(
    errorText(new AggregateError([refused], 'Dial')),
    'Dial: connect ECONNREFUSED ::1:1',
  );
});

test('adds the name of an internal error, and the code of an error without message', () => {
  assert.equal(errorText(new TypeError('x is not a function')), 'TypeError: x is not a function');
  assert.equal(errorText(Object.assign(new Error(''), { code: 'ECONNRESET' })), 'ECONNRESET');
  assert.equal(errorText(new Error('')), 'Error');
});

test('returns a text for every thrown value', () => {
  const circle: { self?: unknown } = {};
  circle.self = circle;
  assert.equal(errorText('plain'), 'plain');
  assert.equal(errorText(undefined), 'undefined');
  assert.equal(errorText({ code: 7 }), '{"code":7}');
  assert.equal(errorText({ kind: 'Secret', data: { key: 'a' }, token: 'b' }), '{"kind":"Secret"}');
  assert.equal(errorText(7n), '[object BigInt]');
  assert.equal(errorText(circle), '[object Object]');
});

test('treats errors that JavaScript raises for bugs as internal errors', () => {
  assert.ok(isProgrammerError(new ReferenceError('x')));
  assert.ok(!isProgrammerError(new Error('x')));
  assert.ok(!isProgrammerError(new SyntaxError('Malformed resourceVersion')));
});
