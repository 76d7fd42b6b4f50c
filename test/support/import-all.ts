import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';

/** Tests that a contributor does not wait for: `npm run test:slow` runs them. */
export const SLOW = '**/*.{slow,property}.test.ts';

/** Tests that collect garbage, which takes long in a process with all tests. */
export const MEMORY = '**/*.memory.test.ts';

/** All other tests. */
export const FAST = '**/!(*.slow|*.property|*.memory).test.ts';

/**
 * Imports the tests of a folder of `test/` into this process. In separate processes the files would spend
 * most of their time loading the same source. Each file also runs alone.
 *
 * @param pattern of the paths in the folder
 * @throws {Error} if a file has hooks at its top level, which would run for the tests of all files
 */
export async function importAll(folder: string, pattern: string = '**/*.test.ts'): Promise<void> {
  const root = join(import.meta.dirname, '..', folder);
  for (const name of globSync(pattern, { cwd: root }).toSorted()) {
    const file = join(root, name);
    if (/^(?:before|after)Each\(/m.test(readFileSync(file, 'utf8'))) {
      throw new Error(`${file}: put what beforeEach and afterEach are for into a describe`);
    }
    await import(file);
    // Imports do not turn the event loop, which is bounded (`bounds.ts`).
    await turn();
  }
}
