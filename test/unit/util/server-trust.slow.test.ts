import assert from 'node:assert/strict';
import { isIP } from 'node:net';
import { test } from 'node:test';
import { dial } from '../../../src/client/transport/dial.ts';
import { messageOf } from '../../../src/util/values.ts';
import { certificateChains, ChainServer } from '../../support/certificate-chains.ts';

test('connections trust the chains that clients in Go trust, except three kinds', async (t) => {
  const server = await ChainServer.start((_request, response) => response.end());
  t.after(() => server.close());
  for (const chain of certificateChains()) {
    server.use(chain);
    const target = { protocol: 'https:', hostname: '127.0.0.1', port: String(server.port) };
    const options = { tls: { ca: chain.anchors }, serverName: chain.host };
    const outcome = await dial(target, isIP(chain.host) ? { tls: options.tls } : options).then(
      (socket) => {
        socket.destroy();
        return 'trusted';
      },
      (error: unknown) => messageOf(error),
    );
    const { title, host, refused, refusedByOpenssl = refused } = chain;
    const isTrusted = refusedByOpenssl === undefined;
    assert.equal(outcome === 'trusted', isTrusted, `${title}: ${outcome}`);
    if (refused?.includes(host)) assert.ok(outcome.endsWith(refused), `${title}: ${outcome}`);
  }
});
