/** Follows the book in docs/book as a reader does: writes the files of its pages, and runs its commands in the project. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const BOOK = join(import.meta.dirname, '../../docs/book');

/** A page of the book, relative to docs/book. */
export const CHAPTERS: readonly string[] = readdirSync(BOOK)
  .filter((name) => /^\d+-.*\.md$/.test(name))
  .toSorted();

/** Commands that a test runs. Others need a network, a cluster or a terminal. */
const RUNS = /^(?:npx crd-controller init|npm (?:test|run (?:types|generate|rbac)))\b/;

/** Where tests are added: before the test of the role, which comes last. */
const LAST_TEST = "test('has exactly";

/** Writes the files of a chapter to a project, and runs its commands, in the order of the page. */
export async function followChapter(
  chapter: string,
  folder: string,
  run: (command: string) => Promise<void>,
): Promise<void> {
  const text = readFileSync(join(BOOK, chapter), 'utf8');
  for (const [, info = '', block = ''] of text.matchAll(/^```(.*)\n([^]*?)^```$/gm)) {
    const [language, path, how] = info.split(' ');
    if (path !== undefined) {
      const file = join(folder, path);
      mkdirSync(dirname(file), { recursive: true });
      if (language === 'diff') {
        writeFileSync(file, changed(readFileSync(file, 'utf8'), block));
      } else if (how === 'add') {
        const tests = readFileSync(file, 'utf8');
        writeFileSync(file, replaced(tests, LAST_TEST, `${block}\n${LAST_TEST}`));
      } else writeFileSync(file, block);
    }
    if (language === 'console') {
      for (const [, command = ''] of block.matchAll(/^\$ (.*)$/gm)) {
        if (RUNS.test(command)) await run(command);
      }
    }
  }
}

/** Applies a change with lines that start with `-`, `+` or a space. */
function changed(text: string, diff: string): string {
  const lines = diff.trimEnd().split('\n');
  const side = (sign: string) =>
    lines.flatMap((line) => (line.startsWith(sign) ? [] : [`${line.slice(1)}\n`])).join('');
  return replaced(text, side('+'), side('-'));
}

function replaced(text: string, from: string, to: string): string {
  const [before, after, ...others] = text.split(from);
  assert.ok(
    before !== undefined && after !== undefined && others.length === 0,
    `the file must have this once:\n${from}\n\n${text}`,
  );
  return before + to + after;
}
