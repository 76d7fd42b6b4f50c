import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KUBERNETES_VERSIONS } from '../../../hack/envtest/binaries.ts';
import { NEWEST_MINOR, OLDEST_MINOR, skewOf } from '../../../src/api/supported-versions.ts';

test('the supported versions are the versions of the control planes in tests', () => {
  const minors = KUBERNETES_VERSIONS.map((version) => Number(version.split('.')[1]));
  assert.deepEqual(
    [Math.max(...minors), Math.min(...minors), new Set(minors).size],
    [NEWEST_MINOR, OLDEST_MINOR, NEWEST_MINOR - OLDEST_MINOR + 1],
  );
});

test('classifies a server version as supported, older, newer or unknown', () => {
  const skew = (minor: string, major = '1') => skewOf({ major, minor });
  assert.deepEqual(
    [skew(`${OLDEST_MINOR - 1}`), skew(`${OLDEST_MINOR}`), skew(`${NEWEST_MINOR}+`)],
    ['older', 'supported', 'supported'],
  );
  assert.deepEqual(
    [skew(`${NEWEST_MINOR + 1}`), skew('x'), skew('0', '2')],
    ['newer', 'unknown', 'unknown'],
  );
});
