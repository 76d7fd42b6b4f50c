import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Cell } from '../../../../src/cli/top/grid.ts';
import {
  arrangeTables,
  currentPage,
  focusedTable,
  press,
  selectedAt,
  START,
} from '../../../../src/cli/top/model.ts';
import type { TopState } from '../../../../src/cli/top/model.ts';
import type { PageId, TopTable } from '../../../../src/cli/top/tables.ts';

function table(id: string, rows: Readonly<Record<string, number>>, opens?: PageId): TopTable {
  return {
    id,
    columns: [{ title: 'NAME' }, { title: 'N', isNumber: true }],
    rows: Object.entries(rows).map(([name, value]) => {
      const cells: Cell[] = [name, { text: `${value}ms`, style: 'plain', value }];
      return opens ? { id: name, cells, opens } : { id: name, cells };
    }),
    nothing: 'none',
    fair: 3,
  };
}

const QUEUES = table('queues', { count: 1, foo: 10, bar: 9 }, { kind: 'queue', controller: 'foo' });
const KEYS = table('keys', { a: -Infinity, b: 2, c: -Infinity });
const TABLES = [QUEUES, table('empty', {}), KEYS];

/** A user interface with tables that a test can change. */
function ui(tables: readonly TopTable[] = TABLES, lines = 0) {
  let state: TopState | undefined = START;
  const current = () => state ?? assert.fail('the user has quit');
  const it = {
    tables,
    get state() {
      return current();
    },
    get page() {
      return currentPage(current());
    },
    get shown() {
      return arrangeTables(it.tables, it.page);
    },
    get hasQuit() {
      return state === undefined;
    },
    press: (...keys: string[]) => {
      for (const key of keys) {
        state = press(current(), key, { tables: it.shown, lines, height: 10 });
      }
      return it;
    },
    /** The selected row of the selected table. */
    get selected() {
      const focus = focusedTable(it.shown, it.page);
      return focus && `${focus.id}/${focus.rows[selectedAt(focus, it.page)]?.id}`;
    },
    names: (id: string) =>
      it.shown
        .find((each) => each.id === id)
        ?.rows.map((row) => row.id)
        .join(),
  };
  return it;
}

describe('selection', () => {
  it('moves by rows, over empty tables, and stops at the ends', () => {
    const it = ui();
    assert.equal(it.selected, 'queues/count');
    assert.equal(it.press('k').selected, 'queues/count');
    assert.equal(it.press('down', 'j').selected, 'queues/bar');
    assert.equal(it.press('j').selected, 'keys/a');
    assert.equal(it.press('G', 'j').selected, 'keys/c');
    assert.equal(it.press('g').selected, 'keys/a');
    assert.equal(it.press('up').selected, 'queues/bar');
    assert.equal(it.press('pageUp', 'pageDown', 'pageUp').selected, 'queues/count');
  });

  it('selects a row of the first table that has any', () => {
    assert.equal(ui([table('empty', {}), KEYS]).selected, 'keys/a');
  });

  it('moves between tables with Tab, which wraps', () => {
    const it = ui();
    assert.equal(it.press('tab', 'tab').selected, 'keys/a');
    assert.equal(it.press('tab').selected, 'queues/count');
    assert.equal(it.press('backTab').selected, 'keys/a');
  });

  it('follows a row that moves, and stays at the position of a row that disappears', () => {
    const it = ui().press('j');
    it.tables = [table('queues', { new: 0, count: 1, foo: 10 })];
    assert.equal(it.selected, 'queues/foo');
    it.tables = [table('queues', { new: 0, count: 1 })];
    assert.equal(it.selected, 'queues/count');
    it.tables = [table('queues', {})];
    assert.equal(it.selected, 'queues/undefined');
    it.tables = [];
    assert.equal(it.press('j', 'tab', 'enter', 'right').selected, undefined);
  });
});

describe('order and filter', () => {
  it('sorts numbers by value with the highest first, and texts by the alphabet', () => {
    const it = ui();
    assert.equal(it.press('right').names('queues'), 'bar,count,foo');
    assert.equal(it.press('>').names('queues'), 'foo,bar,count');
    assert.equal(it.shown[0]?.columns[1]?.title, 'N▼');
    assert.equal(it.press('r').names('queues'), 'count,bar,foo');
    assert.equal(it.press('right').names('queues'), 'count,foo,bar', 'the order of the program');
    assert.equal(it.press('left').names('queues'), 'foo,bar,count');
    assert.equal(it.names('keys'), 'a,b,c', 'other tables keep their order');
    assert.equal(it.press('tab', 'tab', '<').names('keys'), 'b,a,c', 'unknown numbers are last');
  });

  it('shows the rows with the text while it is typed; Enter keeps it and Esc removes it', () => {
    const it = ui();
    it.press('/', 'B', 'x', 'backspace');
    assert.deepEqual([it.names('queues'), it.names('keys')], ['bar', 'b']);
    assert.equal(it.press('j').names('queues'), '', 'j is a character of the filter');
    assert.equal(it.shown[0]?.nothing, 'no match');
    it.press('backspace', 'enter');
    assert.equal(it.state.prompt, undefined);
    assert.equal(it.press('j').selected, 'keys/b');
    assert.equal(it.press('escape').names('queues'), 'count,foo,bar');
    assert.equal(it.press('/', 'x', 'up', 'clear').page.filter, '');
    assert.equal(it.press('x', 'escape').page.filter, '');
  });
});

describe('pages', () => {
  it('opens the page of the row with Enter; q and Esc return to the same row', () => {
    const it = ui();
    it.press('j', 'enter');
    assert.deepEqual(it.page.id, { kind: 'queue', controller: 'foo' });
    assert.equal(it.press('q').selected, 'queues/foo');
    assert.deepEqual(it.press('enter', 'escape').page.id, { kind: 'overview' });
    assert.equal(it.press('G', 'j', 'enter').page.id.kind, 'overview', 'the row has no page');
    assert.ok(!it.press('escape').hasQuit);
    assert.ok(it.press('q').hasQuit);
  });

  it('opens a key by its name', () => {
    const it = ui();
    it.press('w', 'n', '/', 'q', 'enter');
    assert.deepEqual(it.page.id, { kind: 'key', key: 'n/q' });
    assert.equal(it.press('q', 'w', 'enter').page.id.kind, 'overview');
  });

  it('scrolls a text within its lines', () => {
    const it = ui([], 25).press('w', 'x', 'enter');
    assert.equal(it.press('k').page.scroll, 0);
    assert.equal(it.press('j', 'pageDown').page.scroll, 10);
    assert.equal(it.press('pageDown').page.scroll, 15);
    assert.equal(it.press('g', 'end', 'up').page.scroll, 14);
    assert.equal(ui([], 3).press('w', 'x', 'enter', 'j').page.scroll, 0);
  });

  it('quits on Ctrl-C from everywhere', () => {
    for (const keys of [[], ['/'], ['?'], ['enter']]) {
      assert.ok(ui().press(...keys, 'interrupt').hasQuit, keys.join());
    }
  });

  it('shows the help until the next key, and pauses', () => {
    const it = ui().press('?');
    assert.ok(it.state.isHelp);
    assert.ok(!it.press('q').state.isHelp);
    assert.ok(it.press(' ').state.isPaused);
    assert.ok(!it.press(' ').state.isPaused);
  });
});
