/** Runs the conformance tests that take long on the embedded server, in one process. */
import { importAll, SLOW } from '../support/import-all.ts';

await importAll('conformance', SLOW);
