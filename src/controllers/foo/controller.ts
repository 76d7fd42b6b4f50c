import { isApiError, isNamespaceTerminating } from '../../api/api-error.ts';
import { DEPLOYMENTS } from '../../api/builtin.ts';
import type { Deployment } from '../../api/builtin.ts';
import { FOOS } from '../../api/generated/foo.ts';
import type { Foo, FooStatus } from '../../api/generated/foo.ts';
import { objectKey } from '../../api/object-key.ts';
import type { DeepReadonly } from '../../api/object.ts';
import type { Readiness } from '../../api/readiness.ts';
import type { Lister } from '../../cache/lister.ts';
import {
  admissionChange,
  deleteOwnedObject,
  ensureOwnedObject,
  nameCollision,
} from '../../manager/owned-object.ts';
import type { OwnedObjectOutcome } from '../../manager/owned-object.ts';
import { Controller } from '../../manager/controller.ts';
import type { SyncContext, SyncHandler } from '../../manager/controller-options.ts';
import { mapByName, OWNER_INDEX, ownerIndexers } from '../../manager/enqueue.ts';
import type { ControllerKit } from '../../manager/run-controllers.ts';
import { StatusWriter } from '../../manager/status-writer.ts';
import type { StatusEvent } from '../../manager/status-writer.ts';
import type { EventRecorder } from '../../record/event-recorder.ts';
import type { Clock } from '../../util/clock.ts';
import { done, TerminalError } from '../../workqueue/outcome.ts';
import { EXACT_DEPLOYMENT_FIELDS } from '../exact-fields.ts';
import { buildFooDeployment, FOO_COMPONENT, deploymentProblem } from './deployment.ts';
import { buildFooStatus, isSyncedEventRecorded, fooReadiness } from './status.ts';
import { forEachObject } from '../../manager/rejections.ts';

/** Keeps the Deployment `spec.deploymentName` for every Foo, as sample-controller. */
export function fooController(kit: ControllerKit): Controller {
  const foos = kit.informers.for(FOOS);
  const deployments = kit.informers.for(DEPLOYMENTS);
  deployments.addIndexers(ownerIndexers);
  const orNamed = mapByName(foos, 'deployment', (foo) =>
    deploymentProblem(foo) === undefined ? foo.spec.deploymentName : undefined,
  );
  const sync = fooSync({
    foos: foos.lister,
    deployments: deployments.lister,
    recorder: kit.events.recorder(FOO_COMPONENT),
    clock: kit.clock,
  });
  return new Controller(kit, { name: 'foo', kind: FOOS.kind, sync })
    .for(foos)
    .owns(deployments, FOOS, { orNamed });
}

/** Dependencies of `fooSync`. */
export interface FooSyncDeps {
  readonly foos: Lister<Foo>;
  /** Has the index `OWNER_INDEX`. */
  readonly deployments: Lister<Deployment>;
  readonly recorder: EventRecorder;
  readonly clock: Clock;
}

/**
 * Creates or updates the Deployment of a Foo, deletes its Deployments with previous names, and writes
 * its status.
 */
export function fooSync({ foos, deployments, recorder, clock }: FooSyncDeps): SyncHandler {
  const statuses = new StatusWriter(FOOS, FOO_COMPONENT, { events: { recorder: () => recorder } });

  return async (key, context) => {
    const foo = foos.get(key);
    // The garbage collector deletes the Deployment of a deleted Foo.
    if (!foo || foo.metadata.deletionTimestamp !== undefined) return done();

    const report = async (
      readiness: Readiness,
      rest: {
        event?: StatusEvent | undefined;
        error?: Error;
        deployment?: DeepReadonly<Deployment>;
      } = {},
    ) => {
      const { deployment, ...eventAndError } = rest;
      const status: FooStatus = buildFooStatus(foo, readiness, deployment, clock.now());
      await statuses.report(context, { object: foo, status, ...eventAndError });
      return done();
    };
    const reportStalled = (reason: string, error: Error, isRepeated = false) => {
      const { message } = error;
      const event: StatusEvent = { type: 'Warning', reason, message, repeats: isRepeated };
      return report({ kind: 'stalled', reason, message }, { event, error });
    };

    const problem = deploymentProblem(foo);
    if (problem !== undefined) return reportStalled('InvalidSpec', new TerminalError(problem));
    const name = foo.spec.deploymentName;
    const deployment = objectKey(foo.metadata.namespace, name);
    const desired = buildFooDeployment(foo);
    let outcome: OwnedObjectOutcome<Deployment>;
    try {
      outcome = await ensureOwnedObject(context, {
        resource: DEPLOYMENTS,
        owner: foo,
        desired,
        cached: deployments.get(deployment),
        fieldManager: FOO_COMPONENT,
        exact: EXACT_DEPLOYMENT_FIELDS,
      });
    } catch (cause) {
      // The Foo is about to be deleted with its namespace.
      if (isNamespaceTerminating(cause)) return done();
      if (!isApiError(cause, 'invalid')) throw cause;
      return reportStalled('DeploymentRejected', new Error(cause.message, { cause }));
    }
    const { kind, object } = outcome;
    if (kind === 'nameCollision') {
      const { reason, message } = nameCollision(FOOS, name);
      return reportStalled(reason, new Error(message), true);
    }
    if (kind === 'terminating') {
      const message = `Deployment "${name}" is being deleted; it is created again after that`;
      return report({ kind: 'reconciling', reason: 'DeploymentTerminating', message });
    }
    if (kind !== 'unchanged') {
      const verb = kind === 'created' ? 'Created' : 'Updated';
      context.log.v(2).info(`${verb} Deployment`, { deployment });
    }
    await deletePrevious(context, deployments.byIndex(OWNER_INDEX, foo.metadata.uid), name);
    const change = admissionChange(desired, object, ['replicas']);
    if (change) {
      const { reason, message } = change;
      const event = { type: 'Warning', reason, message } as const;
      const error = new Error(message);
      return report({ kind: 'stalled', reason, message }, { event, error, deployment: object });
    }
    // Without a status subresource, the status cannot show that the event was recorded.
    const isEvent = statuses.hasSubresource ? !isSyncedEventRecorded(foo) : kind !== 'unchanged';
    const event: StatusEvent = {
      type: 'Normal',
      reason: 'Synced',
      message: 'Foo synced successfully',
      repeats: !statuses.hasSubresource,
    };
    return report(fooReadiness(object), {
      deployment: object,
      event: isEvent ? event : undefined,
    });
  };
}

/** Deletes the Deployments of a Foo with names that it had before. */
async function deletePrevious(
  context: SyncContext,
  owned: readonly DeepReadonly<Deployment>[],
  name: string,
): Promise<void> {
  await forEachObject(owned, async (previous) => {
    const { metadata } = previous;
    if (metadata.name === name || metadata.deletionTimestamp !== undefined) return;
    if (!(await deleteOwnedObject(context, DEPLOYMENTS, previous))) return;
    const deployment = objectKey(metadata.namespace, metadata.name);
    context.log.v(2).info('Deleted Deployment with the previous name', { deployment });
  });
}
