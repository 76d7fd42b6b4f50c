import { KubeConfig } from '@kubernetes/client-node';
import { connectCluster } from 'crd-controller';
import { fromKubeConfig } from 'crd-controller/client';
import { PODS } from 'crd-controller/kinds';

const kubeConfig = new KubeConfig();
kubeConfig.loadFromDefault();
const connection = connectCluster(fromKubeConfig(kubeConfig));
const { items } = await connection.client.list(PODS, { namespace: 'default' });
console.log(items.map(({ metadata }) => metadata.name));
await connection.close();
