import { constants, createSecureServer } from 'node:http2';
import type {
  Http2SecureServer,
  ServerHttp2Session,
  ServerHttp2Stream,
  Settings,
} from 'node:http2';
import type { IncomingHttpHeaders } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import type { TestContext } from 'node:test';
import { createCertificateAuthority } from '../../../src/util/x509.ts';

export type OnStream = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;

export interface Http2TestServer {
  readonly url: string;
  readonly port: number;
  readonly server: Http2SecureServer;
  readonly ca: string;
  /** Number of open connections. */
  readonly sessions: ReadonlySet<ServerHttp2Session>;
  /** Number of connections that were opened. */
  readonly opened: () => number;
  /** Number of received pings. */
  readonly pings: () => number;
}

/** A real HTTP/2 server over TLS on a free port, closed at the end of the test. */
export async function serveHttp2(
  t: TestContext,
  onStream: OnStream,
  settings: Settings = {},
): Promise<Http2TestServer> {
  const authority = await createCertificateAuthority({ commonName: 'test-ca' });
  const certificate = await authority.issue({
    commonName: 'server',
    ipAddresses: ['127.0.0.1'],
    usages: 'server',
  });
  const server = createSecureServer({
    cert: certificate.certificatePem,
    key: certificate.privateKeyPem,
    settings,
    streamResetBurst: 100_000,
    streamResetRate: 100_000,
  });
  const sessions = new Set<ServerHttp2Session>();
  let opened = 0;
  let pings = 0;
  server.on('session', (session) => {
    opened++;
    sessions.add(session);
    session.on('ping', () => pings++);
    session.on('error', () => undefined);
    session.once('close', () => sessions.delete(session));
  });
  server.on('stream', (stream, headers) => {
    stream.on('error', () => undefined);
    onStream(stream, headers);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(async () => {
    for (const session of sessions) session.destroy();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  });
  const { port } = server.address() as AddressInfo;
  const url = `https://127.0.0.1:${port}`;
  const ca = authority.certificatePem;
  return { url, port, server, ca, sessions, opened: () => opened, pings: () => pings };
}

/** Responds with 200 and a body that does not end. */
export function startBody(stream: ServerHttp2Stream, text = 'started'): void {
  stream.respond({ ':status': 200, 'content-type': 'application/json' });
  stream.write(text);
}

/** Sends a GOAWAY, as a server does during a graceful shutdown. */
export function goAway(session: ServerHttp2Session): void {
  session.goaway(constants.NGHTTP2_NO_ERROR);
}

export interface SwallowingProxy {
  readonly url: string;
  /** Discards all bytes of open connections from now on, but keeps them open. */
  swallow(): void;
}

/** A load balancer that forwards bytes until it is set to discard them. */
export async function swallowingProxy(t: TestContext, port: number): Promise<SwallowingProxy> {
  const pairs = new Set<readonly [Socket, Socket]>();
  const proxy = createServer((downstream) => {
    const upstream = connect(port, '127.0.0.1');
    const pair = [downstream, upstream] as const;
    pairs.add(pair);
    for (const [from, to] of [pair, [upstream, downstream] as const]) {
      from.on('data', (chunk) => to.write(chunk));
      from.on('error', () => undefined);
      from.on('close', () => to.destroy());
    }
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  t.after(async () => {
    for (const socket of [...pairs].flat()) socket.destroy();
    await new Promise<void>((resolve) => proxy.close(() => resolve()));
  });
  return {
    url: `https://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    swallow() {
      for (const socket of [...pairs].flat()) socket.removeAllListeners('data').resume();
    },
  };
}
