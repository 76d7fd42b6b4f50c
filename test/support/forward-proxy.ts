import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { createConnection, createServer as createTcpServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { CertificateAuthority } from '../../src/util/x509.ts';

export interface ForwardProxyOptions {
  /** @default 'http' */
  readonly protocol?: 'http' | 'https' | 'socks5';
  /** Required credentials: `user:password`. */
  readonly user?: string;
  /** Authority of its certificate, for `https`. */
  readonly authority?: CertificateAuthority;
  /** Address to use for names that cannot be resolved. */
  readonly resolve?: (host: string) => string;
}

/** A local HTTP CONNECT or SOCKS5 (RFC 1928) proxy that rejects clients without the required credentials. */
export class ForwardProxy {
  /** Targets of the tunnels: `host:port`. */
  readonly tunnels: string[] = [];
  refused = 0;
  readonly #server: Server;
  readonly #options: ForwardProxyOptions;
  readonly #sockets = new Set<Duplex>();

  private constructor(server: Server, options: ForwardProxyOptions) {
    this.#server = server;
    this.#options = options;
  }

  static async start(options: ForwardProxyOptions = {}): Promise<ForwardProxy> {
    const { protocol = 'http' } = options;
    const server = await serverOf(protocol, options);
    const proxy = new ForwardProxy(server, options);
    server.on('connection', (socket: Socket) => proxy.#keep(socket));
    if (protocol === 'socks5') {
      server.on(
        'connection',
        (socket: Socket) => void proxy.#socks(socket).catch(() => socket.destroy()),
      );
    } else {
      server.on('connect', (request: IncomingMessage, client: Duplex) =>
        proxy.#connect(request, client),
      );
    }
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** URL of the proxy, with its credentials. */
  get url(): string {
    const { protocol = 'http', user } = this.#options;
    return `${protocol}://${user ? `${user}@` : ''}127.0.0.1:${this.port}`;
  }

  /** Closes all connections and accepts no more. */
  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #keep(socket: Duplex): void {
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => this.#sockets.delete(socket));
  }

  #connect({ url = '', headers }: IncomingMessage, client: Duplex): void {
    const { user } = this.#options;
    const expected = user && `Basic ${Buffer.from(decodeURIComponent(user)).toString('base64')}`;
    if (expected && headers['proxy-authorization'] !== expected) {
      this.refused++;
      client.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
      return;
    }
    const { hostname, port } = new URL(`tunnel://${url}`);
    this.#carry(client, hostname.replace(/^\[(.*)\]$/, '$1'), Number(port), () =>
      client.write('HTTP/1.1 200 Connection Established\r\n\r\n'),
    );
  }

  async #socks(client: Socket): Promise<void> {
    const { user } = this.#options;
    const [, methods = 0] = await read(client, 2);
    const offered = await read(client, methods);
    const method = user ? 2 : 0;
    if (!offered.includes(method)) {
      this.refused++;
      client.end(Buffer.from([5, 255]));
      return;
    }
    client.write(Buffer.from([5, method]));
    if (user) {
      const [, nameLength = 0] = await read(client, 2);
      const name = String(await read(client, nameLength));
      const [passwordLength = 0] = await read(client, 1);
      const given = `${name}:${String(await read(client, passwordLength))}`;
      const isRight = given === decodeURIComponent(user);
      if (!isRight) this.refused++;
      client.write(Buffer.from([1, isRight ? 0 : 1]));
      if (!isRight) return;
    }
    const [, , , kind = 0] = await read(client, 4);
    const host = await this.#socksHost(client, kind);
    const port = (await read(client, 2)).readUInt16BE();
    this.#carry(client, host, port, () =>
      client.write(Buffer.from([5, 0, 0, 1, 127, 0, 0, 1, 0, 1])),
    );
  }

  async #socksHost(client: Socket, kind: number): Promise<string> {
    if (kind === 1) return (await read(client, 4)).join('.');
    if (kind === 4)
      return (await read(client, 16)).toString('hex').replaceAll(/(.{4})(?=.)/g, '$1:');
    const [length = 0] = await read(client, 1);
    return String(await read(client, length));
  }

  #carry(client: Duplex, host: string, port: number, accept: () => void): void {
    this.tunnels.push(`${host}:${port}`);
    const { resolve = (name) => name } = this.#options;
    const upstream = createConnection(port, resolve(host), () => {
      accept();
      upstream.pipe(client).pipe(upstream);
    });
    this.#keep(upstream);
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => client.destroy());
  }
}

async function serverOf(
  protocol: 'http' | 'https' | 'socks5',
  { authority }: ForwardProxyOptions,
): Promise<Server> {
  if (protocol === 'http') return createServer();
  if (protocol === 'socks5') return createTcpServer();
  const issued = await authority?.issue({
    commonName: 'proxy',
    ipAddresses: ['127.0.0.1'],
    usages: 'server',
  });
  return createSecureServer({ cert: issued?.certificatePem, key: issued?.privateKeyPem });
}

async function read(socket: Socket, length: number): Promise<Buffer> {
  if (length === 0) return Buffer.alloc(0);
  for (;;) {
    const bytes = socket.read(length) as Buffer | null;
    if (bytes) return bytes;
    await once(socket, 'readable');
  }
}
