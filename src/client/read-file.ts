import { readFile } from 'node:fs/promises';

/** The text of a file; rejects if it cannot be read. */
export type ReadFile = (path: string) => Promise<string>;

/** Of this machine. */
export const readTextFile: ReadFile = (path) => readFile(path, 'utf8');
