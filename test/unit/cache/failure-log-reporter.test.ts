import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FailureReporter } from '../../../src/cache/failure-log.ts';
import { unreachable as explain } from '../../../src/client/transport/connection-error.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { apiError, notFound, unreachable } from '../../support/fake-source.ts';
import { recordingLogger } from '../../support/recording-logger.ts';

function newFixture() {
  const clock = new FakeClock();
  const { log, lines } = recordingLogger();
  const shown = () =>
    lines.filter(({ level }) => level !== 4).map(({ message, level }) => [level, message]);
  return { clock, lines, shown, reporter: new FailureReporter({ clock, log, resource: 'pods' }) };
}

// upstream: 68
test('logs a lasting failure once, and its end once', async () => {
  const { clock, reporter, shown, lines } = newFixture();
  for (let attempt = 0; attempt < 20; attempt++) {
    reporter.failed(unreachable(), 'list', 1000);
    await clock.advance(1000);
  }
  reporter.recovered();
  reporter.recovered();
  assert.deepEqual(shown(), [
    ['error', 'Failed to list'],
    [0, 'Recovered'],
  ]);
  assert.deepEqual(lines.at(-1)!.fields, {
    resource: 'pods',
    from: 'unreachable',
    failures: 20,
    took: '20s',
  });
});

test('logs a failure of another kind', () => {
  const { reporter, shown } = newFixture();
  reporter.failed(unreachable(), 'watch', 1000);
  reporter.failed(apiError('forbidden', 'no', 403), 'list', 1000);
  reporter.failed(apiError('forbidden', 'no', 403), 'list', 1000);
  assert.equal(shown().length, 2);
});

/** Connection error as the client throws it. */
function failedToConnect(code: string) {
  return explain(Object.assign(new Error(code), { code }), 'https://10.0.0.1');
}

test('logs another reason at once, also if the server is still unreachable', () => {
  const { reporter, shown, lines } = newFixture();
  reporter.failed(failedToConnect('ECONNREFUSED'), 'watch', 1000);
  reporter.failed(failedToConnect('ECONNREFUSED'), 'watch', 1000);
  assert.equal(shown().length, 1);
  reporter.failed(failedToConnect('UNABLE_TO_VERIFY_LEAF_SIGNATURE'), 'watch', 1000);
  assert.match(String(lines.at(-1)?.error), /x509: certificate signed by unknown authority/);
  reporter.failed(apiError('unauthorized', 'Unauthorized', 401), 'list', 1000);
  assert.equal(shown().length, 3);
});

test('logs two alternating reasons once a minute each', async () => {
  const { clock, reporter, shown } = newFixture();
  for (let second = 0; second < 230; second++) {
    const code = second % 2 === 0 ? 'ECONNREFUSED' : 'ECONNRESET';
    reporter.failed(failedToConnect(code), 'list', 1000);
    await clock.advance(1000);
  }
  assert.equal(shown().length, 8);
});

test('logs a lasting failure again every five minutes', async () => {
  const { clock, reporter, lines, shown } = newFixture();
  for (let minute = 0; minute <= 10; minute++) {
    reporter.failed(unreachable(), 'list', 1000);
    await clock.advance(60_000);
  }
  assert.equal(shown().length, 3);
  assert.deepEqual(lines.findLast(({ level }) => level === 'error')!.fields, {
    resource: 'pods',
    retryIn: '1s',
    failures: 10,
    for: '10m0s',
  });
});

test('names the permission to grant while requests are forbidden', async () => {
  const { clock, reporter, lines, shown } = newFixture();
  const message =
    'pods is forbidden: User "system:serviceaccount:ops:crd-controller" cannot list resource "pods" in API group "" in the namespace "a"';
  const refused = () => reporter.failed(apiError('forbidden', message, 403), 'list', 1000);
  assert.equal(refused(), true);
  for (let second = 1; second < 10; second++) {
    await clock.advance(1000);
    assert.equal(refused(), false, 'the server may not have read its roles yet');
  }
  await clock.advance(1000);
  assert.equal(refused(), true);
  assert.deepEqual(shown(), [
    ['error', 'Failed to list'],
    ['error', 'Failed to list'],
  ]);
  const [first, last] = lines.filter(({ level }) => level === 'error');
  assert.ok(!('fix' in first!.fields));
  assert.match(String(last!.fields['fix']), /to list and watch pods in the namespace a/);
});

test('logs a resource that is not served as info, with a fix', () => {
  const { reporter, lines } = newFixture();
  reporter.failed(notFound(), 'list', 1000);
  assert.equal(lines.length, 1);
  assert.equal(lines[0]!.level, 0);
  assert.match(String(lines[0]!.fields['fix']), /CustomResourceDefinition.*kubectl apply -f/);
});

test('logs a fix for a bare 401', () => {
  const { reporter, lines } = newFixture();
  reporter.failed(apiError('unauthorized', 'Unauthorized', 401), 'list', 1234.5678);
  assert.equal(lines.length, 1);
  assert.equal(lines[0]!.fields['retryIn'], '1.235s');
  assert.match(String(lines[0]!.fields['fix']), /renew the token or client certificate/);
});
