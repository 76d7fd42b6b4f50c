import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseYaml } from '../../../../src/apiserver/json/yaml-text.ts';
import { NestingError, WidthError } from '../../../../src/util/json-value.ts';

test('aliases cannot nest values more deeply than text, or expand to more values', () => {
  const nested = (inner: string) => `${'['.repeat(300)}${inner}${']'.repeat(300)}`;
  const deep = `a: &a ${nested('1')}\nb: ${nested('*a')}`;
  assert.throws(() => parseYaml(deep).documents, NestingError);
  const wide = `a: &a [1, 2, 3]\nb: [*a, *a, *a]`;
  assert.equal(parseYaml(wide, 30).documents.length, 1);
  assert.throws(() => parseYaml(wide, 10).documents, WidthError);
  assert.throws(() => parseYaml('a: &a [*a]').documents, WidthError);
});
