import assert from 'node:assert/strict';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { temporaryKubeconfig, writeKubeconfig } from '../../../src/cli/kubeconfig-file.ts';

function folderFor(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'kubeconfig-file-'));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test('only the owner can read the file, and nothing is left beside it', async (context) => {
  const folder = folderFor(context);
  const path = await writeKubeconfig(join(folder, 'dev'), 'kind: Config\n');
  assert.equal(path, join(folder, 'dev'));
  assert.match(readFileSync(path, 'utf8'), /^# Written by crd-controller.*\nkind: Config\n$/);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(folder), ['dev']);
});

test('a file of ours is written again, with its mode', async (context) => {
  const path = join(folderFor(context), 'dev');
  await writeKubeconfig(path, 'first\n');
  await writeKubeconfig(path, 'second\n');
  assert.match(readFileSync(path, 'utf8'), /\nsecond\n$/);
  assert.equal(statSync(path).mode & 0o777, 0o600);
});

test("somebody else's file is refused and stays as it is", async (context) => {
  const folder = folderFor(context);
  const path = join(folder, 'config');
  writeFileSync(path, 'kind: Config # mine\n');
  await assert.rejects(writeKubeconfig(path, 'x'), {
    name: 'UsageError',
    message: `${path} exists and was not written by crd-controller: name another file, or move it away`,
  });
  assert.equal(readFileSync(path, 'utf8'), 'kind: Config # mine\n');
  assert.deepEqual(readdirSync(folder), ['config']);
});

test('a folder that is not there, and one in place of the file, are named', async (context) => {
  const folder = folderFor(context);
  await assert.rejects(writeKubeconfig(join(folder, 'no', 'dev'), 'x'), {
    name: 'UsageError',
    message: `Could not write the kubeconfig ${join(folder, 'no', 'dev')}: there is no folder ${join(folder, 'no')}`,
  });
  await assert.rejects(writeKubeconfig(folder, 'x'), { name: 'UsageError' });
});

test('a temporary file goes away with its folder', async () => {
  const file = await temporaryKubeconfig('x');
  assert.ok(existsSync(file.path));
  await file.remove();
  assert.ok(!existsSync(dirname(file.path)));
});
