import type { DeepReadonly, KubernetesObject } from '../../src/api/object.ts';
import type { Resource } from '../../src/api/resource.ts';
import { Informer } from '../../src/cache/informer.ts';
import { listerWatcher } from '../../src/cache/lister-watcher.ts';
import { connectCluster } from '../../src/client/cluster-connection.ts';
import type { ClusterConfig } from '../../src/client/kube-config/cluster-config.ts';
import { runOver } from './control-plane.ts';

/** An informer with its own connection, and the events that its handler received, one line each. */
export interface RecordedInformer<T extends KubernetesObject> {
  readonly informer: Informer<T>;
  readonly received: readonly string[];
  readonly stop: () => Promise<void>;
}

/**
 * Starts an informer of a resource in a namespace and records its events.
 *
 * @param stateOf returns the state of an object, which updates record
 */
export async function recordInformer<T extends KubernetesObject>(
  config: ClusterConfig,
  resource: Resource<T>,
  namespace: string,
  stateOf: (object: DeepReadonly<T>) => string | undefined,
): Promise<RecordedInformer<T>> {
  const connection = connectCluster(config);
  const source = listerWatcher(connection.client, resource, { namespace });
  const informer = new Informer(resource, source, {
    namespace,
    // Retries without jitter.
    random: () => 0,
  });
  const received: string[] = [];
  informer.addHandler({
    onAdd: ({ metadata }, isInInitialList) =>
      received.push(`${isInInitialList ? 'found' : 'add'} ${metadata.name}`),
    onUpdate: (old, object) =>
      received.push(
        old.metadata.uid === object.metadata.uid
          ? `update ${object.metadata.name}: ${stateOf(old)} to ${stateOf(object)}`
          : `replace ${object.metadata.name}`,
      ),
    onDelete: ({ metadata }) => received.push(`delete ${metadata.name}`),
  });
  const stop = runOver(connection, informer);
  await informer.synced;
  return { informer, received, stop };
}
