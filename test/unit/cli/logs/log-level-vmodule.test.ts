import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseVModule, verbosityOf } from '../../../../src/cli/logs/log-level.ts';

const at = (file: string) => ({ file, folder: 'cache', line: 1 });

test('matches the base name without extension; the first match wins', () => {
  const patterns = parseVModule('reflector=6,work-*=4,?.b=1,work-queue=9');
  assert.equal(verbosityOf(at('reflector.ts'), patterns), 6);
  assert.equal(verbosityOf(at('work-queue.ts'), patterns), 4);
  assert.equal(verbosityOf(at('x.b.js'), patterns), 1);
  assert.equal(verbosityOf(at('xxb.js'), patterns), undefined);
  assert.equal(verbosityOf(at('reflectors.ts'), patterns), undefined);
});

test('parses an empty text as no pattern', () => assert.deepEqual(parseVModule(''), []));

test('names the invalid part', () => {
  for (const text of ['reflector', 'a=1,=2', 'a=b', 'a=-1', `${'a'.repeat(129)}=1`]) {
    assert.throws(() => parseVModule(text), SyntaxError, text);
  }
  assert.throws(() => parseVModule('a=1,b'), /"b" must have the form pattern=N/);
});
