import { isApiError } from '../api/api-error.ts';
import { NAMESPACES } from '../api/builtin.ts';
import type { Namespace } from '../api/builtin.ts';
import type { DeepReadonly } from '../api/object.ts';
import { discover } from '../client/discovery.ts';
import type { DiscoveredResource } from '../client/discovery.ts';
import { Controller } from '../manager/controller.ts';
import type { SyncContext } from '../manager/controller-options.ts';
import { done, requeueAfter } from '../workqueue/outcome.ts';
import type { ClusterDeps } from './resource-monitors.ts';

/** Interval of checks whether the content of a namespace is deleted, in milliseconds. */
const RECHECK_MS = 100;

/** Finalizer that the API server waits for before it deletes a namespace. */
const FINALIZER = 'kubernetes';

/** Deletes the content of namespaces that are being deleted, and then removes the finalizer. */
export function namespaceDeletion(deps: ClusterDeps): Controller {
  const namespaces = deps.informers.for(NAMESPACES);
  return new Controller(deps, {
    name: 'namespace-deletion',
    kind: NAMESPACES.kind,
    sync: async (key, context) => {
      const namespace = namespaces.lister.get(key);
      if (!namespace?.metadata.deletionTimestamp) return done();
      if (!namespace.spec?.finalizers?.includes(FINALIZER)) return done();
      if (await deleteContent(namespace.metadata.name, context)) {
        return requeueAfter(RECHECK_MS);
      }
      await finalize(namespace, context);
      return done();
    },
  }).for(namespaces);
}

/** Deletes all objects in the namespace. Returns whether it found any. */
async function deleteContent(namespace: string, { client, signal }: SyncContext): Promise<boolean> {
  const { resources } = await discover(client, signal);
  const remains = await Promise.all(
    resources.filter(isContent).map(async (resource) => {
      const { items } = await client.list(resource, { namespace, signal });
      const present = items.filter(({ metadata }) => !metadata.deletionTimestamp);
      for (const { metadata } of present) {
        try {
          await client.delete(resource, metadata, { uid: metadata.uid, signal });
        } catch (error) {
          if (!isApiError(error, 'notFound', 'conflict')) throw error;
        }
      }
      return items.length > 0;
    }),
  );
  return remains.includes(true);
}

function isContent({ namespaced, verbs }: DiscoveredResource): boolean {
  return namespaced && verbs.includes('list') && verbs.includes('delete');
}

async function finalize(
  namespace: DeepReadonly<Namespace>,
  { client, signal }: SyncContext,
): Promise<void> {
  const live = structuredClone(namespace) as Namespace;
  const finalizers = live.spec?.finalizers?.filter((finalizer) => finalizer !== FINALIZER) ?? [];
  try {
    await client.update(
      NAMESPACES,
      { ...live, spec: { ...live.spec, finalizers } },
      { subresource: 'finalize', signal },
    );
  } catch (error) {
    if (!isApiError(error, 'notFound')) throw error;
  }
}
