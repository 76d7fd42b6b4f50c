import { HttpClient } from 'crd-controller';
import { NAMESPACES, PODS } from 'crd-controller/kinds';
import { ApiServer } from 'crd-controller/testing';

const client = new HttpClient({ handler: new ApiServer().handler, server: 'https://test' });
const { items } = await client.list(NAMESPACES, { fieldSelector: 'metadata.name=default' });
console.log(items[0]?.status?.phase); // prints: Active
console.log(PODS.kind, PODS.namespaced); // prints: Pod true
