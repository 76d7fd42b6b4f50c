import type { DeepReadonly, KubernetesObject } from '../../src/api/object.ts';
import type { Resource } from '../../src/api/resource.ts';
import { Informer } from '../../src/cache/informer.ts';
import { listerWatcher } from '../../src/cache/lister-watcher.ts';
import { connectCluster } from '../../src/client/cluster-connection.ts';
import type { ClusterConfig } from '../../src/client/kube-config/cluster-config.ts';
import { runOver } from './background.ts';

/** An informer over a connection of its own, and what its handlers have heard, a line each. */
export interface Ear<T extends KubernetesObject> {
  readonly informer: Informer<T>;
  readonly heard: readonly string[];
  readonly stop: () => Promise<void>;
}

/**
 * Mirrors a resource in a namespace, from a server that is there, and writes down what is heard of it.
 *
 * @param stateOf what an update is told by
 */
export async function listen<T extends KubernetesObject>(
  config: ClusterConfig,
  resource: Resource<T>,
  namespace: string,
  stateOf: (object: DeepReadonly<T>) => string | undefined,
): Promise<Ear<T>> {
  const connection = connectCluster(config);
  const source = listerWatcher(connection.client, resource, { namespace });
  const informer = new Informer(resource, source, {
    namespace,
    // The shortest pauses between attempts.
    random: () => 0,
  });
  const heard: string[] = [];
  informer.addHandler({
    onAdd: ({ metadata }, isInInitialList) =>
      heard.push(`${isInInitialList ? 'found' : 'add'} ${metadata.name}`),
    onUpdate: (old, object) =>
      heard.push(
        old.metadata.uid === object.metadata.uid
          ? `update ${object.metadata.name}: ${stateOf(old)} to ${stateOf(object)}`
          : `replace ${object.metadata.name}`,
      ),
    onDelete: ({ metadata }) => heard.push(`delete ${metadata.name}`),
  });
  const stop = runOver(connection, informer);
  await informer.synced;
  return { informer, heard, stop };
}
