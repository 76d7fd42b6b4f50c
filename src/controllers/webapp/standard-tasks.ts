import { isApiError, isNamespaceTerminating } from '../../api/api-error.ts';
import { WEB_APPS } from '../../api/generated/web-app.ts';
import type { WebApp } from '../../api/generated/web-app.ts';
import { objectKey } from '../../api/object-key.ts';
import type { DeepReadonly, Draft, KubernetesObject } from '../../api/object.ts';
import { isControlledBy } from '../../api/metadata.ts';
import type { Resource } from '../../api/resource.ts';
import type { Lister } from '../../cache/lister.ts';
import {
  admissionChange,
  deleteOwnedObject,
  ensureOwnedObject,
  nameCollision,
} from '../../manager/owned-object.ts';
import type {
  OwnedDraft,
  OwnedObjectOptions,
  OwnedObjectOutcome,
} from '../../manager/owned-object.ts';
import { EXACT_DEPLOYMENT_FIELDS } from '../exact-fields.ts';
import {
  buildWebAppDeployment,
  buildService,
  WEB_APP_COMPONENT,
  deploymentName,
  serviceName,
} from './owned-objects.ts';
import type { Named } from './owned-objects.ts';
import { TaskError } from './task.ts';
import type { Task, TaskContext, Wait } from './task.ts';
import { DEPLOYMENTS, SERVICES } from '../../api/builtin.ts';
import type { Deployment, Service } from '../../api/builtin.ts';
import { rolloutOf } from '../../api/workloads.ts';

/** Options of {@link ownedObjectTask}. */
export interface OwnedObjectTaskOptions<T extends KubernetesObject> {
  /** Name of the task. */
  readonly name: string;
  readonly resource: Resource<T>;
  readonly lister: Pick<Lister<T>, 'get'>;
  /** Returns the name of the owned object of a WebApp. */
  readonly nameOf: (webapp: DeepReadonly<WebApp>) => string;
  /** Returns the desired object of a WebApp. */
  readonly build: (webapp: DeepReadonly<WebApp>) => Named<Draft<T>>;
  /**
   * Receives the object in each sync, as the server has it after the write.
   * @default nothing reads it
   */
  readonly onObject?: ((webapp: DeepReadonly<WebApp>, object: DeepReadonly<T>) => void) | undefined;
  /** Fields from which members are removed that the desired object does not have: see `ensureOwnedObject`. */
  readonly exact?: OwnedObjectOptions<T>['exact'] | undefined;
  /**
   * Fields of the spec without which the object does not do what it is for: the task fails if admission changes them.
   * @default none
   */
  readonly essential?: readonly string[] | undefined;
}

/** Returns a task that creates, updates and deletes one owned object of a WebApp. */
export function ownedObjectTask<T extends KubernetesObject>(
  options: OwnedObjectTaskOptions<T>,
): Task {
  const { name, resource, lister, nameOf, build, onObject, exact, essential = [] } = options;
  const { kind } = resource;
  const cached = (webapp: DeepReadonly<WebApp>) =>
    lister.get(objectKey(webapp.metadata.namespace, nameOf(webapp)));

  return {
    name,
    create: async (context) => {
      const { webapp, log } = context;
      const desired = build(webapp);
      const { name: objectName } = desired.metadata;
      let outcome: OwnedObjectOutcome<T>;
      try {
        outcome = await ensureOwnedObject(context, {
          resource,
          owner: webapp,
          desired,
          cached: cached(webapp),
          fieldManager: WEB_APP_COMPONENT,
          exact,
        });
      } catch (cause) {
        if (isNamespaceTerminating(cause)) return { message: 'The namespace is being deleted' };
        if (!isApiError(cause, 'invalid')) throw cause;
        throw new TaskError(cause.message, { reason: `${kind}Rejected`, stalled: true, cause });
      }
      onObject?.(webapp, outcome.object);
      switch (outcome.kind) {
        case 'created':
          log.v(2).info(`Created ${kind}`, { object: objectName });
          break;
        case 'updated':
          log.v(2).info(`Updated ${kind}`, { object: objectName });
          break;
        case 'unchanged':
          break;
        case 'terminating': {
          const message = `${kind} "${objectName}" is being deleted; it is created again after that`;
          return { message };
        }
        case 'nameCollision': {
          const { reason, message } = nameCollision(WEB_APPS, objectName);
          throw new TaskError(message, { reason, stalled: true });
        }
      }
      requireAdmitted(desired, outcome.object, essential);
      return undefined;
    },
    delete: (context) => deleteOwned(context, resource, cached(context.webapp)),
  };
}

/** @throws {TaskError} if admission changes fields of the spec */
function requireAdmitted(
  desired: OwnedDraft,
  stored: DeepReadonly<KubernetesObject>,
  fields: readonly string[],
): void {
  const change = admissionChange(desired, stored, fields);
  if (change) throw new TaskError(change.message, { reason: change.reason, stalled: true });
}

async function deleteOwned(
  context: TaskContext,
  resource: Resource,
  object: DeepReadonly<KubernetesObject> | undefined,
): Promise<Wait | undefined> {
  if (!object || !isControlledBy(object, context.webapp)) return undefined;
  const { name, deletionTimestamp } = object.metadata;
  if (deletionTimestamp === undefined) {
    const isDeleted = await deleteOwnedObject(context, resource, object);
    if (isDeleted) context.log.v(2).info(`Deleted ${resource.kind}`, { object: name });
  }
  return { message: `${resource.kind} "${name}" is being deleted` };
}

/**
 * Returns a task that waits until all replicas of the Deployment run the desired Pods.
 *
 * @param deploymentOf returns the Deployment after its task, because the cache may not contain its last write yet.
 *   Admission may have changed what the task wrote.
 */
export function rolloutTask(
  deploymentOf: (webapp: DeepReadonly<WebApp>) => DeepReadonly<Deployment> | undefined,
): Task {
  return {
    name: 'rollout',
    postCreate: async ({ webapp }) => {
      const deployment = deploymentOf(webapp);
      if (!deployment) return { message: 'The rollout of the Deployment has not started' };
      requireAdmitted(buildWebAppDeployment(webapp), deployment, ['replicas']);
      const { desired, updated, available, isComplete, isDeadlineExceeded } = rolloutOf(deployment);
      if (isComplete) return undefined;
      const message =
        updated < desired && available >= desired
          ? `${updated} of ${desired} replicas are updated`
          : `${available} of ${desired} replicas are available`;
      if (isDeadlineExceeded) {
        throw new TaskError(message, { reason: 'ProgressDeadlineExceeded', terminal: true });
      }
      return { message };
    },
  };
}

/** The caches that tasks read. */
export interface TaskCaches {
  readonly deployments: Lister<Deployment>;
  readonly services: Lister<Service>;
}

/** Returns the default tasks of a WebApp: a Deployment, a Service for it, and its rollout. */
export function standardTasks({ deployments, services }: TaskCaches): Task[] {
  const current = new WeakMap<DeepReadonly<WebApp>, DeepReadonly<Deployment>>();
  return [
    ownedObjectTask({
      name: 'deployment',
      resource: DEPLOYMENTS,
      lister: deployments,
      nameOf: deploymentName,
      build: buildWebAppDeployment,
      exact: EXACT_DEPLOYMENT_FIELDS,
      onObject: (webapp, deployment) => current.set(webapp, deployment),
    }),
    ownedObjectTask({
      name: 'service',
      resource: SERVICES,
      lister: services,
      nameOf: serviceName,
      build: buildService,
      essential: ['type', 'selector', 'ports'],
    }),
    rolloutTask((webapp) => current.get(webapp)),
  ];
}
