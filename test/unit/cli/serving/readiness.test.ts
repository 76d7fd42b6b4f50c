import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../../../src/api/api-error.ts';
import { ProgressClock } from '../../../../src/cache/progress.ts';
import { unreachable } from '../../../../src/client/transport/connection-error.ts';
import { readiness } from '../../../../src/cli/serving/readiness.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';

function world() {
  const clock = new FakeClock();
  const pods = { name: 'pods', hasSynced: false, progress: new ProgressClock(clock) };
  const [sync, progress] = readiness(() => [pods], clock);
  assert.ok(sync && progress?.detail);
  const { detail } = progress;
  return { clock, pods, sync: sync.check, progress: progress.check, detail };
}

test('a cache is ready when it is there, and for as long as the server is heard', async () => {
  const { clock, pods, sync, progress } = world();
  assert.equal(sync(), 'not synced: pods');
  assert.equal(progress(), undefined, 'what was never there cannot be deaf');
  pods.hasSynced = true;
  pods.progress.listed();
  assert.equal(sync(), undefined);
  await clock.advance(180_000);
  assert.equal(progress(), undefined, 'twice ninety seconds: a silent watch, and a new one');
  await clock.advance(1);
  assert.equal(progress(), 'no word from the server for too long: pods');
  pods.progress.listed();
  assert.equal(progress(), undefined);
});

test('a resource that the server does not have is no reason to be unready', async () => {
  const { clock, pods, sync, progress, detail } = world();
  pods.progress.missing = true;
  await clock.advance(600_000);
  assert.equal(sync(), undefined);
  pods.hasSynced = true;
  assert.equal(progress(), undefined);
  assert.deepEqual(detail(), ['pods: waiting for the server to have it; synced; never heard from']);
});

test('the detail tells the state of each informer, since when, and why its last call failed', async () => {
  const { clock, pods, detail } = world();
  pods.progress.enter('listing');
  await clock.advance(3000);
  assert.deepEqual(detail(), ['pods: listing for 3s; not synced; never heard from']);
  pods.progress.listed();
  pods.hasSynced = true;
  pods.progress.enter('watching');
  await clock.advance(250_000);
  pods.progress.listenTo({ lastByteMs: 200_000, activity: { lastMs: 241_000 } });
  assert.deepEqual(detail(), ['pods: watching for 4m10s; synced; heard from 12s ago']);
  const because = (code: string) =>
    unreachable(Object.assign(new Error('10.0.0.1'), { code }), 'https://10.0.0.1');
  pods.progress.enter('waiting', 'Cannot reach https://10.0.0.1');
  for (const [error, reason] of [
    [because('ECONNREFUSED'), 'connection refused'],
    [because('SELF_SIGNED_CERT_IN_CHAIN'), 'x509: certificate signed by unknown authority'],
    [because('ENOTFOUND'), 'its host name cannot be resolved'],
    [because('UNHEARD_OF'), 'unreachable'],
    [new ApiError({ kind: 'unauthorized', code: 401, message: 'Unauthorized' }), 'Unauthorized'],
    [new ApiError({ kind: 'forbidden', code: 403, message: 'jane may not' }), 'forbidden'],
    [new TypeError('10.0.0.1'), 'TypeError'],
  ] as const) {
    pods.progress.failed(error);
    const [line] = detail();
    assert.equal(
      line,
      `pods: waiting for 0s; synced; heard from 12s ago; last error 0s ago: ${reason}`,
    );
  }
});
