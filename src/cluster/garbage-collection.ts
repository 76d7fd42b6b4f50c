import { WorkQueue } from '../workqueue/work-queue.ts';
import { WorkerPool } from '../workqueue/worker-pool.ts';
import type { Runnable } from '../util/runnable.ts';
import type { ClusterDeps } from './cluster-deps.ts';
import { GarbageCollector } from './garbage-collector.ts';
import { ResourceMonitors } from './resource-monitors.ts';

const NAME = 'garbage-collector';

/** Until every resource has been listed, an owner may merely not have been seen. */
const SYNC_POLL_MS = 20;

/** The collector with what it needs: monitors that feed it, and workers that run it. */
export function garbageCollection(deps: ClusterDeps): {
  readonly monitors: Runnable;
  readonly controller: Runnable;
} {
  const { client, clock, log, metrics } = deps;
  const queue = new WorkQueue<string>({ name: NAME, clock }, { metrics: metrics?.workqueue });
  const collector = new GarbageCollector({
    client,
    log,
    resolve: ({ apiVersion, kind }) => monitors.resolve(apiVersion, kind),
    wake: (uid) => queue.add(uid),
  });
  const monitors = new ResourceMonitors(deps, (resource) => ({
    onAdd: (object) => collector.observe(resource, object),
    onUpdate: (old, object) => {
      // After a relist: another of the same name, whose predecessor's deletion was not seen.
      if (old.metadata.uid !== object.metadata.uid) collector.forget(old);
      collector.observe(resource, object);
    },
    onDelete: (object, finalStateKnown) => collector.forget(object, finalStateKnown),
  }));
  const pool = new WorkerPool<string>(
    { name: NAME, queue, clock, log, handler: (uid, { signal }) => collector.collect(uid, signal) },
    { concurrency: 10, keyName: 'uid', metrics: metrics?.reconcile },
  );
  const controller: Runnable = {
    name: NAME,
    run: async (signal) => {
      while (!monitors.hasSynced && !signal.aborted) await clock.sleep(SYNC_POLL_MS, signal);
      await pool.run(signal);
    },
  };
  return { monitors, controller };
}
