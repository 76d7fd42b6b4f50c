import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { sourceStack } from '../../../../src/cli/logs/source-stack.ts';

const SOURCE = `
// A comment that the bundle does not contain.
export function fail(): never {
  throw new Error('broken');
}
`;

/** Returns the error that a minified bundle of `SOURCE` throws. */
async function thrownByBundle(folder: string): Promise<Error> {
  writeFileSync(join(folder, 'fail.ts'), SOURCE);
  const outfile = join(folder, 'fail.mjs');
  const entryPoints = [join(folder, 'fail.ts')];
  await build({ entryPoints, outfile, minify: true, format: 'esm', sourcemap: 'external' });
  const { fail }: { fail: () => never } = await import(pathToFileURL(outfile).href);
  try {
    return fail();
  } catch (error) {
    assert.ok(error instanceof Error);
    return error;
  }
}

test('shows the positions of the source if the source map is beside the bundle', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'source-stack-'));
  try {
    const error = await thrownByBundle(folder);
    const { stack } = error;
    assert.match(sourceStack(error), /fail\.ts:4:\d+/);
    assert.doesNotMatch(sourceStack(error), /fail\.mjs/);
    rmSync(join(folder, 'fail.mjs.map'));
    assert.equal(sourceStack(error), stack);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('does not change the stack of a file without a source map', () => {
  const error = new Error('broken');
  assert.equal(sourceStack(error), error.stack);
});
