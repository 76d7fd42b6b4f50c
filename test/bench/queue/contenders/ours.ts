/** Our work queue with its metrics, our worker pool for `handler`, and our indexer. */
import { keyOf } from '../../../../src/api/object-key.ts';
import { Indexer } from '../../../../src/cache/indexer.ts';
import { createRegistry } from '../../../../src/metrics/registry.ts';
import { workqueueMetrics } from '../../../../src/metrics/workqueue-metrics.ts';
import { systemClock } from '../../../../src/util/clock.ts';
import { silentLogger } from '../../../../src/util/logger.ts';
import { done } from '../../../../src/workqueue/outcome.ts';
import { LOW_PRIORITY, WorkQueue } from '../../../../src/workqueue/work-queue.ts';
import { WorkerPool } from '../../../../src/workqueue/worker-pool.ts';
import { measure, objectOf } from '../contender.ts';

const metrics = workqueueMetrics(createRegistry());

await measure(async (scenario, keys) => {
  if (scenario === 'indexer') {
    indexAll(keys);
    return;
  }
  const queue = new WorkQueue<string>(
    { name: 'bench', clock: systemClock },
    { tenantOf: (key) => key.slice(0, key.indexOf('/')), metrics },
  );
  for (let time = 0; time < 2; time++) {
    for (const [number, key] of keys.entries()) {
      const isLow = scenario === 'priority' && number % 2 === 0;
      queue.add(key, { priority: isLow ? LOW_PRIORITY : 0, cause: 'bench' });
    }
  }
  if (scenario === 'handler') {
    await workThrough(queue, keys.length);
    return;
  }
  if (scenario === 'backoff') {
    for (let taken = queue.tryTake(); taken; taken = queue.tryTake()) {
      queue.addRateLimited(taken.key, { cause: 'retry' });
      queue.done(taken.key);
    }
  }
  for (let left = keys.length; left > 0; left--) {
    const taken = queue.tryTake() ?? (await queue.take());
    if (!taken) throw new Error(`${left} keys are left`);
    queue.forget(taken.key);
    queue.done(taken.key);
  }
});

async function workThrough(queue: WorkQueue<string>, keys: number): Promise<void> {
  const stop = new AbortController();
  let left = keys;
  const handler = async () => {
    if (--left === 0) stop.abort();
    return done();
  };
  const deps = { name: 'bench', queue, handler, clock: systemClock, log: silentLogger };
  await new WorkerPool(deps, { concurrency: 10 }).run(stop.signal);
}

function indexAll(keys: readonly string[]): void {
  const indexer = new Indexer<ReturnType<typeof objectOf>>({
    app: ({ metadata }) => [metadata.labels.app],
  });
  for (let version = 1; version <= 2; version++) {
    for (const key of keys) {
      const object = objectOf(key, version);
      indexer.set(keyOf(object), object);
    }
  }
  let found = 0;
  for (const app of indexer.indexValues('app')) found += indexer.byIndex('app', app).length;
  if (found !== keys.length) throw new Error(`${found} objects are in the index`);
}
