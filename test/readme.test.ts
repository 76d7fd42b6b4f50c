import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { KUBERNETES_VERSIONS } from '../hack/envtest/binaries.ts';
import { NEWEST_MINOR, OLDEST_MINOR } from '../src/api/supported-versions.ts';
import { optionsTable } from '../src/cli/help.ts';

test("the README's table of options is what the program knows", () => {
  const readme = readFileSync(join(import.meta.dirname, '../README.md'), 'utf8');
  assert.ok(
    readme.includes(optionsTable().trim()),
    'copy it from optionsTable() in src/cli/help.ts into README.md',
  );
});

test('the README names the releases of Kubernetes that are tested, and `check` knows them', () => {
  const readme = readFileSync(join(import.meta.dirname, '../README.md'), 'utf8');
  const [, table = ''] = readme.split('## Compatibility\n');
  const named = [...table.matchAll(/^\| (1\.\d+\.\d+) /gm)].map(([, version]) => version);
  assert.deepEqual(named, [...KUBERNETES_VERSIONS]);
  const minors = KUBERNETES_VERSIONS.map((version) => Number(version.split('.')[1]));
  assert.deepEqual([Math.max(...minors), Math.min(...minors)], [NEWEST_MINOR, OLDEST_MINOR]);
});
