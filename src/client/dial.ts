import type { ClientRequest } from 'node:http';
import { request } from 'node:http';
import type { Socket } from 'node:net';
import { connect as connectTcp, isIP } from 'node:net';
import { callbackify } from 'node:util';
import type { ConnectionOptions, SecureVersion } from 'node:tls';
import { connect as connectTls } from 'node:tls';
import type { buildConnector } from 'undici';
import type { Clock } from '../util/clock.ts';
import { systemClock } from '../util/clock.ts';
import { DialError } from './connection-error.ts';

/** Whom a TLS connection trusts, and what it presents. */
export interface TlsMaterial {
  /** PEM; absent: the authorities Node trusts. */
  readonly ca?: string;
  /** PEM of the client's certificate, and its chain. */
  readonly certificate?: string;
  /** PEM. */
  readonly key?: string;
}

export interface DialOptions {
  readonly tls: TlsMaterial;
  /** Name to expect in the server's certificate, and to send as SNI, instead of the host's. */
  readonly serverName?: string | undefined;
  /**
   * Accept any certificate of the server.
   * @default false
   */
  readonly insecure?: boolean | undefined;
  /** `http://` or `https://` proxy that tunnels to the server; user and password may be in it. */
  readonly proxyUrl?: string | undefined;
  /**
   * What to speak over TLS, most wanted first; the server chooses.
   * @default ['http/1.1']
   */
  readonly protocols?: readonly string[] | undefined;
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
  { dialTimeoutMs = DIAL_TIMEOUT_MS, clock = systemClock, signal }: DialOptions,
): Promise<Socket> {
  const socket = connectTcp({
    host: withoutBrackets(hostname),
    port: Number(port) || (protocol === 'https:' ? 443 : 80),
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
  });
  return settled({ socket, event: 'connect', timeoutMs: dialTimeoutMs, clock, signal });
}

function handshake(
  { hostname }: DialTarget,
  tcp: Socket,
  { handshakeTimeoutMs = HANDSHAKE_TIMEOUT_MS, clock = systemClock, signal }: DialOptions,
  tls: ConnectionOptions,
): Promise<Socket> {
  const socket = connectTls({ ...tls, socket: tcp, host: withoutBrackets(hostname) });
  const timeoutMs = handshakeTimeoutMs;
  return settled({ socket, event: 'secureConnect', timeoutMs, clock, signal });
}

/** A connection to `target` that `proxy` carries. Of the proxy's own TLS Node's authorities judge. */
async function dialTunnel(proxy: URL, target: DialTarget, options: DialOptions): Promise<Socket> {
  const { dialTimeoutMs = DIAL_TIMEOUT_MS, clock = systemClock, signal } = options;
  const tcp = await dialTcp(proxy, options);
  const socket =
    proxy.protocol === 'https:'
      ? await handshake(proxy, tcp, options, {
          ...tlsOptions({ tls: {} }),
          servername: sniOf(withoutBrackets(proxy.hostname), undefined),
        })
      : tcp;
  const authority = `${target.hostname}:${target.port || (target.protocol === 'https:' ? 443 : 80)}`;
  const request = connectRequest(socket, proxy, authority);
  const tunnelled = new Promise<Socket>((resolve, reject) => {
    request.on('error', reject);
    request.once('response', ({ statusCode }) => reject(refusal(proxy, authority, statusCode)));
    request.once('connect', ({ statusCode }) => {
      if (statusCode === 200) resolve(socket);
      else reject(refusal(proxy, authority, statusCode));
    });
  });
  const expired = systemError('ETIMEDOUT', `nothing within ${dialTimeoutMs} ms`);
  const cancelTimeout = clock.after(dialTimeoutMs, () => request.destroy(expired));
  const abort = () => request.destroy(abandoned(signal));
  signal?.addEventListener('abort', abort, { once: true });
  request.end();
  try {
    return await tunnelled;
  } catch (cause) {
    discard(socket);
    throw new DialError(`the proxy's tunnel failed: ${wordsOf(cause)}`, { cause });
  } finally {
    cancelTimeout();
    signal?.removeEventListener('abort', abort);
  }
}

function connectRequest(socket: Socket, proxy: URL, authority: string): ClientRequest {
  const { username, password } = proxy;
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return request({
    method: 'CONNECT',
    path: authority,
    headers: {
      host: authority,
      ...(username === ''
        ? {}
        : { 'proxy-authorization': `Basic ${Buffer.from(credentials).toString('base64')}` }),
    },
    createConnection: () => socket,
  });
}

function refusal(proxy: URL, authority: string, status: number | undefined): Error {
  return new Error(`the proxy ${proxy.host} answered ${status} to CONNECT ${authority}`);
}

interface Awaited {
  readonly socket: Socket;
  readonly event: 'connect' | 'secureConnect';
  readonly timeoutMs: number;
  readonly clock: Pick<Clock, 'after'>;
  readonly signal: AbortSignal | undefined;
}

/** The socket once the event has come; rejects with why it did not, the socket destroyed. */
function settled({ socket, event, timeoutMs, clock, signal }: Awaited): Promise<Socket> {
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
      discard(socket);
      reject(new DialError(`${step} failed: ${cause.message}`, { cause }));
    };
    const arrived = () => {
      detach();
      resolve(socket);
    };
    const closed = () => fail(systemError('ECONNRESET', 'closed by the peer'));
    const aborted = () => fail(abandoned(signal));
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
function discard(socket: Socket): void {
  socket.on('error', () => undefined);
  socket.destroy();
}

function abandoned(signal: AbortSignal | undefined): Error {
  const reason: unknown = signal?.reason;
  return reason instanceof Error ? reason : new Error('nobody waits for it any more');
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function systemError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}
