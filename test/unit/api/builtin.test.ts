import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { buildSync } from 'esbuild';
import * as builtin from '../../../src/api/builtin.ts';
import { apiVersionOf } from '../../../src/api/resource.ts';

test('each descriptor has a resource of its own', () => {
  const names = Object.values(builtin).map((each) => `${apiVersionOf(each)} ${each.plural}`);
  assert.deepEqual(names.toSorted(), [...new Set(names)].toSorted());
});

test('a bundle of a program with one kind has no other kind', () => {
  const { outputFiles } = buildSync({
    stdin: {
      contents: "import { PODS } from './kinds.ts'; console.log(PODS);",
      resolveDir: join(import.meta.dirname, '../../../src'),
    },
    bundle: true,
    format: 'esm',
    write: false,
  });
  assert.deepEqual(outputFiles[0]!.text.match(/plural: "\w+"/g), ['plural: "pods"']);
});
