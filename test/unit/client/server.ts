import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { ServerOptions } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { createCertificateAuthority } from '../../../src/util/x509.ts';
import type { ConfigMap } from '../../../src/api/builtin.ts';

/** A real server on a free port, closed at the end of the test. */
export interface TestServer {
  readonly url: string;
  readonly port: number;
  readonly server: Server;
}

export async function serve(t: TestContext, listener: RequestListener): Promise<TestServer> {
  return listen(t, createServer(listener), 'http');
}

/** A real server over TLS on a free port, with a certificate for `localhost` and 127.0.0.1 from a new CA. */
export async function serveTls(
  t: TestContext,
  listener: RequestListener,
  options: ServerOptions = {},
) {
  const authority = await createCertificateAuthority({ commonName: 'test-ca' });
  const certificate = await authority.issue({
    commonName: 'server',
    dnsNames: ['localhost'],
    ipAddresses: ['127.0.0.1'],
    usages: 'server',
  });
  const server = createSecureServer(
    {
      cert: certificate.certificatePem,
      key: certificate.privateKeyPem,
      ca: authority.certificatePem,
      ...options,
    },
    listener,
  );
  return { ...(await listen(t, server, 'https')), authority };
}

async function listen(t: TestContext, server: Server, scheme: string): Promise<TestServer> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  return { url: `${scheme}://127.0.0.1:${port}`, port, server };
}

export function sendJson(
  response: ServerResponse,
  body: unknown,
  status = 200,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

export function sendStatus(
  response: ServerResponse,
  code: number,
  reason: string,
  headers: Record<string, string> = {},
): void {
  const body = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', code, reason };
  sendJson(response, { ...body, message: `the server says ${reason}` }, code, headers);
}

export async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

export function configMap(name: string, resourceVersion = '1'): ConfigMap {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name,
      namespace: 'default',
      uid: `uid-${name}`,
      resourceVersion,
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
    data: { key: 'value' },
  };
}
