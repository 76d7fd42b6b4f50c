import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { KUBERNETES_VERSIONS } from '../hack/envtest/binaries.ts';
import { NEWEST_MINOR, OLDEST_MINOR } from '../src/api/supported-versions.ts';
import { optionsTable } from '../src/cli/flags/help.ts';
import { COMPILE_CACHE } from './support/compile-cache.ts';
import { Program } from './support/program.ts';

test("the README's table of options is what the program knows", () => {
  const readme = readFileSync(join(import.meta.dirname, '../README.md'), 'utf8');
  assert.ok(
    readme.includes(optionsTable().trim()),
    'copy it from optionsTable() in src/cli/flags/help.ts into README.md',
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

/** The README's TypeScript, in its order: here it is type-checked and linted like everything else. */
const SAMPLES = ['controller.ts', 'informers.ts', 'embedded-server.ts'];

test('the TypeScript of the README is that of test/readme', () => {
  const readme = readFileSync(join(import.meta.dirname, '../README.md'), 'utf8');
  const blocks = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, block]) => block);
  const files = SAMPLES.map((name) =>
    readFileSync(join(import.meta.dirname, 'readme', name), 'utf8'),
  );
  assert.deepEqual(blocks, files, 'change both, the README and test/readme');
  assert.deepEqual(readdirSync(join(import.meta.dirname, 'readme')), SAMPLES.toSorted());
});

test('what the README does with the embedded server does what it says', async () => {
  const root = join(import.meta.dirname, '..');
  const { code, stdout, stderr } = await new Program(
    process.execPath,
    [
      '--import',
      join(root, 'hack/import-from-source.ts'),
      join(import.meta.dirname, 'readme/embedded-server.ts'),
    ],
    { NODE_COMPILE_CACHE: COMPILE_CACHE },
  ).ended();
  assert.deepEqual([code, stdout, stderr], [0, 'Running\n', '']);
});
