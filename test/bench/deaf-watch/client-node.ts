/** The informer of @kubernetes/client-node, begun anew five seconds after an error, as its examples do. */
import { CoreV1Api, KubeConfig, makeInformer } from '@kubernetes/client-node';
import { heard } from './heard.ts';

const config = new KubeConfig();
config.loadFromDefault();
const api = config.makeApiClient(CoreV1Api);
const informer = makeInformer(config, '/api/v1/namespaces/default/configmaps', () =>
  api.listNamespacedConfigMap({ namespace: 'default' }),
);
informer.on('add', heard);
informer.on('update', heard);
informer.on('error', () => {
  setTimeout(() => void informer.start(), 5000);
});
await informer.start();
