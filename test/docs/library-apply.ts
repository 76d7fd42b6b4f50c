import { HttpClient } from 'crd-controller';
import { applyManifests, parseManifests } from 'crd-controller/apply';
import { ApiServer } from 'crd-controller/testing';

const client = new HttpClient({ handler: new ApiServer().handler, server: 'https://test' });
const text = `
apiVersion: v1
kind: ConfigMap
metadata: { name: settings, namespace: default }
data: { colour: blue }
`;
const manifests = parseManifests([{ source: 'settings.yaml', text }]);
const options = { fieldManager: 'example', namespace: 'default' };
for await (const result of applyManifests(client, manifests, options)) {
  console.log(result.kind); // prints: applied
}
