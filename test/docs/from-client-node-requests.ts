import { HttpClient, isApiError } from 'crd-controller';
import { CONFIG_MAPS } from 'crd-controller/kinds';
import { ApiServer } from 'crd-controller/testing';

// In your program: connectCluster(await loadClusterConfig()).client
const client = new HttpClient({ handler: new ApiServer().handler, server: 'https://test' });
const at = { namespace: 'default', name: 'settings' };
await client.create(CONFIG_MAPS, {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: at,
  data: { sky: 'blue' },
});
const patch = { type: 'merge', body: { data: { sky: 'grey' } } } as const;
console.log((await client.patch(CONFIG_MAPS, at, patch)).data); // prints: { sky: 'grey' }
await client.delete(CONFIG_MAPS, at);
try {
  await client.get(CONFIG_MAPS, at);
} catch (error) {
  if (!isApiError(error, 'notFound')) throw error;
  console.log(error.message); // prints: configmaps "settings" not found
}
