import { HttpClient } from 'crd-controller';
import { PODS } from 'crd-controller/kinds';
import { ApiServer, TestedRole } from 'crd-controller/testing';

const role = new TestedRole(
  new URL('../../hack/deploy/rbac/controllers/count.yaml', import.meta.url),
);
const server = new ApiServer();
const client = new HttpClient({ handler: await role.handler(server), server: 'https://test' });
await client.list(PODS);
try {
  await role.verify();
} catch (error) {
  console.log(String(error).includes('not needed: create pods')); // prints: true
}
