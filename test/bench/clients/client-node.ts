/** The informer of @kubernetes/client-node: a cache without indexes, one handler. */
import { CoreV1Api, CustomObjectsApi, KubeConfig, makeInformer } from '@kubernetes/client-node';
import type { KubernetesListObject, KubernetesObject } from '@kubernetes/client-node';
import { KINDS } from '../support/object-bytes.ts';
import { Meter } from './meter.ts';

const meter = new Meter(() => informer.list());
const { server, caFile, objects, latency } = meter.options;

meter.start();
const config = new KubeConfig();
config.loadFromClusterAndUser(
  { name: 'bench', server, skipTLSVerify: caFile === undefined, ...(caFile && { caFile }) },
  { name: 'bench' },
);
const { group, version, plural, path } = KINDS[meter.options.kind];
const list = (): Promise<unknown> =>
  group === ''
    ? config.makeApiClient(CoreV1Api).listPodForAllNamespaces()
    : config
        .makeApiClient(CustomObjectsApi)
        .listCustomObjectForAllNamespaces({ group, version, resourcePlural: plural });
const informer = makeInformer(
  config,
  path,
  async () => (await list()) as KubernetesListObject<KubernetesObject>,
);
let added = 0;
informer.on('add', () => {
  if (++added === objects) setImmediate(() => meter.synced());
});
informer.on('update', ({ metadata }) =>
  meter.event(latency ? metadata?.annotations?.['sent'] : undefined),
);
informer.on('error', (error: unknown) => {
  throw error;
});
await informer.start();
