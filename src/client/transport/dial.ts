import type { LookupFunction, Socket } from 'node:net';
import { connect as connectTcp, isIP, isIPv6 } from 'node:net';
import type { ConnectionOptions, SecureVersion } from 'node:tls';
import { connect as connectTls, getCACertificates } from 'node:tls';
import type { Clock } from '../../util/clock.ts';
import { systemClock } from '../../util/clock.ts';
import { serverTrust } from '../../util/server-trust.ts';
import type { ServerTrust } from '../../util/server-trust.ts';
import { messageOf } from '../../util/values.ts';
import { DialError, ProxyError } from './connection-error.ts';
import type { IncomingMessage } from 'node:http';
import { socks5 } from './socks5.ts';
import type { Socks5User } from './socks5.ts';
import { nodeHttp } from '../../util/node-http.ts';

/** Certificates of a TLS connection. */
export interface TlsMaterial {
  /** PEM of the trusted CAs; absent: the CAs that Node trusts. */
  readonly ca?: string;
  /** PEM of the client certificate and its chain. */
  readonly certificate?: string;
  /** PEM of the private key. */
  readonly key?: string;
}

/** Options of `dial`. */
export interface DialOptions {
  readonly tls: TlsMaterial;
  /**
   * Expected name in the server's certificate, also sent as SNI.
   * @default the host name
   */
  readonly serverName?: string | undefined;
  /**
   * Disables the verification of the server's certificate.
   * @default false
   */
  readonly insecure?: boolean | undefined;
  /** URL of an `http://`, `https://` or `socks5://` proxy; it can contain user and password. */
  readonly proxyUrl?: string | undefined;
  /**
   * Protocols for ALPN, preferred first; the server chooses.
   * @default ['http/1.1']
   */
  readonly protocols?: readonly string[] | undefined;
  /**
   * Resolves the host name of the server or the proxy.
   * @default the machine's resolver
   */
  readonly lookup?: LookupFunction | undefined;
  /**
   * Timeout of the TCP connection, including name resolution, in milliseconds.
   * @default 30000
   */
  readonly dialTimeoutMs?: number | undefined;
  /**
   * Timeout of the TLS handshake, in milliseconds.
   * @default 10000
   */
  readonly handshakeTimeoutMs?: number | undefined;
  /** @default the machine's clock */
  readonly clock?: Pick<Clock, 'after'> | undefined;
  /** Aborts the connection while it is being opened. */
  readonly signal?: AbortSignal | undefined;
}

/** Idle time before the first TCP keep-alive probe, in milliseconds. */
const TCP_KEEP_ALIVE_MS = 30_000;
const DIAL_TIMEOUT_MS = 30_000;
const HANDSHAKE_TIMEOUT_MS = 10_000;
const SOCKS_PORT = '1080';

/** Returns the TLS options that all connections share. */
function tlsOptions(options: Pick<DialOptions, 'tls' | 'insecure'>): ServerTrust & {
  readonly minVersion: SecureVersion;
  readonly rejectUnauthorized: boolean;
  readonly cert: string | undefined;
  readonly key: string | undefined;
} {
  const { ca, certificate, key } = options.tls;
  return {
    minVersion: 'TLSv1.2',
    // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED cannot switch it off.
    rejectUnauthorized: !options.insecure,
    ...serverTrust(ca),
    cert: certificate,
    key,
  };
}

/** Removes the brackets that IPv6 addresses have in URLs. */
export function withoutBrackets(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

/** Returns the name for SNI, which must not be an IP address (RFC 6066). */
function sniOf(host: string, serverName: string | undefined): string {
  return serverName ?? (isIP(host) ? '' : host);
}

/** The destination of a connection. */
export interface DialTarget {
  readonly protocol: string;
  /** Host name or address as in URLs: IPv6 in brackets. */
  readonly hostname: string;
  readonly port: string;
}

/**
 * Opens a connection in steps with a timeout each: TCP, the tunnel through the proxy if there is one, and TLS.
 * Rejects with a `DialError`; then the request was not sent. TLS sessions are not resumed, so that a rotated
 * client certificate is used.
 */
export async function dial(target: DialTarget, options: DialOptions): Promise<Socket> {
  const { proxyUrl } = options;
  const secure = target.protocol === 'https:';
  const socket =
    proxyUrl === undefined
      ? await dialTcp(target, options)
      : await dialTunnel(new URL(proxyUrl), target, options);
  if (!secure) return socket;
  return handshake(target, socket, options, {
    ...tlsOptions(options),
    servername: sniOf(withoutBrackets(target.hostname), options.serverName),
    ALPNProtocols: [...(options.protocols ?? ['http/1.1'])],
  });
}

function dialTcp(
  { protocol, hostname, port }: DialTarget,
  { lookup, dialTimeoutMs = DIAL_TIMEOUT_MS, clock = systemClock, signal }: DialOptions,
): Promise<Socket> {
  const socket = connectTcp({
    host: withoutBrackets(hostname),
    port: Number(port) || (protocol === 'https:' ? 443 : 80),
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
    lookup,
  });
  return waitForSocket({ socket, event: 'connect', timeoutMs: dialTimeoutMs, clock, signal });
}

function handshake(
  { hostname }: DialTarget,
  tcp: Socket,
  { handshakeTimeoutMs = HANDSHAKE_TIMEOUT_MS, clock = systemClock, signal }: DialOptions,
  tls: ConnectionOptions,
): Promise<Socket> {
  let socket: Socket;
  try {
    socket = connectTls({ ...tls, socket: tcp, host: withoutBrackets(hostname) });
  } catch (cause) {
    // For example, the key does not belong to the certificate.
    destroySocket(tcp);
    return Promise.reject(new DialError(`TLS handshake failed: ${messageOf(cause)}`, { cause }));
  }
  const timeoutMs = handshakeTimeoutMs;
  return waitForSocket({ socket, event: 'secureConnect', timeoutMs, clock, signal });
}

/**
 * Opens a connection to `target` through `proxy`; rejects with a `ProxyError`. The proxy's certificate must be
 * signed by a CA that Node trusts or, as in Go, by the CA of the cluster.
 */
async function dialTunnel(proxy: URL, target: DialTarget, options: DialOptions): Promise<Socket> {
  const { tls, dialTimeoutMs = DIAL_TIMEOUT_MS, clock = systemClock, signal } = options;
  const port = proxy.port || (isSocks(proxy) ? SOCKS_PORT : '');
  try {
    const tcp = await dialTcp(
      { protocol: proxy.protocol, hostname: proxy.hostname, port },
      options,
    );
    const socket =
      proxy.protocol === 'https:'
        ? await handshake(proxy, tcp, options, {
            ...tlsOptions({ tls: tls.ca === undefined ? {} : { ca: withDefaults(tls.ca) } }),
            servername: sniOf(withoutBrackets(proxy.hostname), undefined),
          })
        : tcp;
    const destination = {
      host: withoutBrackets(target.hostname),
      port: Number(target.port) || (target.protocol === 'https:' ? 443 : 80),
    };
    await tunnel({ socket, proxy, ...destination, timeoutMs: dialTimeoutMs, clock, signal });
    return socket;
  } catch (error) {
    throw new ProxyError(proxy, error);
  }
}

function withDefaults(ca: string): string {
  return [...getCACertificates('default'), ca].join('\n');
}

interface DialStep {
  readonly socket: Socket;
  /** Event that marks success. */
  readonly event: 'connect' | 'secureConnect';
  readonly timeoutMs: number;
  readonly clock: Pick<Clock, 'after'>;
  readonly signal: AbortSignal | undefined;
}

/** Resolves with the socket when its event occurs. Otherwise destroys the socket and rejects with a `DialError`. */
function waitForSocket({ socket, event, timeoutMs, clock, signal }: DialStep): Promise<Socket> {
  const step = event === 'connect' ? 'dial' : 'TLS handshake';
  return new Promise((resolve, reject) => {
    const detach = () => {
      cancelTimeout();
      socket.off(event, arrived);
      socket.off('error', fail);
      socket.off('close', closed);
      signal?.removeEventListener('abort', aborted);
    };
    const fail = (cause: Error) => {
      detach();
      destroySocket(socket);
      reject(new DialError(`${step} failed: ${cause.message}`, { cause }));
    };
    const arrived = () => {
      detach();
      resolve(socket);
    };
    const closed = () => fail(systemError('ECONNRESET', 'closed by the peer'));
    const aborted = () => fail(abortReason(signal));
    const cancelTimeout = clock.after(timeoutMs, () =>
      fail(systemError('ETIMEDOUT', `no response within ${timeoutMs} ms`)),
    );
    socket.once(event, arrived);
    socket.once('error', fail);
    socket.once('close', closed);
    signal?.addEventListener('abort', aborted, { once: true });
    if (signal?.aborted) aborted();
  });
}

/** Destroys a socket. Later errors of the socket are ignored, because they would end the process. */
function destroySocket(socket: Socket): void {
  socket.on('error', () => undefined);
  socket.destroy();
}

/** Returns the reason of an aborted signal as an error. */
function abortReason(signal: AbortSignal | undefined): Error {
  const reason: unknown = signal?.reason;
  return reason instanceof Error ? reason : new Error('the request was aborted');
}

/** Creates an error with a code, like those of the operating system. */
export function systemError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

interface TunnelOptions {
  /** A socket that is connected to the proxy. */
  readonly socket: Socket;
  /** URL of the proxy; it can contain user and password. */
  readonly proxy: URL;
  /** Destination: a name or an address, IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
  /** Timeout for the proxy's response, in milliseconds. */
  readonly timeoutMs: number;
  readonly clock: Pick<Clock, 'after'>;
  readonly signal: AbortSignal | undefined;
}

/** Opens a tunnel through the proxy, so that `socket` is connected to the destination. */
async function tunnel(options: TunnelOptions): Promise<void> {
  const { socket, proxy, host, port, timeoutMs, clock, signal } = options;
  let failure: Error | undefined;
  const fail = (error: Error) => {
    failure ??= error;
    socket.destroy(error);
  };
  const expired = systemError('ETIMEDOUT', `no response within ${timeoutMs} ms`);
  const cancelTimeout = clock.after(timeoutMs, () => fail(expired));
  const abort = () => fail(abortReason(signal));
  signal?.addEventListener('abort', abort, { once: true });
  try {
    if (signal?.aborted) abort();
    const user = userOf(proxy);
    await (isSocks(proxy) ? socks5(socket, { host, port }, user) : connect(options, user));
  } catch (error) {
    destroySocket(socket);
    throw failure ?? error;
  } finally {
    cancelTimeout();
    signal?.removeEventListener('abort', abort);
  }
}

function isSocks({ protocol }: URL): boolean {
  return protocol === 'socks5:' || protocol === 'socks5h:';
}

function userOf({ username, password }: URL): Socks5User | undefined {
  if (username === '') return undefined;
  return { name: decodeURIComponent(username), password: decodeURIComponent(password) };
}

async function connect(
  { socket, host, port }: TunnelOptions,
  user: Socks5User | undefined,
): Promise<void> {
  const authority = `${isIPv6(host) ? `[${host}]` : host}:${port}`;
  const pair = user && Buffer.from(`${user.name}:${user.password}`).toString('base64');
  const connectRequest = nodeHttp().request({
    method: 'CONNECT',
    path: authority,
    headers: {
      host: authority,
      ...(pair && { 'proxy-authorization': `Basic ${pair}` }),
    },
    createConnection: () => socket,
  });
  const { statusCode } = await new Promise<IncomingMessage>((resolve, reject) => {
    connectRequest.on('error', reject);
    connectRequest.once('connect', resolve);
    connectRequest.once('response', resolve);
    connectRequest.end();
  });
  if (statusCode !== 200)
    throw new Error(`it responded with ${statusCode} to CONNECT ${authority}`);
}
