import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { optionsTable } from '../src/cli/help.ts';

test("the README's table of options is what the program knows", () => {
  const readme = readFileSync(join(import.meta.dirname, '../README.md'), 'utf8');
  assert.ok(
    readme.includes(optionsTable().trim()),
    'copy it from optionsTable() in src/cli/help.ts into README.md',
  );
});
