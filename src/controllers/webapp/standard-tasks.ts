import { isApiError, isNamespaceTerminating } from '../../api/api-error.ts';
import { WEB_APPS } from '../../api/generated/web-app.ts';
import type { WebApp } from '../../api/generated/web-app.ts';
import { objectKey } from '../../api/object-key.ts';
import type { DeepReadonly, Draft, KubernetesObject } from '../../api/object.ts';
import { isControlledBy } from '../../api/metadata.ts';
import type { Resource } from '../../api/resource.ts';
import type { Lister } from '../../cache/lister.ts';
import { deleteChild, ensureChild, nameCollision } from '../../manager/child.ts';
import type { ChildOutcome } from '../../manager/child.ts';
import {
  buildWebAppDeployment,
  buildService,
  WEB_APP_COMPONENT,
  deploymentName,
  serviceName,
} from './children.ts';
import type { NamedChild } from './children.ts';
import { TaskError } from './task.ts';
import type { Task, TaskContext, Wait } from './task.ts';
import { DEPLOYMENTS, SERVICES } from '../../api/builtin.ts';
import type { Deployment, Service } from '../../api/builtin.ts';
import { rolloutOf } from '../../api/workloads.ts';

/** Options of {@link childTask}. */
export interface ChildTaskOptions<T extends KubernetesObject> {
  /** Name of the task. */
  readonly name: string;
  readonly resource: Resource<T>;
  readonly lister: Pick<Lister<T>, 'get'>;
  /** Returns the name of the child of a WebApp. */
  readonly nameOf: (webapp: DeepReadonly<WebApp>) => string;
  /** Returns the desired child of a WebApp. */
  readonly build: (webapp: DeepReadonly<WebApp>) => NamedChild<Draft<T>>;
  /**
   * Receives the child in each sync, as the server has it after the write.
   * @default nothing reads it
   */
  readonly onChild?: ((webapp: DeepReadonly<WebApp>, child: DeepReadonly<T>) => void) | undefined;
}

/** Returns a task that creates, updates and deletes one child of a WebApp. */
export function childTask<T extends KubernetesObject>(options: ChildTaskOptions<T>): Task {
  const { name, resource, lister, nameOf, build, onChild } = options;
  const { kind } = resource;
  const cached = (webapp: DeepReadonly<WebApp>) =>
    lister.get(objectKey(webapp.metadata.namespace, nameOf(webapp)));

  return {
    name,
    create: async (context) => {
      const { webapp, log } = context;
      const desired = build(webapp);
      const { name: child } = desired.metadata;
      let outcome: ChildOutcome<T>;
      try {
        outcome = await ensureChild(context, {
          resource,
          owner: webapp,
          desired,
          cached: cached(webapp),
          fieldManager: WEB_APP_COMPONENT,
        });
      } catch (cause) {
        if (isNamespaceTerminating(cause)) return { message: 'The namespace is being deleted' };
        if (!isApiError(cause, 'invalid')) throw cause;
        throw new TaskError(cause.message, { reason: `${kind}Rejected`, stalled: true, cause });
      }
      onChild?.(webapp, outcome.object);
      switch (outcome.kind) {
        case 'created':
          log.v(2).info(`Created ${kind}`, { child });
          return undefined;
        case 'updated':
          log.v(2).info(`Updated ${kind}`, { child });
          return undefined;
        case 'unchanged':
          return undefined;
        case 'terminating': {
          const message = `${kind} "${child}" is being deleted; it is created again after that`;
          return { message };
        }
        case 'nameCollision': {
          const { reason, message } = nameCollision(WEB_APPS, child);
          throw new TaskError(message, { reason, stalled: true });
        }
      }
    },
    delete: (context) => removeChild(context, resource, cached(context.webapp)),
  };
}

async function removeChild(
  context: TaskContext,
  resource: Resource,
  child: DeepReadonly<KubernetesObject> | undefined,
): Promise<Wait | undefined> {
  if (!child || !isControlledBy(child, context.webapp)) return undefined;
  const { name, deletionTimestamp } = child.metadata;
  if (deletionTimestamp === undefined) {
    const isDeleted = await deleteChild(context, resource, child);
    if (isDeleted) context.log.v(2).info(`Deleted ${resource.kind}`, { child: name });
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
    childTask({
      name: 'deployment',
      resource: DEPLOYMENTS,
      lister: deployments,
      nameOf: deploymentName,
      build: buildWebAppDeployment,
      onChild: (webapp, deployment) => current.set(webapp, deployment),
    }),
    childTask({
      name: 'service',
      resource: SERVICES,
      lister: services,
      nameOf: serviceName,
      build: buildService,
    }),
    rolloutTask((webapp) => current.get(webapp)),
  ];
}
