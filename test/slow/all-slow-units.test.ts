/** Runs the unit tests that take long, in one process: those in files that end with `.slow.test.ts`. */
import { importAll } from '../support/import-all.ts';

await importAll('unit', '**/*.slow.test.ts');
