/** The informer of @kubernetes/client-node, restarted five seconds after an error as in its examples. */
import { CoreV1Api, KubeConfig, makeInformer } from '@kubernetes/client-node';
import { printReceived } from './print-received.ts';

const config = new KubeConfig();
config.loadFromDefault();
const api = config.makeApiClient(CoreV1Api);
const informer = makeInformer(config, '/api/v1/namespaces/default/configmaps', () =>
  api.listNamespacedConfigMap({ namespace: 'default' }),
);
informer.on('add', printReceived);
informer.on('update', printReceived);
informer.on('error', () => {
  setTimeout(() => void informer.start(), 5000);
});
await informer.start();
