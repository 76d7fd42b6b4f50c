import type { LookupFunction, Socket } from 'node:net';
import { connect as connectTcp, isIP } from 'node:net';
import { callbackify } from 'node:util';
import type { ConnectionOptions, SecureVersion } from 'node:tls';
import { connect as connectTls, getCACertificates } from 'node:tls';
import type { buildConnector } from 'undici';
import type { Clock } from '../../util/clock.ts';
import { systemClock } from '../../util/clock.ts';
import { ProxyError } from './connection-error.ts';
import { connected } from './dial-step.ts';
import { isSocks, tunnel } from './tunnel.ts';

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
