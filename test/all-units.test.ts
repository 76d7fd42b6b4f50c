/** Runs all unit tests in one process. */
import { importAll } from './support/import-all.ts';

await importAll('unit');
