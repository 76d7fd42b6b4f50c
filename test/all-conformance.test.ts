/** All conformance cases on the embedded server, in one process; on a real one each file has its own. */
import { importAll } from './support/import-all.ts';

await importAll('conformance');
