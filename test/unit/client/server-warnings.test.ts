import assert from 'node:assert/strict';
import { test } from 'node:test';
import { logWarningsOnce } from '../../../src/client/server-warnings.ts';
import { recordingLogger } from '../../support/recording-logger.ts';

test('logs each warning once, and remembers the last thousand', () => {
  const { log, lines } = recordingLogger();
  const warn = logWarningsOnce(log);
  for (let round = 0; round < 2; round++) {
    for (let count = 0; count < 1000; count++) warn(`warning ${count}`);
  }
  assert.equal(lines.length, 1000);
  warn('another warning');
  warn('warning 0');
  assert.equal(lines.length, 1002);
});
