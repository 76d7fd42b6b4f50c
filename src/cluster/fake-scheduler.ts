import { PODS } from '../api/builtin.ts';
import { isApiError } from '../api/api-error.ts';
import { objectPath } from '../api/resource.ts';
import { Controller } from '../manager/controller.ts';
import { done } from '../workqueue/outcome.ts';
import type { ClusterDeps } from './resource-monitors.ts';

/** Binds every Pod without a node to `nodeName` through the binding subresource. */
export function fakeScheduler(deps: ClusterDeps, nodeName: string): Controller {
  const pods = deps.informers.for(PODS);
  return new Controller(deps, {
    name: 'fake-scheduler',
    kind: PODS.kind,
    concurrency: 10,
    sync: async (key, { client, signal }) => {
      const pod = pods.lister.get(key);
      if (!pod || pod.spec?.nodeName || pod.metadata.deletionTimestamp) return done();
      const { name, namespace = '', uid } = pod.metadata;
      const binding = {
        apiVersion: 'v1',
        kind: 'Binding',
        metadata: { name, namespace, uid },
        target: { apiVersion: 'v1', kind: 'Node', name: nodeName },
      };
      const path = objectPath(PODS, pod.metadata, 'binding');
      try {
        await client.raw({ method: 'POST', path, body: binding, signal });
      } catch (error) {
        // The Pod was deleted, replaced or bound; the event of that change enqueues it again.
        if (!isApiError(error, 'notFound', 'conflict')) throw error;
      }
      return done();
    },
  }).for(pods);
}
