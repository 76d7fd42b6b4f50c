import { isApiError } from '../../api/api-error.ts';
import { JOBS } from '../../api/builtin.ts';
import { finishedCondition } from '../../api/workloads.ts';
import { Controller } from '../../manager/controller.ts';
import { done, requeueAfter } from '../../workqueue/outcome.ts';
import type { ClusterDeps } from '../support/resource-monitors.ts';

/** Deletes finished Jobs and their Pods after `spec.ttlSecondsAfterFinished`. */
export function ttlAfterFinished(deps: ClusterDeps): Controller {
  const jobs = deps.informers.for(JOBS);
  return new Controller(deps, {
    name: 'ttl-after-finished',
    kind: JOBS.kind,
    sync: async (key, { client, signal }) => {
      const job = jobs.lister.get(key);
      const ttlSeconds = job?.spec?.ttlSecondsAfterFinished;
      const finished = job && finishedCondition(job);
      if (!finished || ttlSeconds === undefined) return done();
      if (job.metadata.deletionTimestamp !== undefined) return done();
      const finishedMs = Date.parse(finished.lastTransitionTime ?? '');
      const waitMs = finishedMs + ttlSeconds * 1000 - deps.clock.now();
      if (waitMs > 0) return requeueAfter(waitMs);
      const { uid, resourceVersion } = job.metadata;
      const options = { uid, resourceVersion, propagationPolicy: 'Foreground', signal } as const;
      try {
        await client.delete(JOBS, job.metadata, options);
      } catch (error) {
        if (!isApiError(error, 'notFound')) throw error;
      }
      return done();
    },
  }).for(jobs);
}
