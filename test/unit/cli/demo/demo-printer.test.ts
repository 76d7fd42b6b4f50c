import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import { DemoPrinter } from '../../../../src/cli/demo/demo-printer.ts';

function tell(colour: boolean): string[] {
  const lines: string[] = [];
  let now = 5000;
  const printer = new DemoPrinter({
    print: (text) => lines.push(text),
    colour,
    monotonic: () => now,
  });
  now += 1234;
  printer.heading('Start');
  printer.command('kubectl get x');
  printer.output(['NAME', 'x']);
  printer.change('x  gone');
  assert.equal(printer.check('True'), true);
  assert.equal(printer.check('False', 'no reason'), false);
  printer.summary(['2 Pods']);
  return lines;
}

test('prints plain text without a terminal', () => {
  assert.deepEqual(tell(false), [
    '\n== Start',
    '$ kubectl get x',
    'NAME',
    'x',
    '  1.234s  x  gone',
    '✓ True',
    '✗ False: no reason',
    '\n1 of 2 checks failed, 2 Pods, 1.234s',
  ]);
});

test('colours do not change the text', () => {
  const coloured = tell(true);
  assert.notDeepEqual(coloured, tell(false));
  assert.deepEqual(coloured.map(stripVTControlCharacters), tell(false));
});
