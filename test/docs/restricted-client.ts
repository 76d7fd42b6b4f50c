import { HttpClient } from 'crd-controller';
import { ApiServer } from 'crd-controller/testing';

const server = new ApiServer();
const user = { 'impersonate-user': 'system:serviceaccount:default:my-controller' };
export const restricted = new HttpClient({
  handler: (request) => server.handler({ ...request, headers: { ...request.headers, ...user } }),
  server: 'https://test',
});
