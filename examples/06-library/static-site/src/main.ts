/** Runs the controllers. `npm run controller -- --help` prints the commands and flags. */
import { runProgram } from 'crd-controller/program';
import { program } from './program.ts';

await runProgram(program);
