/** All stories in virtual time, in one process, for the reason that all unit tests are in one. */
import { importAll } from './support/import-all.ts';

await importAll('simulation');
