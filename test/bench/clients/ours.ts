/**
 * The complete pipeline of a daemon: transport, decoder, reflector, delta queue, a cache with two indexes, metrics, one
 * handler; for the latency also a work queue and workers.
 */
import { keyOf } from '../../../src/api/object-key.ts';
import type { ObjectKey } from '../../../src/api/object-key.ts';
import { Informer } from '../../../src/cache/informer.ts';
import { listerWatcher } from '../../../src/cache/lister-watcher.ts';
import { connectCluster } from '../../../src/client/cluster-connection.ts';
import { reflectorMetrics } from '../../../src/metrics/reflector-metrics.ts';
import { createRegistry } from '../../../src/metrics/registry.ts';
import { workqueueMetrics } from '../../../src/metrics/workqueue-metrics.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { silentLogger } from '../../../src/util/logger.ts';
import { done } from '../../../src/workqueue/outcome.ts';
import { WorkQueue } from '../../../src/workqueue/work-queue.ts';
import { WorkerPool } from '../../../src/workqueue/worker-pool.ts';
import { KINDS } from '../support/object-bytes.ts';
import { Meter } from './meter.ts';

const meter = new Meter(() => informer.lister.list());
const { server, caFile, kind, latency } = meter.options;
const { group, version, plural, kind: name } = KINDS[kind];
const resource = { group, version, plural, kind: name, namespaced: true };

meter.start();
const { client } = connectCluster({
  source: 'bench',
  server,
  ...(caFile !== undefined && { ca: { kind: 'file' as const, path: caFile } }),
  insecureSkipTlsVerify: false,
  credentials: { kind: 'none' },
  namespace: 'default',
});
const registry = createRegistry();
const metrics = reflectorMetrics(registry);
const informer = new Informer(resource, listerWatcher(client, resource), { metrics });
informer.addIndexers({ app: (object) => [object.metadata.labels?.['app'] ?? ''] });
if (latency) {
  const deps = { name: 'bench', clock: systemClock };
  const queue = new WorkQueue<ObjectKey>(deps, { metrics: workqueueMetrics(registry) });
  informer.addHandler({ onUpdate: (_, object) => queue.add(keyOf(object), { cause: 'bench' }) });
  const handler = async (key: ObjectKey) => {
    meter.event(informer.lister.get(key)?.metadata.annotations?.['sent']);
    return done();
  };
  const pool = new WorkerPool({ ...deps, queue, handler, log: silentLogger }, { concurrency: 2 });
  void pool.run(new AbortController().signal);
} else {
  informer.addHandler({ onUpdate: () => meter.event() });
}
const running = informer.run(new AbortController().signal);
await informer.synced;
meter.synced();
await running;
