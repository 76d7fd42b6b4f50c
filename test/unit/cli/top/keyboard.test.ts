import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Keyboard } from '../../../../src/cli/top/keyboard.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';

function keyboard() {
  const clock = new FakeClock();
  const keys: string[] = [];
  return { clock, keys, input: new Keyboard(clock, (key) => keys.push(key)) };
}

describe('Keyboard', () => {
  it('reads characters, control characters and sequences of several terminals', () => {
    const { keys, input } = keyboard();
    input.push('j/ü名\r\t\u007f\u0003\u001a');
    input.push('\u001b[A\u001bOB\u001b[1;5C\u001b[5~\u001b[6;2~\u001b[1~\u001bOF\u001b[Z');
    assert.equal(
      keys.join(' '),
      'j / ü 名 enter tab backspace interrupt suspend up down right pageUp pageDown home end backTab',
    );
  });

  it('ignores unknown sequences as a whole', () => {
    const { keys, input } = keyboard();
    input.push('\u001b[<0;10;5M\u001b[15~\u001bOq\u001b[?1;2c\u0000\u0001');
    assert.deepEqual(keys, []);
  });

  it('joins a sequence that arrives in parts', async () => {
    const { clock, keys, input } = keyboard();
    for (const part of ['\u001b', '[', '5', '~']) {
      input.push(part);
      await clock.advance(40);
    }
    assert.deepEqual(keys, ['pageUp']);
  });

  it('reads an Escape that is not followed by a sequence', async () => {
    const { clock, keys, input } = keyboard();
    input.push('\u001b');
    assert.deepEqual(keys, []);
    await clock.advance(50);
    input.push('\u001b\u001bq');
    assert.deepEqual(keys, ['escape', 'escape', 'escape', 'q']);
    input.push('\u001b');
    input.close();
    await clock.advance(50);
    assert.equal(keys.length, 4);
  });
});
