import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { grid } from '../../../../src/cli/top/grid.ts';
import { cut, pad, printable, widthOf, wrap } from '../../../../src/cli/top/text.ts';

/** Names and messages that change the terminal, the direction or the alignment if they are written as they are. */
const HOSTILE = [
  '\u001b[2J\u001b]0;title\u0007',
  '\u009b31mred',
  'abc\u202etxt.exe',
  '\u2066isolated\u2069',
  'zero\u200bwidth\ufeff',
  'zalgo e\u0301\u0302\u0303\u0304',
  'line\r\nbreak\ttab\u2028next',
  '👩‍👩‍👧‍👦 family',
  '名前は深い',
  'Grüße, Привет',
  'a'.repeat(253),
];

describe('text of a terminal', () => {
  it('has no character that controls a terminal, changes the direction or has no width', () => {
    for (const text of HOSTILE) {
      assert.doesNotMatch(
        printable(text),
        /[\p{Cc}\p{Cf}\p{Mn}\p{Zl}\p{Emoji_Presentation}]/u,
        text,
      );
    }
    assert.equal(printable('Gru\u0308ße, Привет, 名前'), 'Grüße, Привет, 名前');
  });

  it('counts two columns for wide characters', () => {
    assert.deepEqual([widthOf('abc'), widthOf('名前'), widthOf('')], [3, 4, 0]);
    assert.deepEqual(
      [cut('名前は', 5), cut('名前は', 4), cut('名前', 4), cut('ab', 0)],
      ['名前…', '名…', '名前', ''],
    );
    assert.deepEqual([pad('名', 4, 'left'), pad('名', 4, 'right')], ['名  ', '  名']);
  });

  it('breaks lines at spaces, and words that are too long', () => {
    assert.deepEqual(wrap('one two three', 8), ['one two', 'three']);
    assert.deepEqual(wrap(`x ${'y'.repeat(9)}`, 4), ['x', 'yyyy', 'yyyy', 'y']);
    assert.deepEqual(wrap('名前は', 4), ['名前', 'は']);
    assert.deepEqual(wrap('', 4), ['']);
  });

  it('keeps columns aligned for any text and width', () => {
    const columns = [{ title: 'KEY' }, { title: 'N', isNumber: true }, { title: 'WHY', spare: 1 }];
    for (const width of [5, 20, 60, 400]) {
      const lines = grid(
        columns,
        HOSTILE.map((text) => [text, '1', text]),
        width,
      );
      const widths = new Set(lines.map((spans) => widthOf(spans.map(({ text }) => text).join(''))));
      assert.equal(widths.size, 1, `${width}: ${[...widths].join()}`);
      assert.ok([...widths].every((each) => each <= Math.max(5, width)));
    }
  });

  it('cuts a long name before it omits a column', () => {
    const columns = [{ title: 'KEY' }, { title: 'WHY', spare: 1 }];
    const [, row = []] = grid(columns, [['k'.repeat(253), 'w'.repeat(100)]], 60);
    assert.match(row.map(({ text }) => text).join(''), /^k{31}…  w{25}…$/);
  });
});
