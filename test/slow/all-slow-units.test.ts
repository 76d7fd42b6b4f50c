/** Runs the unit tests that take long, in one process: `*.slow.test.ts`, and `*.property.test.ts` with many inputs. */
import { importAll, SLOW } from '../support/import-all.ts';

await importAll('unit', SLOW);
