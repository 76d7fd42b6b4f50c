/** Runs stories on the embedded server in one process; test:real runs one process for each file. */
import { importAll } from '../support/import-all.ts';

await importAll('stories');
