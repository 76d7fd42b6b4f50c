/**
 * The complete pipeline of a daemon: transport, decoder, reflector, delta queue, a cache with two
 * indexes, metrics, one handler.
 */
import type { Resource } from '../../../src/api/resource.ts';
import { Informer } from '../../../src/cache/informer.ts';
import { listerWatcher } from '../../../src/cache/lister-watcher.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { undiciTransport } from '../../../src/client/transport/transport.ts';
import { reflectorMetrics } from '../../../src/metrics/reflector-metrics.ts';
import { createRegistry } from '../../../src/metrics/registry.ts';
import { FOOS } from '../support/foo-bytes.ts';
import { Meter } from './meter.ts';

const foos: Resource = { ...FOOS, namespaced: true };
const meter = new Meter();

meter.start();
const transport = undiciTransport({ server: meter.options.server });
const client = new HttpClient({ handler: transport.handle, server: meter.options.server });
const metrics = reflectorMetrics(createRegistry());
const informer = new Informer(foos, listerWatcher(client, foos), { metrics });
informer.addIndexers({ app: (foo) => [foo.metadata.labels?.['app'] ?? ''] });
informer.addHandler({ onUpdate: () => meter.event() });
const running = informer.run(new AbortController().signal);
await informer.synced;
meter.synced();
await running;
