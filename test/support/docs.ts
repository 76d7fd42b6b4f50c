import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');

/** Paths of the guides and the README, relative to the repository. */
export const PAGES: readonly string[] = [
  'README.md',
  ...['docs', 'docs/book'].flatMap((folder) =>
    readdirSync(join(ROOT, folder))
      .filter((name) => name.endsWith('.md'))
      .map((name) => `${folder}/${name}`),
  ),
];

/** Returns the text of a page by its path in the repository. */
export function page(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

/** Returns the rows of the first table under a heading. */
export function tableRows(text: string, heading: string): string[] {
  const [, section = ''] = text.split(`${heading}\n`);
  const lines = section.split(/^#+ /m)[0]?.split('\n') ?? [];
  return lines.filter((line) => line.startsWith('|')).slice(2);
}
