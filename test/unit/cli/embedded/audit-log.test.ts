import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { AuditLog, openAuditLog } from '../../../../src/cli/embedded/audit-log.ts';
import { silentLogger } from '../../../../src/util/logger.ts';
import { recordingLogger } from '../../../support/recording-logger.ts';

test('events beyond the limit are dropped while the file is slow, and counted', async () => {
  const written: string[] = [];
  let isSlow = true;
  const waiting: (() => void)[] = [];
  const sink = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      written.push(chunk.toString());
      if (isSlow) waiting.push(done);
      else done();
    },
  });
  const { log, lines: logged } = recordingLogger();
  const events = new AuditLog({}, sink, log);
  const text = 'x'.repeat(1024 * 1024);
  for (let index = 0; index < 20; index++) events.write({ index, text });
  assert.ok(sink.writableLength < 18 * 1024 * 1024);
  const drained = once(sink, 'drain');
  isSlow = false;
  for (const done of waiting) done();
  await drained;
  assert.equal(written.length, 16);
  assert.deepEqual(
    logged.map(({ fields }) => fields),
    [{ count: 4 }],
  );
  // They are not reported again.
  isSlow = true;
  for (let index = 0; index < 16; index++) events.write({ index, text });
  const again = once(sink, 'drain');
  isSlow = false;
  for (const done of waiting.splice(-1)) done();
  await again;
  assert.equal(logged.length, 1);
});

test('events are appended to a file that only its owner can read', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'audit-log-'));
  try {
    const [policy, file] = [join(folder, 'policy.yaml'), join(folder, 'events')];
    await writeFile(policy, 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None}]\n');
    for (const index of [1, 2]) {
      const log = await openAuditLog(policy, file, silentLogger);
      assert.deepEqual(log?.policy['rules'], [{ level: 'None' }]);
      log.write({ index });
      await log.close();
    }
    assert.equal(await readFile(file, 'utf8'), '{"index":1}\n{"index":2}\n');
    assert.equal((await stat(file)).mode & 0o777, 0o600);
  } finally {
    await rm(folder, { recursive: true });
  }
});
