import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { AuditLog } from '../../../../src/cli/embedded/audit-log.ts';
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
  const events = new AuditLog(sink, log);
  const text = 'x'.repeat(1024 * 1024);
  for (let index = 0; index < 20; index++) events.write({ index, text });
  assert.ok(sink.writableLength < 18 * 1024 * 1024);
  const drained = once(sink, 'drain');
  isSlow = false;
  for (const done of waiting) done();
  await drained;
  assert.equal(written.length, 16);
  assert.equal(logged.length, 1);
});
