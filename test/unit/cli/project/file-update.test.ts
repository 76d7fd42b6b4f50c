import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CONFLICT, fileUpdates } from '../../../../src/cli/project/file-update.ts';
import type { FileUpdate } from '../../../../src/cli/project/file-update.ts';

const LINES = ['one', 'two', 'three', 'four', 'five', 'six', 'seven'];

function lines(changes: Readonly<Record<string, string>> = {}): string {
  return LINES.map((line) => `${changes[line] ?? line}\n`).join('');
}

const GENERATED = '// Generated from x by `crd-controller generate`. Do not edit.\n';
const BASE = lines();
const MINE = lines({ one: 'mine' });
const NEXT = lines({ seven: 'next' });

const manifestOf = (fields: object) => `${JSON.stringify({ name: 'x', ...fields }, null, 2)}\n`;
const depending = (versions: object) => manifestOf({ devDependencies: { a: '1', ...versions } });

type Texts = Readonly<Partial<Record<'ours' | 'base' | 'theirs', string>>>;

async function updateOf(path: string, texts: Texts): Promise<FileUpdate | undefined> {
  const files = (text?: string) => new Map(text === undefined ? [] : [[path, text]]);
  const [update] = await fileUpdates({
    ours: files(texts.ours),
    base: files(texts.base),
    theirs: files(texts.theirs),
    versions: ['1.0.0', '2.0.0'],
  });
  return update;
}

describe('An update', () => {
  const merged = lines({ one: 'mine', seven: 'next' });
  const cases: [title: string, texts: Texts, state?: string, text?: string][] = [
    ['has nothing to do', { ours: BASE, base: BASE, theirs: BASE }, 'unchanged'],
    ['keeps a change of the author', { ours: MINE, base: BASE, theirs: BASE }, 'unchanged'],
    ['replaces an unchanged file', { ours: BASE, base: BASE, theirs: NEXT }, 'updated', NEXT],
    ['merges changes of both', { ours: MINE, base: BASE, theirs: NEXT }, 'merged', merged],
    [
      'knows a change that the author made, too',
      { ours: NEXT, base: BASE, theirs: NEXT },
      'unchanged',
    ],
    ['has nothing to do after a merge', { ours: merged, base: BASE, theirs: NEXT }, 'unchanged'],
    ['creates a new file', { theirs: NEXT }, 'new', NEXT],
    ['accepts a new file that exists', { ours: NEXT, theirs: NEXT }, 'unchanged'],
    ['keeps a file deleted that the author deleted', { base: BASE, theirs: NEXT }, 'deleted'],
    ['deletes no file', { ours: MINE, base: BASE }, 'obsolete'],
    ['ignores a file that does not exist on either side', { base: BASE }],
    [
      'leaves a generated file to its command',
      { ours: `${GENERATED}mine`, base: `${GENERATED}base`, theirs: `${GENERATED}next` },
      'generated',
    ],
  ];
  for (const [title, texts, state, text] of cases) {
    it(title, async () => {
      const update = await updateOf('src/x.ts', texts);
      assert.deepEqual([update?.state, update?.text], [state, text]);
    });
  }

  it('marks conflicts, and keeps both texts', async () => {
    const theirs = lines({ one: 'next', seven: 'next' });
    for (const texts of [
      { ours: MINE, base: BASE, theirs },
      { ours: 'mine\n', theirs: 'next\n' },
    ]) {
      const { state, text = '' } = (await updateOf('src/x.ts', texts)) ?? {};
      assert.equal(state, 'conflict');
      assert.match(text, CONFLICT);
      assert.match(text, /^mine\n=======\nnext\n>>>>>>> crd-controller 2\.0\.0$/m);
    }
  });

  const fields: [title: string, texts: Required<Texts>, state: string, text: string][] = [
    [
      'adjacent fields that both changed',
      { ours: depending({ a: '1', b: '1' }), base: depending({}), theirs: depending({ a: '2' }) },
      'merged',
      depending({ a: '2', b: '1' }),
    ],
    [
      'fields that were removed',
      {
        ours: manifestOf({ c: 1 }),
        base: manifestOf({ c: 1, d: 1, e: 1 }),
        theirs: manifestOf({ d: 1, f: 1 }),
      },
      'merged',
      manifestOf({ f: 1 }),
    ],
    [
      'a field with two new values: that of the author stays',
      { ours: depending({ a: '3' }), base: depending({}), theirs: depending({ a: '2', b: '1' }) },
      'conflict',
      depending({ a: '3', b: '1' }),
    ],
  ];
  for (const [title, texts, state, text] of fields) {
    it(`of package.json merges ${title}`, async () => {
      const update = await updateOf('package.json', texts);
      assert.deepEqual([update?.state, update?.text], [state, text]);
    });
  }

  it('of package.json names the fields with conflicts', async () => {
    const update = await updateOf('package.json', {
      ours: depending({ a: '3' }),
      base: depending({}),
      theirs: depending({ a: '2' }),
    });
    assert.equal(update?.hint, 'devDependencies.a: "3" stays, new: "2"');
  });
});
