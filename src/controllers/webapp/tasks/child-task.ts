import { isApiError, isNamespaceTerminating } from '../../../api/api-error.ts';
import type { WebApp } from '../../../api/generated/web-app.ts';
import { objectKey } from '../../../api/object-key.ts';
import type { DeepReadonly, Draft, KubernetesObject } from '../../../api/object.ts';
import { isControlledBy } from '../../../api/metadata.ts';
import type { Resource } from '../../../api/resource.ts';
import type { Lister } from '../../../cache/lister.ts';
import { ensureChild } from '../../../manager/child.ts';
import type { ChildOutcome } from '../../../manager/child.ts';
import { COMPONENT } from '../children.ts';
import type { Named } from '../children.ts';
import { TaskError } from '../task.ts';
import type { Task, TaskContext, Wait } from '../task.ts';

/** Options of `ChildTask`. */
export interface ChildTaskOptions<T extends KubernetesObject> {
  readonly name: string;
  readonly resource: Resource<T>;
  readonly lister: Pick<Lister<T>, 'get'>;
  /** Returns the name of the object for a WebApp. */
  readonly nameOf: (webapp: DeepReadonly<WebApp>) => string;
  /** Returns the desired object for a WebApp. */
  readonly build: (webapp: DeepReadonly<WebApp>) => Named<Draft<T>>;
}

/** The task of keeping one child: there and as wanted, and at last gone. */
export function childTask<T extends KubernetesObject>(options: ChildTaskOptions<T>): Task {
  const { name, resource, lister, nameOf, build } = options;
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
          fieldManager: COMPONENT,
        });
      } catch (cause) {
        if (isNamespaceTerminating(cause)) return { message: 'The namespace is going away' };
        if (!isApiError(cause, 'invalid')) throw cause;
        throw new TaskError(`${kind}Refused`, cause.message, { stalled: true, cause });
      }
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
          const message = `${kind} "${child}" is being deleted; it is created anew when it is gone`;
          return { message };
        }
        case 'nameCollision': {
          const message = `Resource "${child}" already exists and is not managed by WebApp`;
          throw new TaskError('ErrResourceExists', message, { stalled: true });
        }
      }
    },
    delete: (context) => removeChild(context, resource, cached(context.webapp)),
  };
}

async function removeChild(
  { webapp, client, signal, log }: TaskContext,
  resource: Resource,
  child: DeepReadonly<KubernetesObject> | undefined,
): Promise<Wait | undefined> {
  if (!child || !isControlledBy(child, webapp)) return undefined;
  const { name, uid, deletionTimestamp } = child.metadata;
  if (deletionTimestamp === undefined) {
    try {
      await client.delete(resource, child.metadata, { uid, signal });
      log.v(2).info(`Deleted ${resource.kind}`, { child: name });
    } catch (error) {
      if (!isApiError(error, 'notFound', 'conflict')) throw error;
    }
  }
  return { message: `${resource.kind} "${name}" is being deleted` };
}
