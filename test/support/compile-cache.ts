import { join } from 'node:path';

/** Where tests keep what V8 made of the source, and the programs that they start. */
export const COMPILE_CACHE: string = join(import.meta.dirname, '../../node_modules/.cache/compile');
