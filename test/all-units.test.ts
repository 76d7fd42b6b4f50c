/**
 * All unit tests, in one process: started one by one, their files would spend most of their time
 * loading the same source. `npm test` runs them from here; each also runs alone.
 */
import { globSync } from 'node:fs';
import { join } from 'node:path';

const folder = join(import.meta.dirname, 'unit');
for (const file of globSync('**/*.test.ts', { cwd: folder }).toSorted()) {
  await import(join(folder, file));
}
