import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unsupportedNodeMessage } from '../../../../src/cli/common/node-version.ts';

test('rejects an old Node.js with the required and the current version', () => {
  assert.match(
    unsupportedNodeMessage('20.19.5', '/usr/bin/node') ?? '',
    /needs Node\.js 22\.19 or newer; this is v20\.19\.5 \(\/usr\/bin\/node\).*npm install node@24$/,
  );
  assert.ok(unsupportedNodeMessage('22.18.0', 'node'));
  assert.ok(unsupportedNodeMessage('8.0.0', 'node'));
});

test('accepts a supported Node.js', () => {
  for (const version of ['22.19.0', '22.20.1', '23.0.0', '24.21.0', '100.0.0-nightly']) {
    assert.equal(unsupportedNodeMessage(version, 'node'), undefined, version);
  }
});
