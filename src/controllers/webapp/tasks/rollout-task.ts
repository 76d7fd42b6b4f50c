import type { Deployment } from '../../../api/builtin.ts';
import { objectKey } from '../../../api/object-key.ts';
import type { Lister } from '../../../cache/lister.ts';
import { deploymentName } from '../children.ts';
import { TaskError } from '../task.ts';
import type { Task } from '../task.ts';

/** Waits, on no worker's time, until all replicas run what the WebApp asks for. */
export function rolloutTask(deployments: Pick<Lister<Deployment>, 'get'>): Task {
  return {
    name: 'rollout',
    postCreate: async ({ webapp }) => {
      const { namespace } = webapp.metadata;
      const deployment = deployments.get(objectKey(namespace, deploymentName(webapp)));
      const { metadata, status } = deployment ?? {};
      const wanted = webapp.spec.replicas;
      const available = status?.availableReplicas ?? 0;
      const isCurrent = status?.observedGeneration === metadata?.generation;
      const updated = isCurrent ? (status?.updatedReplicas ?? 0) : 0;
      const isRolledOut =
        deployment !== undefined &&
        isCurrent &&
        updated === wanted &&
        available === wanted &&
        (status?.replicas ?? 0) === wanted;
      if (isRolledOut) return undefined;
      const message =
        updated < wanted && available >= wanted
          ? `${updated} of ${wanted} replicas are updated`
          : `${available} of ${wanted} replicas are available`;
      const late = status?.conditions?.find(
        ({ type, reason }) => type === 'Progressing' && reason === 'ProgressDeadlineExceeded',
      );
      if (late && isCurrent) throw new TaskError('ProgressDeadlineExceeded', message);
      return { message };
    },
  };
}
