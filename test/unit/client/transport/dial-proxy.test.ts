import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { createServer } from 'node:net';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { ApiError } from '../../../../src/api/api-error.ts';
import { isNeverSent } from '../../../../src/client/transport/connection-error.ts';
import { http1Transport } from '../../../../src/client/transport/transport.ts';
import type { TransportOptions } from '../../../../src/client/transport/transport.ts';
import { WatchConnections } from '../../../../src/client/transport/watch-connections.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';
import type { HttpRequest } from '../../../../src/util/http.ts';
import { createCertificateAuthority } from '../../../../src/util/x509.ts';
import { ForwardProxy } from '../../../support/forward-proxy.ts';
import type { ForwardProxyOptions } from '../../../support/forward-proxy.ts';
import { startBody, serveHttp2 } from '../http2-server.ts';
import { serveTls } from '../server.ts';

const REQUEST: HttpRequest = { method: 'GET', path: '/', headers: {} };
/** A user and a secret password with characters that must be encoded. */
const USER = 'us%40er:can%3Aary';

async function start(t: TestContext, options: ForwardProxyOptions = {}): Promise<ForwardProxy> {
  const proxy = await ForwardProxy.start(options);
  t.after(() => proxy.close());
  return proxy;
}

async function statusOf(t: TestContext, options: TransportOptions): Promise<number> {
  const transport = http1Transport(options);
  t.after(() => transport.close());
  const { status, body } = await transport.handle(REQUEST);
  await Array.fromAsync(body);
  return status;
}

async function failure(promise: Promise<unknown>): Promise<ApiError> {
  const error = await promise.then(
    () => assert.fail('it succeeded'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof ApiError, String(error));
  assert.ok(isNeverSent(error), 'nothing was sent');
  assert.doesNotMatch(`${error.stack} ${String(error.cause)}`, /can(:|%3A)ary/);
  return error;
}

for (const protocol of ['http', 'https', 'socks5'] as const) {
  test(`sends requests and watches through a ${protocol}:// proxy with a password`, async (t) => {
    const authority = await createCertificateAuthority({ commonName: 'corporate-ca' });
    const proxy = await start(t, { protocol, user: USER, authority });
    const plain = await serveTls(t, (_request, response) => response.end());
    const tls = (ca: string) => () => ({ ca: `${ca}\n${authority.certificatePem}` });
    const through = { proxyUrl: proxy.url };
    const ca = plain.authority.certificatePem;
    assert.equal(await statusOf(t, { server: plain.url, tls: tls(ca), ...through }), 200);
    if (protocol === 'socks5') {
      // The proxy always resolves names; socks5h is the notation of curl.
      const proxyUrl = proxy.url.replace('socks5:', 'socks5h:');
      assert.equal(await statusOf(t, { server: plain.url, tls: tls(ca), proxyUrl }), 200);
      proxy.tunnels.pop();
    }

    const modern = await serveHttp2(t, (stream) => startBody(stream));
    const pool = new WatchConnections({ server: modern.url, tls: tls(modern.ca), ...through });
    t.after(() => pool.close());
    assert.equal((await pool.send(REQUEST))?.status, 200);
    assert.deepEqual(
      proxy.tunnels,
      [plain.url, modern.url].map((url) => new URL(url).host),
    );
  });

  test(`reports the name of a ${protocol}:// proxy that rejects the connection, without the password`, async (t) => {
    const authority = await createCertificateAuthority({ commonName: 'corporate-ca' });
    const proxy = await start(t, { protocol, user: USER, authority });
    const server = 'https://127.0.0.1:1';
    const tls = () => ({ ca: authority.certificatePem });
    const host = `127.0.0.1:${proxy.port}`;
    for (const user of ['', 'us%40er:wrong-can%3Aary@']) {
      const proxyUrl = `${protocol}://${user}${host}`;
      const refused = await failure(statusOf(t, { server, tls, proxyUrl }));
      const expected = new RegExp(
        `Cannot reach the API server ${server}: the proxy ${host}: it (responded with 407 to CONNECT|accepts none|did not accept).*\\. Check HTTPS_PROXY and NO_PROXY, or proxy-url`,
      );
      assert.match(refused.message, expected);
    }
    assert.equal(proxy.refused, 2);
    assert.deepEqual(proxy.tunnels, []);
  });
}

test('lets the proxy resolve names', async (t) => {
  const { port, authority } = await serveTls(t, (_request, response) => response.end());
  const ca = authority.certificatePem;
  for (const protocol of ['http', 'socks5'] as const) {
    const proxy = await start(t, { protocol, resolve: () => '127.0.0.1' });
    const server = `https://no-such-host.invalid:${port}`;
    const options = { server, serverName: 'localhost', tls: () => ({ ca }) };
    assert.equal(await statusOf(t, { ...options, proxyUrl: proxy.url }), 200);
    assert.deepEqual(proxy.tunnels, [`no-such-host.invalid:${port}`]);
  }
});

test('passes an IPv6 address to the proxy', async (t) => {
  for (const protocol of ['http', 'socks5'] as const) {
    const proxy = await start(t, { protocol, resolve: () => '127.0.0.1' });
    const server = 'https://[fd00::1:0:2]:1';
    await failure(statusOf(t, { server, proxyUrl: proxy.url }));
    const written = protocol === 'http' ? 'fd00::1:0:2' : 'fd00:0000:0000:0000:0000:0001:0000:0002';
    assert.deepEqual(proxy.tunnels, [`${written}:1`]);
  }
});

test('distinguishes failures of the proxy from failures of the server', async (t) => {
  const server = 'https://127.0.0.1:1';
  const absent = await failure(statusOf(t, { server, proxyUrl: 'http://127.0.0.1:1' }));
  assert.match(
    absent.message,
    /the proxy 127\.0\.0\.1:1: connect ECONNREFUSED 127\.0\.0\.1:1\. Check HTTPS_PROXY/,
  );
  const { port } = await start(t);
  const other = await failure(statusOf(t, { server, proxyUrl: `socks5://127.0.0.1:${port}` }));
  assert.match(other.message, /the proxy 127\.0\.0\.1:\d+: it (does not speak SOCKS5|hung up)/);
});

test('rejects a proxy whose certificate is from an unknown CA', async (t) => {
  const authority = await createCertificateAuthority({ commonName: 'corporate-ca' });
  const { url: proxyUrl } = await start(t, { protocol: 'https', authority });
  const untrusted = await createCertificateAuthority({ commonName: 'cluster-ca' });
  const server = 'https://127.0.0.1:1';
  const tls = () => ({ ca: untrusted.certificatePem });
  const refused = await failure(statusOf(t, { server, proxyUrl, tls }));
  assert.match(refused.message, /the proxy 127\.0\.0\.1:\d+: .*certificate/);
});

test('fails if the proxy does not respond within 30 s, or when the request is aborted', async (t) => {
  const mute = createServer().listen(0, '127.0.0.1');
  await once(mute, 'listening');
  const sockets: Socket[] = [];
  mute.on('connection', (socket) => sockets.push(socket.on('error', () => undefined)));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    mute.close();
  });
  const { port } = mute.address() as AddressInfo;
  for (const protocol of ['http', 'socks5']) {
    const clock = new FakeClock();
    const options = {
      server: 'https://127.0.0.1:1',
      proxyUrl: `${protocol}://127.0.0.1:${port}`,
      clock,
    };
    const silent = failure(statusOf(t, options));
    await once(mute, 'connection');
    while (clock.pending === 0 || clock.untilNext !== 30_000) await new Promise(setImmediate);
    await clock.advance(30_000);
    assert.match((await silent).message, /the proxy 127\.0\.0\.1:\d+: no response within 30000 ms/);
    assert.equal(clock.pending, 0);
  }
});
