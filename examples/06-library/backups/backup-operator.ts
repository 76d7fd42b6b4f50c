import { CronSchedule, deleteOwnedObject, done, finishedCondition, isReady } from 'crd-controller';
import { mapByName, objectController, objectKey, OwnedObjects, requeueAt } from 'crd-controller';
import { CONFIG_MAPS, JOBS } from 'crd-controller/kinds';
import type { Controller, ControllerKit, DeepReadonly } from 'crd-controller';
import type { OwnedDraft, Readiness } from 'crd-controller';
import type { Job } from 'crd-controller/kinds';
import { BACKUPS, RESTORES } from './kinds.ts';
import type { Backup } from './kinds.ts';

/** Field manager, source of events and value of the label of owned objects. */
const COMPONENT = 'backup-operator';
const LABELS = { 'app.kubernetes.io/managed-by': COMPONENT };
const OWNED = { labelSelector: { matchLabels: LABELS } };

/** Starts a Job at each scheduled time of a Backup, and deletes old Jobs. */
export function backupController(kit: ControllerKit): Controller {
  const backups = kit.informers.for(BACKUPS);
  const configMaps = kit.informers.for(CONFIG_MAPS, OWNED);
  const jobs = kit.informers.for(JOBS, OWNED);
  const owned = new OwnedObjects(BACKUPS, COMPONENT).add(configMaps).add(jobs);

  return objectController(kit, backups, {
    name: 'backup',
    fieldManager: COMPONENT,
    reconcile: async (backup, context) => {
      const { metadata, spec, status = {} } = backup;
      const { name, creationTimestamp } = metadata;
      const now = kit.clock.now();
      const problem = CronSchedule.problemOf(spec.schedule);
      const schedule = problem === undefined ? new CronSchedule(spec.schedule) : undefined;
      const timeOf = (job: DeepReadonly<Job>) => Date.parse(job.metadata.creationTimestamp);
      const runs = owned.of(jobs, backup).toSorted((a, b) => timeOf(a) - timeOf(b));

      // A run that is due while another one runs starts afterwards. Of several missed runs, the last one starts.
      const lastMs = Date.parse(status.lastScheduled ?? creationTimestamp);
      const dueMs = runs.every(finishedCondition) ? schedule?.last(now, lastMs) : undefined;
      const run = dueMs === undefined ? undefined : `${name}-${dueMs / 60_000}`;
      const data = { ...spec.settings };
      await owned.ensure(context, backup, [
        { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels: LABELS }, data },
        ...(run === undefined ? [] : [jobOf(run, run, spec.backupCommand, backup)]),
      ]);
      for (const old of runs.filter(finishedCondition).slice(0, -spec.keep)) {
        await deleteOwnedObject(context, JOBS, old);
      }

      const last = runs.findLast((job) => finishedCondition(job)?.type === 'Complete')?.metadata
        .name;
      return {
        ...backupReadiness(problem, runs.findLast(finishedCondition)),
        status: {
          ...(dueMs !== undefined && { lastScheduled: new Date(dueMs).toISOString() }),
          ...(last !== undefined && { lastSuccessful: last }),
        },
        outcome: requeueAt(schedule?.next(now), 'its schedule is due'),
      };
    },
  }).owns(owned);
}

/** Starts a Job for each Restore, as soon as its Backup has a run that succeeded. */
export function restoreController(kit: ControllerKit): Controller {
  const restores = kit.informers.for(RESTORES);
  const backups = kit.informers.for(BACKUPS);
  const jobs = kit.informers.for(JOBS, OWNED);
  const owned = new OwnedObjects(RESTORES, COMPONENT).add(jobs);
  // A Restore names its Backup.
  const restoresOf = mapByName(restores, 'backup', ({ spec }) => spec.backup);

  return objectController(kit, restores, {
    name: 'restore',
    fieldManager: COMPONENT,
    reconcile: async (restore, context) => {
      const { metadata, spec, status = {} } = restore;
      // It is not started again if its Job is deleted.
      if (isReady(restore)) return done();
      const backup = backups.lister.get(objectKey(metadata.namespace, spec.backup));
      const [job] = owned.of(jobs, restore);
      // The run is stored before the Job is created: a later one does not replace it.
      if (!job && backup && status.run !== undefined) {
        const draft = jobOf(
          `${metadata.name}-restore`,
          status.run,
          backup.spec.restoreCommand,
          backup,
        );
        await owned.ensure(context, restore, [draft]);
      }
      const run = status.run ?? spec.run ?? backup?.status?.lastSuccessful;
      return { ...restoreReadiness(run, finishedCondition(job)?.type), status: { run } };
    },
  })
    .owns(owned)
    .watches(backups, restoresOf);
}

function backupReadiness(problem?: string, lastEnded?: DeepReadonly<Job>): Readiness {
  if (problem) return { kind: 'stalled', reason: 'BadSchedule', message: problem };
  const message = lastEnded ? `The last run is ${lastEnded.metadata.name}` : 'No run has ended';
  if (finishedCondition(lastEnded)?.type === 'Failed')
    return { kind: 'reconciling', reason: 'RunFailed', message };
  return { kind: 'ready', reason: 'Scheduled', message };
}

function restoreReadiness(run?: string, end?: string): Readiness {
  if (end === 'Complete') return { kind: 'ready', reason: end, message: `Restored ${run}` };
  if (end === 'Failed') return { kind: 'stalled', reason: end, message: `${run} is not restored` };
  const message = run ? `Restoring ${run}` : 'No run of the Backup has succeeded';
  return { kind: 'reconciling', reason: run ? 'Restoring' : 'WaitingForRun', message };
}

/** Returns a Job that runs a command with the settings of a Backup. */
function jobOf(
  name: string,
  run: string,
  command: readonly string[],
  { metadata, spec: { image } }: DeepReadonly<Backup>,
): OwnedDraft<Job> {
  const env = [{ name: 'RUN', value: run }];
  const envFrom = [{ configMapRef: { name: metadata.name } }];
  const containers = [{ name: 'run', image, command: [...command], env, envFrom }];
  const template = { spec: { restartPolicy: 'Never' as const, containers } };
  const spec = { backoffLimit: 0, template };
  return { apiVersion: 'batch/v1', kind: 'Job', metadata: { name, labels: LABELS }, spec };
}
