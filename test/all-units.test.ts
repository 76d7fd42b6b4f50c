/** Runs the unit tests in one process, except those that take long (`*.slow.test.ts`). */
import { importAll } from './support/import-all.ts';

await importAll('unit', '**/!(*.slow).test.ts');
