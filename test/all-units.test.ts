/** Runs the unit tests in one process, except those that take long. */
import { FAST, importAll } from './support/import-all.ts';

await importAll('unit', FAST);
