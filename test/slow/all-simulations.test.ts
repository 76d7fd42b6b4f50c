/** Runs all simulations in one process, which is faster than a process for each file. */
import { importAll } from '../support/import-all.ts';

await importAll('simulation');
