import type { Deployment } from '../../../api/builtin.ts';
import { covers } from '../../../api/equal.ts';
import { rolloutOf } from '../../../api/workloads.ts';
import { objectKey } from '../../../api/object-key.ts';
import type { Lister } from '../../../cache/lister.ts';
import { buildDeployment, deploymentName } from '../children.ts';
import { TaskError } from '../task.ts';
import type { Task } from '../task.ts';

/** Waits, on no worker's time, until all replicas run what the WebApp asks for. */
export function rolloutTask(deployments: Pick<Lister<Deployment>, 'get'>): Task {
  return {
    name: 'rollout',
    postCreate: async ({ webapp }) => {
      const { namespace } = webapp.metadata;
      const deployment = deployments.get(objectKey(namespace, deploymentName(webapp)));
      // What a task before this one has written a moment ago, the cache may not show yet.
      if (!deployment || !covers(deployment, buildDeployment(webapp))) {
        return { message: 'The Deployment is about to be rolled out' };
      }
      const { desired, updated, available, isComplete, isDeadlineExceeded } = rolloutOf(deployment);
      if (isComplete) return undefined;
      const message =
        updated < desired && available >= desired
          ? `${updated} of ${desired} replicas are updated`
          : `${available} of ${desired} replicas are available`;
      if (isDeadlineExceeded)
        throw new TaskError('ProgressDeadlineExceeded', message, { terminal: true });
      return { message };
    },
  };
}
