import { join } from 'node:path';

/** Folder of the V8 compile cache for tests and the programs that they start. */
export const COMPILE_CACHE: string = join(import.meta.dirname, '../../node_modules/.cache/compile');
