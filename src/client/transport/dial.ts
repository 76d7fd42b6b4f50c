import type { LookupFunction, Socket } from 'node:net';
import { connect as connectTcp, isIP, isIPv6 } from 'node:net';
import { callbackify } from 'node:util';
import type { ConnectionOptions, SecureVersion } from 'node:tls';
import { connect as connectTls, getCACertificates } from 'node:tls';
import type { buildConnector } from 'undici';
import type { Clock } from '../../util/clock.ts';
import { systemClock } from '../../util/clock.ts';
import { DialError, ProxyError } from './connection-error.ts';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:http';
import { socks5 } from './socks5.ts';
import type { Socks5User } from './socks5.ts';

/** Whom a TLS connection trusts, and what it presents. */
export interface TlsMaterial {
  /** PEM; absent: the authorities Node trusts. */
  readonly ca?: string;
  /** PEM of the client's certificate, and its chain. */
  readonly certificate?: string;
  /** PEM. */
  readonly key?: string;
}

/** Options of `Dial`. */
export interface DialOptions {
  readonly tls: TlsMaterial;
  /** Name to expect in the server's certificate, and to send as SNI, instead of the host's. */
  readonly serverName?: string | undefined;
  /**
   * Accept any certificate of the server.
   * @default false
   */
  readonly insecure?: boolean | undefined;
  /** `http://`, `https://` or `socks5://` proxy to the server; user and password may be in it. */
  readonly proxyUrl?: string | undefined;
  /**
   * What to speak over TLS, most wanted first; the server chooses.
   * @default ['http/1.1']
   */
  readonly protocols?: readonly string[] | undefined;
  /**
   * Asked for the addresses of names: of the server, or of the proxy.
   * @default the machine's resolver
   */
  readonly lookup?: LookupFunction | undefined;
  /**
   * Bound on the TCP connection, name resolution included, in milliseconds.
   * @default 30000
   */
  readonly dialTimeoutMs?: number | undefined;
  /**
   * Bound on the TLS handshake, in milliseconds.
   * @default 10000
   */
  readonly handshakeTimeoutMs?: number | undefined;
  /** @default the machine's clock */
  readonly clock?: Pick<Clock, 'after'> | undefined;
  /** Aborting gives the connection up while it is being opened. */
  readonly signal?: AbortSignal | undefined;
}

/** After how much silence TCP begins to probe its peer, in milliseconds. */
const TCP_KEEP_ALIVE_MS = 30_000;
const DIAL_TIMEOUT_MS = 30_000;
const HANDSHAKE_TIMEOUT_MS = 10_000;
const SOCKS_PORT = '1080';

/** TLS options every connection shares. */
function tlsOptions(options: Pick<DialOptions, 'tls' | 'insecure'>): {
  readonly minVersion: SecureVersion;
  readonly rejectUnauthorized: boolean;
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
} {
  const { ca, certificate, key } = options.tls;
  return {
    minVersion: 'TLSv1.2',
    // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED cannot switch it off.
    rejectUnauthorized: !options.insecure,
    ...(ca === undefined ? {} : { ca }),
    ...(certificate === undefined ? {} : { cert: certificate }),
    ...(key === undefined ? {} : { key }),
  };
}

/** An IPv6 address as sockets want it, from the form it has in URLs. */
export function withoutBrackets(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

/** The name a handshake asks for: an address is none (RFC 6066). */
function sniOf(host: string, serverName: string | undefined): string {
  return serverName ?? (isIP(host) ? '' : host);
}

/** Where a connection leads. */
export interface DialTarget {
  readonly protocol: string;
  /** As in URLs: IPv6 in brackets. */
  readonly hostname: string;
  readonly port: string;
}

/**
 * Opens a connection in bounded steps: TCP, through the proxy if there is one, and TLS. Whatever
 * fails here fails as a `DialError`: the request was not sent. Sessions are not resumed, so that a
 * rotated certificate is presented.
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

/** `dial`, as undici asks for connections. */
export function dialer(options: DialOptions): buildConnector.connector {
  const open = callbackify((target: DialTarget) => dial(target, options));
  return (target, callback) =>
    open(target, (error: Error | null, socket) =>
      error ? callback(error, null) : callback(null, socket),
    );
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
    ...(lookup === undefined ? {} : { lookup }),
  });
  return connected({ socket, event: 'connect', timeoutMs: dialTimeoutMs, clock, signal });
}

function handshake(
  { hostname }: DialTarget,
  tcp: Socket,
  { handshakeTimeoutMs = HANDSHAKE_TIMEOUT_MS, clock = systemClock, signal }: DialOptions,
  tls: ConnectionOptions,
): Promise<Socket> {
  const socket = connectTls({ ...tls, socket: tcp, host: withoutBrackets(hostname) });
  const timeoutMs = handshakeTimeoutMs;
  return connected({ socket, event: 'secureConnect', timeoutMs, clock, signal });
}

/**
 * A connection to `target` that `proxy` carries; what fails on the way is a `ProxyError`. Of the
 * proxy's own certificate judge those whom Node trusts and, as in Go, the authority of the cluster.
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
    const leadsTo = {
      host: withoutBrackets(target.hostname),
      port: Number(target.port) || (target.protocol === 'https:' ? 443 : 80),
    };
    await tunnel({ socket, proxy, ...leadsTo, timeoutMs: dialTimeoutMs, clock, signal });
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
  /** What shows that it succeeded. */
  readonly event: 'connect' | 'secureConnect';
  readonly timeoutMs: number;
  readonly clock: Pick<Clock, 'after'>;
  readonly signal: AbortSignal | undefined;
}

/** The socket once the event has come; rejects with why it did not, the socket destroyed. */
function connected({ socket, event, timeoutMs, clock, signal }: DialStep): Promise<Socket> {
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
      fail(systemError('ETIMEDOUT', `nothing within ${timeoutMs} ms`)),
    );
    socket.once(event, arrived);
    socket.once('error', fail);
    socket.once('close', closed);
    signal?.addEventListener('abort', aborted, { once: true });
    if (signal?.aborted) aborted();
  });
}

/** Late errors of a socket that was given up must not end the process. */
function destroySocket(socket: Socket): void {
  socket.on('error', () => undefined);
  socket.destroy();
}

/** Why `signal` gave a connection up. */
function abortReason(signal: AbortSignal | undefined): Error {
  const reason: unknown = signal?.reason;
  return reason instanceof Error ? reason : new Error('nobody waits for it any more');
}

/** An error as the operating system gives it. */
function systemError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

interface TunnelOptions {
  /** Connected to the proxy. */
  readonly socket: Socket;
  /** `http://`, `https://` or `socks5://`; user and password may be in it. */
  readonly proxy: URL;
  /** Where the tunnel leads: a name or an address, IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
  /** Bound on the proxy's answer, in milliseconds. */
  readonly timeoutMs: number;
  readonly clock: Pick<Clock, 'after'>;
  readonly signal: AbortSignal | undefined;
}

/** Makes the proxy carry the bytes of `socket` from now on; rejects with why it does not. */
async function tunnel(options: TunnelOptions): Promise<void> {
  const { socket, proxy, host, port, timeoutMs, clock, signal } = options;
  let givenUp: Error | undefined;
  const giveUp = (error: Error) => {
    givenUp ??= error;
    socket.destroy(error);
  };
  const expired = systemError('ETIMEDOUT', `nothing within ${timeoutMs} ms`);
  const cancelTimeout = clock.after(timeoutMs, () => giveUp(expired));
  const abort = () => giveUp(abortReason(signal));
  signal?.addEventListener('abort', abort, { once: true });
  try {
    if (signal?.aborted) abort();
    const user = userOf(proxy);
    await (isSocks(proxy) ? socks5(socket, { host, port }, user) : connect(options, user));
  } catch (error) {
    destroySocket(socket);
    throw givenUp ?? error;
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
  const asked = request({
    method: 'CONNECT',
    path: authority,
    headers: {
      host: authority,
      ...(pair && { 'proxy-authorization': `Basic ${pair}` }),
    },
    createConnection: () => socket,
  });
  const { statusCode } = await new Promise<IncomingMessage>((resolve, reject) => {
    asked.on('error', reject);
    asked.once('connect', resolve);
    asked.once('response', resolve);
    asked.end();
  });
  if (statusCode !== 200) throw new Error(`it answered ${statusCode} to CONNECT ${authority}`);
}
