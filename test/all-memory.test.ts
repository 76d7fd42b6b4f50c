/** Runs the tests that collect garbage in a process with a small heap. */
import { importAll, MEMORY } from './support/import-all.ts';

await importAll('unit', MEMORY);
