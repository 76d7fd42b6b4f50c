/**
 * Conformance cases and stories that can be told on a control plane, in one process; on a real one
 * each file has its own.
 */
import { importAll } from './support/import-all.ts';

await importAll('conformance');
await importAll('stories');
