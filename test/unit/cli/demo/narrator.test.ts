import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import { Narrator } from '../../../../src/cli/demo/narrator.ts';

function tell(colour: boolean): string[] {
  const lines: string[] = [];
  let now = 5000;
  const narrator = new Narrator({
    print: (text) => lines.push(text),
    colour,
    monotonic: () => now,
  });
  now += 1234;
  narrator.heading('Begin');
  narrator.command('kubectl get x');
  narrator.output(['NAME', 'x']);
  narrator.moment('x  gone');
  assert.equal(narrator.verdict('True'), true);
  assert.equal(narrator.verdict('False', 'no reason'), false);
  narrator.figures(['2 Pods']);
  return lines;
}

test('the story is plain text where there is no terminal', () => {
  assert.deepEqual(tell(false), [
    '\n== Begin',
    '$ kubectl get x',
    'NAME',
    'x',
    '  1.234s  x  gone',
    '✓ True',
    '✗ False: no reason',
    '\n1 of 2 checks failed, 2 Pods, 1.234s',
  ]);
});

test('colours change nothing but the colour', () => {
  const coloured = tell(true);
  assert.notDeepEqual(coloured, tell(false));
  assert.deepEqual(coloured.map(stripVTControlCharacters), tell(false));
});
