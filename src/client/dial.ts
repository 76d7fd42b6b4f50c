import type { Socket } from 'node:net';
import { connect as connectTcp, isIP } from 'node:net';
import type { SecureVersion } from 'node:tls';
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
}

/** After how much silence TCP begins to probe its peer, in milliseconds. */
export const TCP_KEEP_ALIVE_MS = 30_000;
export const DIAL_TIMEOUT_MS = 30_000;
const HANDSHAKE_TIMEOUT_MS = 10_000;

/** TLS options every connection shares, whoever opens it. */
export function tlsOptions(options: Pick<DialOptions, 'tls' | 'insecure'>): {
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
export function sniOf(host: string, serverName: string | undefined): string {
  return serverName ?? (isIP(host) ? '' : host);
}

/**
 * Opens connections in two bounded steps, TCP and TLS. Whatever fails here fails as a `DialError`:
 * the request was not sent. Sessions are not resumed, so that a rotated certificate is presented.
 */
export function dialer(options: DialOptions): buildConnector.connector {
  const {
    dialTimeoutMs = DIAL_TIMEOUT_MS,
    handshakeTimeoutMs = HANDSHAKE_TIMEOUT_MS,
    clock = systemClock,
  } = options;
  return ({ hostname, port, protocol }, callback) => {
    const secure = protocol === 'https:';
    const host = withoutBrackets(hostname);
    const tcp = connectTcp({
      host,
      port: Number(port) || (secure ? 443 : 80),
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
    });
    awaitSocket({ socket: tcp, event: 'connect', timeoutMs: dialTimeoutMs, clock }, (error) => {
      if (error) return callback(error, null);
      if (!secure) return callback(null, tcp);
      const tls = connectTls({
        ...tlsOptions(options),
        socket: tcp,
        host,
        servername: sniOf(host, options.serverName),
        ALPNProtocols: ['http/1.1'],
      });
      awaitSocket(
        { socket: tls, event: 'secureConnect', timeoutMs: handshakeTimeoutMs, clock },
        (error) => (error ? callback(error, null) : callback(null, tls)),
      );
    });
  };
}

interface Awaited {
  readonly socket: Socket;
  readonly event: 'connect' | 'secureConnect';
  readonly timeoutMs: number;
  readonly clock: Pick<Clock, 'after'>;
}

/** Calls `done` once: when the event comes, or with why it did not; then the socket is destroyed. */
function awaitSocket(
  { socket, event, timeoutMs, clock }: Awaited,
  done: (error?: DialError) => void,
): void {
  const step = event === 'connect' ? 'dial' : 'TLS handshake';
  const settle = (cause?: Error) => {
    cancelTimeout();
    socket.off(event, arrived);
    socket.off('error', settle);
    socket.off('close', closed);
    if (!cause) return done();
    // Late errors of a socket that was given up must not end the process.
    socket.on('error', () => undefined);
    socket.destroy();
    done(new DialError(`${step} failed: ${cause.message}`, { cause }));
  };
  const arrived = () => settle();
  const closed = () => settle(systemError('ECONNRESET', 'closed by the peer'));
  const cancelTimeout = clock.after(timeoutMs, () =>
    settle(systemError('ETIMEDOUT', `nothing within ${timeoutMs} ms`)),
  );
  socket.once(event, arrived);
  socket.once('error', settle);
  socket.once('close', closed);
}

function systemError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}
