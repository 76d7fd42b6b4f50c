import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Screen } from '../../../../src/cli/top/screen.ts';

function terminal() {
  const written: string[] = [];
  const modes: boolean[] = [];
  return {
    written,
    modes,
    columns: 80,
    rows: 24,
    write: (text: string) => void written.push(text),
    setRaw: (isRaw: boolean) => void modes.push(isRaw),
  };
}

test('restores the terminal once', () => {
  const tty = terminal();
  const screen = new Screen(tty);
  screen.close();
  screen.open();
  screen.open();
  screen.close();
  screen.close();
  screen.draw(['too late']);
  assert.deepEqual(tty.modes, [true, false]);
  assert.deepEqual(tty.written, [
    '\u001b[?1049h\u001b[?25l\u001b[?7l',
    '\u001b[?7h\u001b[?25h\u001b[?1049l',
  ]);
});

test('overwrites the previous view line by line without clearing the screen', () => {
  const tty = terminal();
  const screen = new Screen(tty);
  screen.open();
  screen.draw(['one', 'two']);
  assert.equal(
    tty.written[1],
    '\u001b[?2026h\u001b[Hone\u001b[K\r\ntwo\u001b[K\u001b[J\u001b[?2026l',
  );
});

test('does not use the last column, and follows the size of the terminal', () => {
  const tty = { ...terminal(), columns: 100, rows: 30 };
  const screen = new Screen(tty);
  assert.deepEqual(screen.size, { width: 99, height: 30 });
  tty.columns = 1;
  assert.deepEqual(screen.size, { width: 1, height: 30 });
});
