import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { request } from 'node:https';
import { connect as connectPlain } from 'node:net';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { connect } from 'node:tls';
import type { ConnectionOptions, TLSSocket } from 'node:tls';
import { after, before, describe, it } from 'node:test';
import type { Download } from '../../../src/serving/routes.ts';
import { HttpServer } from '../../../src/serving/http-server.ts';
import type { HttpServerOptions, ServerTls } from '../../../src/serving/http-server.ts';
import { Deferred } from '../../../src/util/deferred.ts';
import { silentLogger } from '../../../src/util/logger.ts';
import { untilAborted } from '../../../src/util/abort.ts';
import type { Certificate, CertificateAuthority } from '../../../src/util/x509.ts';
import { createCertificateAuthority } from '../../../src/util/x509.ts';
import { closed } from '../../support/closed.ts';

let authority: CertificateAuthority;
const ends: (() => Promise<void>)[] = [];

before(async () => {
  authority = await createCertificateAuthority({ commonName: 'test-ca' });
});
after(async () => {
  for (const end of ends) await end();
});

const issue = (commonName: string) =>
  authority.issue({ commonName, dnsNames: ['localhost'], usages: 'server' });

const inParts = (): Promise<Download> =>
  Promise.resolve({
    status: 200,
    contentType: 'text/plain',
    body: Readable.from(['one ', 'two']),
  });

/** A server whose certificate the test renews. */
async function serving(
  tls: Omit<ServerTls, 'certificate'> = {},
  options: Pick<HttpServerOptions, 'maxConnections' | 'requestTimeoutMs'> = {},
) {
  const first = await issue('first');
  const watching = new Deferred<(renewed: Certificate) => void>();
  const certificate = {
    load: () => Promise.resolve(first),
    watch: (signal: AbortSignal, renew: (renewed: Certificate) => void) => {
      watching.resolve(renew);
      return untilAborted(signal);
    },
  };
  const server = new HttpServer(
    { log: silentLogger },
    {
      name: 'metrics',
      bindAddress: '127.0.0.1:0',
      routes: { livez: [], downloads: new Map([['/parts', inParts]]) },
      tls: { ...tls, certificate },
      ...options,
    },
  );
  const stop = new AbortController();
  let hasEnded = false;
  const run = server.run(stop.signal).finally(() => (hasEnded = true));
  ends.push(async () => {
    stop.abort();
    await run;
  });
  const port = Number((await server.listening).split(':')[1]);
  return { port, renew: await watching.promise, hasEnded: () => hasEnded };
}

async function dial(port: number, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const { certificatePem: ca } = authority;
  const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', ca, ...options });
  await once(socket, 'secureConnect');
  return socket;
}

/** Sends `GET /livez` over an existing connection. */
async function ask(socket: TLSSocket): Promise<string> {
  const answer = request({ path: '/livez', createConnection: () => socket });
  answer.setHeader('connection', 'keep-alive');
  answer.end();
  const [response] = (await once(answer, 'response')) as [AsyncIterable<Uint8Array>];
  let text = '';
  for await (const chunk of response) text += Buffer.from(chunk).toString();
  return text;
}

const nameOf = (socket: TLSSocket) => socket.getPeerCertificate().subject.CN;

describe('HttpServer with TLS', () => {
  it('uses a new certificate for new connections, and keeps existing connections', async () => {
    const { port, renew } = await serving();
    const before = await dial(port);
    assert.equal(nameOf(before), 'first');
    renew(await issue('second'));
    const after = await dial(port);
    assert.equal(nameOf(after), 'second');
    assert.equal(await ask(before), 'ok');
    assert.equal(await ask(after), 'ok');
  });

  it('runs until it is aborted', async () => {
    const { port, hasEnded } = await serving();
    assert.equal(await ask(await dial(port)), 'ok');
    assert.equal(hasEnded(), false);
  });

  it('rejects TLS versions below the minimum, also after a renewal', async () => {
    const { port } = await serving();
    const newest = await dial(port, { maxVersion: 'TLSv1.2' });
    assert.equal(newest.getProtocol(), 'TLSv1.2');
    const old = {
      minVersion: 'TLSv1.1',
      maxVersion: 'TLSv1.1',
      ciphers: 'ALL:@SECLEVEL=0',
    } as const;
    await assert.rejects(dial(port, old), /alert|protocol|version/i);
    const strict = await serving({ minVersion: 'TLSv1.3' });
    await assert.rejects(dial(strict.port, { maxVersion: 'TLSv1.2' }), /alert protocol version/);
    strict.renew(await issue('second'));
    await assert.rejects(dial(strict.port, { maxVersion: 'TLSv1.2' }), /alert protocol version/);
    assert.equal((await dial(strict.port)).getProtocol(), 'TLSv1.3');
  });

  it('uses the configured ciphers', async () => {
    const { port, renew } = await serving({
      ciphers: 'TLS_AES_256_GCM_SHA384:ECDHE-ECDSA-AES256-GCM-SHA384',
    });
    for (const name of ['first', 'second']) {
      const [modern, older] = await Promise.all([
        dial(port),
        dial(port, { maxVersion: 'TLSv1.2' }),
      ]);
      assert.equal(nameOf(modern), name);
      assert.equal(modern.getCipher().name, 'TLS_AES_256_GCM_SHA384');
      assert.equal(older.getCipher().name, 'ECDHE-ECDSA-AES256-GCM-SHA384');
      const weak = { maxVersion: 'TLSv1.2', ciphers: 'ECDHE-ECDSA-AES128-GCM-SHA256' } as const;
      await assert.rejects(dial(port, weak), /handshake failure/);
      renew(await issue('second'));
    }
  });

  it('closes connections without a client certificate of the authority, also after a renewal', async () => {
    const client = await authority.issue({ commonName: 'kube-apiserver', usages: 'client' });
    const others = await createCertificateAuthority({ commonName: 'others' });
    const unknown = await others.issue({ commonName: 'kube-apiserver', usages: 'client' });
    const { port, renew } = await serving({ clientCa: authority.certificatePem });
    const own = { cert: client.certificatePem, key: client.privateKeyPem };
    for (let round = 0; round < 2; round++) {
      assert.equal(await ask(await dial(port, own)), 'ok');
      for (const wrong of [{}, { cert: unknown.certificatePem, key: unknown.privateKeyPem }]) {
        await assert.rejects(async () => ask(await dial(port, wrong)));
      }
      renew(await issue('second'));
    }
  });

  it('supports HTTP/2 if enabled, and always HTTP/1.1', async () => {
    const protocols = { ALPNProtocols: ['h2', 'http/1.1'] };
    const plain = await serving();
    assert.equal((await dial(plain.port, protocols)).alpnProtocol, 'http/1.1');
    const { port } = await serving({ http2: true });
    assert.equal(await ask(await dial(port, { ALPNProtocols: ['http/1.1'] })), 'ok');
    const { certificatePem: ca } = authority;
    const answer = async (headers: Record<string, string>) => {
      const session = connectHttp2(`https://localhost:${port}`, { ca, host: '127.0.0.1' });
      const closed = once(session, 'close');
      const stream = session.request(headers);
      const [answered] = (await once(stream, 'response')) as [{ ':status': number }];
      assert.equal(session.remoteSettings.maxConcurrentStreams, 250);
      const body = await text(stream);
      if (answered[':status'] === 200 && headers[':path'] !== '/livez') session.close();
      await closed;
      return [answered[':status'], body];
    };
    assert.deepEqual(await answer({ ':path': '/parts' }), [200, 'one two']);
    const rebound = { ':path': '/parts', ':authority': `rebound.example:${port}` };
    assert.equal((await answer(rebound))[0], 403);
    assert.deepEqual(await answer({ ':path': '/livez' }), [200, 'ok']);
  });

  it('closes idle connections before and after the handshake', async () => {
    const { port } = await serving({ http2: true }, { requestTimeoutMs: 400 });
    const plain = connectPlain(port, '127.0.0.1').resume();
    const silent = await dial(port, { ALPNProtocols: ['http/1.1'] });
    const modern = await dial(port, { ALPNProtocols: ['h2'] });
    for (const socket of [silent, modern]) socket.on('error', () => undefined).resume();
    await Promise.all([plain, silent, modern].map(closed));
  });

  it('responds to probes while all allowed connections are idle', async () => {
    for (const http2 of [false, true]) {
      const { port } = await serving({ http2 }, { maxConnections: 2 });
      const handshaking = connectPlain(port, '127.0.0.1').on('error', () => undefined);
      await once(handshaking, 'connect');
      const silent = await dial(port);
      silent.on('error', () => undefined).resume();
      handshaking.resume();
      for (const socket of [handshaking, silent]) {
        assert.equal(await ask(await dial(port)), 'ok');
        await dial(port);
        await closed(socket);
      }
    }
  });

  it('does not start without a certificate', async () => {
    const certificate = {
      load: () => Promise.reject(new Error('no such file')),
      watch: () => assert.fail(),
    };
    const server = new HttpServer(
      { log: silentLogger },
      { name: 'metrics', bindAddress: '127.0.0.1:0', routes: {}, tls: { certificate } },
    );
    await assert.rejects(server.run(new AbortController().signal), /no such file/);
  });
});
