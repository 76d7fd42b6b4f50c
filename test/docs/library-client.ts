import { HttpClient } from 'crd-controller';
import { discover, dryRunClient } from 'crd-controller/client';
import { NAMESPACES } from 'crd-controller/kinds';
import { silentLogger } from 'crd-controller';
import { ApiServer } from 'crd-controller/testing';

const client = new HttpClient({ handler: new ApiServer().handler, server: 'https://test' });
const team = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team' } };
await dryRunClient(client, silentLogger).create(NAMESPACES, team);
const { items } = await client.list(NAMESPACES, { fieldSelector: 'metadata.name=team' });
console.log(items.length); // prints: 0
const discovery = await discover(client);
console.log(discovery.resources.some(({ kind }) => kind === 'Pod')); // prints: true
