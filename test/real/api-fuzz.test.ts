import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { compareServers, describe } from '../../hack/api-fuzz/compare.ts';
import { eachField } from '../../hack/api-fuzz/each-field.ts';
import { randomSequences } from '../../hack/api-fuzz/requests.ts';
import { ApiServer } from '../../src/apiserver/api-server.ts';
import { credentialsOf } from '../../src/client/kube-config/credentials.ts';
import { http1Transport } from '../../src/client/transport/transport.ts';
import type { HttpHandler } from '../../src/util/http.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { startControlPlane } from '../support/control-plane.ts';
import { needsReal, skipBefore } from '../support/skip.ts';

const skip = needsReal('to compare responses') || skipBefore(37).skip;

let real: ControlPlane;
let close: () => Promise<void>;
let handle: HttpHandler;

before(async () => {
  if (skip) return;
  real = await startControlPlane();
  const { config } = real;
  const credentials = credentialsOf(config);
  const transport = http1Transport({ server: config.server, tls: () => credentials.tls() });
  close = () => transport.close();
  handle = async (request) =>
    transport.handle({
      ...request,
      headers: { ...(await credentials.headers()), ...request.headers },
    });
});

after(async () => {
  if (skip) return;
  await close();
  await real.close();
});

test('both servers give the same responses to values of each field', { skip }, async () => {
  const server = new ApiServer({ storageProtection: true });
  const found = await compareServers(server.handler, handle, {
    sequences: eachField(/./),
    limit: 5,
  });
  await server.close();
  assert.equal(found.map(describe).join('\n\n'), '');
});

test('both servers give the same responses to generated requests', { skip }, async () => {
  const server = new ApiServer({ storageProtection: true });
  const found = await compareServers(server.handler, handle, {
    sequences: randomSequences(1, 500),
    limit: 5,
  });
  await server.close();
  assert.equal(found.map(describe).join('\n\n'), '');
});
