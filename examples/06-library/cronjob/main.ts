/** Runs the operator. `--help` prints the commands and flags. */
import { runProgram } from 'crd-controller/program';
import { cronJobController } from './cron-job-controller.ts';
import { CRON_JOBS } from './kinds.ts';
import { webhooks } from './webhooks.ts';

await runProgram({
  name: 'cronjob-operator',
  version: '2.0.0',
  controllers: { cronjob: { resource: CRON_JOBS, build: cronJobController } },
  webhooks,
});
