/** Runs the operator. `--help` prints the commands and flags. */
import { runProgram } from 'crd-controller/program';
import { backupController, restoreController } from './backup-operator.ts';
import { BACKUPS, RESTORES } from './kinds.ts';

await runProgram({
  name: 'backup-operator',
  version: '1.0.0',
  controllers: {
    backup: { resource: BACKUPS, build: backupController, isClusterScoped: true },
    restore: { resource: RESTORES, build: restoreController, isClusterScoped: true },
  },
});
