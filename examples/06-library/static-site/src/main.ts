/** Runs the controllers. `node src/main.ts --help` prints the commands and flags. */
import { runDaemon } from 'crd-controller/daemon';
import { program } from './program.ts';

await runDaemon(program);
