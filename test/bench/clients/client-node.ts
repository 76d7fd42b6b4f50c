/** The informer of @kubernetes/client-node: a cache without indexes, one handler. */
import { CustomObjectsApi, KubeConfig, makeInformer } from '@kubernetes/client-node';
import type { KubernetesListObject, KubernetesObject } from '@kubernetes/client-node';
import { FOOS } from '../support/foo-bytes.ts';
import { Meter } from './meter.ts';

const meter = new Meter();
const { server, objects } = meter.options;

meter.start();
const config = new KubeConfig();
config.loadFromClusterAndUser({ name: 'bench', server, skipTLSVerify: true }, { name: 'bench' });
const api = config.makeApiClient(CustomObjectsApi);
const { group, version, plural } = FOOS;
const informer = makeInformer(
  config,
  FOOS.path,
  async () =>
    (await api.listCustomObjectForAllNamespaces({
      group,
      version,
      resourcePlural: plural,
    })) as KubernetesListObject<KubernetesObject>,
);
let added = 0;
informer.on('add', () => {
  if (++added === objects) setImmediate(() => meter.synced());
});
informer.on('update', () => meter.event());
informer.on('error', (error: unknown) => {
  throw error;
});
await informer.start();
