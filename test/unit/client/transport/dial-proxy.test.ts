import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { createServer } from 'node:net';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { ApiError } from '../../../../src/api/api-error.ts';
import { isNeverSent } from '../../../../src/client/transport/connection-error.ts';
import { undiciTransport } from '../../../../src/client/transport/transport.ts';
import type { TransportOptions } from '../../../../src/client/transport/transport.ts';
import { WatchConnections } from '../../../../src/client/transport/watch-connections.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';
import type { HttpRequest } from '../../../../src/util/http.ts';
import { createCertificateAuthority } from '../../../../src/util/x509.ts';
import { ForwardProxy } from '../../../support/forward-proxy.ts';
import type { ForwardProxyOptions } from '../../../support/forward-proxy.ts';
import { beginBody, serveHttp2 } from '../http2-server.ts';
import { serveTls } from '../server.ts';

const REQUEST: HttpRequest = { method: 'GET', path: '/', headers: {} };
/** A user and a password that need quoting, the second of them secret. */
const USER = 'us%40er:can%3Aary';

async function start(t: TestContext, options: ForwardProxyOptions = {}): Promise<ForwardProxy> {
  const proxy = await ForwardProxy.start(options);
  t.after(() => proxy.close());
  return proxy;
}

async function statusOf(t: TestContext, options: TransportOptions): Promise<number> {
  const transport = undiciTransport(options);
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
  test(`requests and watches go through a proxy of ${protocol}:// that wants a password`, async (t) => {
    const authority = await createCertificateAuthority({ commonName: 'corporate-ca' });
    const proxy = await start(t, { protocol, user: USER, authority });
    const plain = await serveTls(t, (_request, response) => response.end());
    const tls = (ca: string) => () => ({ ca: `${ca}\n${authority.certificatePem}` });
    const through = { proxyUrl: proxy.url };
    const ca = plain.authority.certificatePem;
    assert.equal(await statusOf(t, { server: plain.url, tls: tls(ca), ...through }), 200);
    if (protocol === 'socks5') {
      // Names are always resolved by the proxy; curl writes it like this.
      const proxyUrl = proxy.url.replace('socks5:', 'socks5h:');
      assert.equal(await statusOf(t, { server: plain.url, tls: tls(ca), proxyUrl }), 200);
      proxy.tunnels.pop();
    }

    const modern = await serveHttp2(t, (stream) => beginBody(stream));
    const lane = new WatchConnections({ server: modern.url, tls: tls(modern.ca), ...through });
    t.after(() => lane.close());
    assert.equal((await lane.send(REQUEST))?.status, 200);
    assert.deepEqual(
      proxy.tunnels,
      [plain.url, modern.url].map((url) => new URL(url).host),
    );
  });

  test(`a proxy of ${protocol}:// that refuses is told by name, without the password`, async (t) => {
    const authority = await createCertificateAuthority({ commonName: 'corporate-ca' });
    const proxy = await start(t, { protocol, user: USER, authority });
    const server = 'https://127.0.0.1:1';
    const tls = () => ({ ca: authority.certificatePem });
    const host = `127.0.0.1:${proxy.port}`;
    for (const user of ['', 'us%40er:wrong-can%3Aary@']) {
      const proxyUrl = `${protocol}://${user}${host}`;
      const refused = await failure(statusOf(t, { server, tls, proxyUrl }));
      const expected = new RegExp(
        `Cannot reach the API server ${server}: the proxy ${host}: it (answered 407 to CONNECT|accepts no way|did not accept).*\\. Check HTTPS_PROXY and NO_PROXY, or proxy-url`,
      );
      assert.match(refused.message, expected);
    }
    assert.equal(proxy.refused, 2);
    assert.deepEqual(proxy.tunnels, []);
  });
}

test('names are left to the proxy to resolve', async (t) => {
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

test('an address of IPv6 reaches the proxy whole', async (t) => {
  for (const protocol of ['http', 'socks5'] as const) {
    const proxy = await start(t, { protocol, resolve: () => '127.0.0.1' });
    const server = 'https://[fd00::1:0:2]:1';
    await failure(statusOf(t, { server, proxyUrl: proxy.url }));
    const written = protocol === 'http' ? 'fd00::1:0:2' : 'fd00:0000:0000:0000:0000:0001:0000:0002';
    assert.deepEqual(proxy.tunnels, [`${written}:1`]);
  }
});

test('a proxy that is not there, or is something else, is told from the server', async (t) => {
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

test('a certificate of the proxy that nobody vouches for is refused', async (t) => {
  const authority = await createCertificateAuthority({ commonName: 'corporate-ca' });
  const { url: proxyUrl } = await start(t, { protocol: 'https', authority });
  const stranger = await createCertificateAuthority({ commonName: 'cluster-ca' });
  const server = 'https://127.0.0.1:1';
  const tls = () => ({ ca: stranger.certificatePem });
  const refused = await failure(statusOf(t, { server, proxyUrl, tls }));
  assert.match(refused.message, /the proxy 127\.0\.0\.1:\d+: .*certificate/);
});

test('a proxy that does not answer is given up after half a minute, or with the request', async (t) => {
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
    assert.match((await silent).message, /the proxy 127\.0\.0\.1:\d+: nothing within 30000 ms/);
    assert.equal(clock.pending, 0);
  }
});
