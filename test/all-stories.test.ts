/**
 * Conformance cases and stories over the wire, in one process; on a real control plane each file has
 * its own.
 */
import { importAll } from './support/import-all.ts';

await importAll('conformance');
await importAll('stories');
