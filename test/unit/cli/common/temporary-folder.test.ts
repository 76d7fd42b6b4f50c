import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newTemporaryFolder } from '../../../../src/cli/common/temporary-folder.ts';

test('a temporary folder that cannot be created is an error of the user, with the next step', async () => {
  await assert.rejects(newTemporaryFolder('a-', '/dev/null/none'), {
    name: 'UsageError',
    message: /temporary folder \/dev\/null\/none; set TMPDIR to another one: /,
  });
});
