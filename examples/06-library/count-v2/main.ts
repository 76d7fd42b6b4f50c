/** Runs the controller of Counts, and converts them between v1 and v2. `--help` prints the commands and flags. */
import { countController } from 'crd-controller/controllers';
import { runProgram } from 'crd-controller/program';
import { COUNTS } from './generated/count.ts';
import { webhooks } from './webhooks.ts';

await runProgram({
  name: 'count-program',
  version: '2.0.0',
  controllers: { count: { resource: COUNTS, build: countController } },
  webhooks,
});
