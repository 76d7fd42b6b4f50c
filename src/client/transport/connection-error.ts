import { ApiError } from '../../api/api-error.ts';
import { REJECTED_CERTIFICATES } from '../../util/certificate-errors.ts';

/** A connection could not be opened, so the request was not sent. */
export class DialError extends Error {
  override readonly name = 'DialError';
}

/** A connection could not be opened because the proxy failed or rejected it. */
export class ProxyError extends DialError {
  /** @param proxy URL of the proxy; its user and password do not appear in the message */
  constructor(proxy: URL, cause: unknown) {
    super(`the proxy ${proxy.host}: ${rootMessageOf(cause)}`, { cause });
  }
}

/** The server did not respond to a ping, so the connection is dead. */
export class PingTimeoutError extends Error {
  override readonly name = 'PingTimeoutError';
  readonly code = 'ERR_PING_TIMEOUT';
}

/** A request that failed below HTTP. */
export class UnreachableError extends ApiError {
  /** URL of the server, without credentials and query. */
  readonly server: string;
  /** What to do, as a sentence. */
  readonly nextStep: string;

  constructor(cause: unknown, server: string) {
    const { summary, nextStep } = explain(cause);
    const message = `Cannot reach the API server ${server}: ${summary}. ${nextStep}`;
    super({ kind: 'unreachable', message, cause });
    this.server = server;
    this.nextStep = nextStep;
  }
}

/**
 * Returns the {@link ApiError} for a request that failed below HTTP. The message contains the server, the reason and
 * the next step; `cause` is the original error. Returns an `ApiError` unchanged.
 */
export function unreachable(error: unknown, server: string): ApiError {
  return error instanceof ApiError ? error : new UnreachableError(error, server);
}

/**
 * Returns the reason of a failed call as a constant text: "connection refused", "x509: certificate signed by
 * unknown authority", "Unauthorized". It contains no address, name or server text, so it does not reveal where
 * the server is.
 */
export function failureReason(error: unknown): string {
  if (!(error instanceof ApiError)) return error instanceof Error ? error.name : typeof error;
  if (error.kind === 'unauthorized' && error.code === 401) return 'Unauthorized';
  return (error.kind === 'unreachable' ? explain(error).reason : undefined) ?? error.kind;
}

/**
 * Reports whether nothing listens at the server's address, as during a restart of the server. The request was
 * not sent. Like client-go's reflector, callers retry the watch in this case instead of listing again.
 */
export function isConnectionRefused(error: unknown): boolean {
  return codesOf(error).includes('ECONNREFUSED');
}

/** Reports whether no connection was available, so that the request was not sent. */
export function isNeverSent(error: unknown): boolean {
  return causesOf(error).some((cause) => cause instanceof DialError);
}

/** Reports whether the health check of the connection failed. */
export function isDeadConnection(error: unknown): boolean {
  return causesOf(error).some((cause) => cause instanceof PingTimeoutError);
}

/**
 * Reports whether one side rejected the other's certificate. The request was not processed. The certificate
 * files may have been replaced since they were read.
 */
export function isCertificateRejected(error: unknown): boolean {
  return codesOf(error).some(
    (code) =>
      REJECTED_CERTIFICATES.has(code) || code === WRONG_NAME || REJECTED_BY_SERVER.has(code),
  );
}

/** Reports whether the connection broke after the request was, or may have been, sent. */
export function isConnectionReset(error: unknown): boolean {
  return !isNeverSent(error) && isCut(error);
}

function isCut(error: unknown): boolean {
  return codesOf(error).some((code) => RESET_CODES.has(code));
}

const RESET_CODES: ReadonlySet<string> = new Set([
  'ECONNRESET',
  'EPIPE',
  'ERR_PING_TIMEOUT',
  'ERR_HTTP2_STREAM_ERROR',
  'ERR_HTTP2_SESSION_ERROR',
  'ERR_HTTP2_STREAM_CANCEL',
  'ERR_HTTP2_GOAWAY_SESSION',
  'ERR_HTTP2_INVALID_SESSION',
]);

/** Code of a certificate that is not valid for the name of the server. */
const WRONG_NAME = 'ERR_TLS_CERT_ALTNAME_INVALID';

/** Codes of a client certificate that the server rejected. */
const REJECTED_BY_SERVER: ReadonlySet<string> = new Set([
  'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED',
  'ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE',
  'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA',
  'ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE',
  'ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED',
]);

interface Explanation {
  /** Constant text for `failureReason`; absent for unknown errors. */
  readonly reason?: string;
  readonly summary: string;
  readonly nextStep: string;
}

function explain(error: unknown): Explanation {
  const codes = codesOf(error);
  const code = codes[0];
  const known = (reason: string, nextStep: string): Explanation => ({
    reason,
    summary: code ? `${reason} (${code})` : reason,
    nextStep,
  });
  const proxyError = causesOf(error).find((cause) => cause instanceof ProxyError);
  if (proxyError) {
    return {
      reason: 'proxy failure',
      summary: proxyError.message,
      nextStep: 'Check HTTPS_PROXY and NO_PROXY, or proxy-url in the kubeconfig.',
    };
  }
  if (codes.includes('ECONNREFUSED')) {
    return {
      reason: 'connection refused',
      summary: 'connection refused (ECONNREFUSED)',
      nextStep: 'Check that the server runs, and check its address and port.',
    };
  }
  const [rejected] = codes.flatMap((each) => REJECTED_CERTIFICATES.get(each) ?? []);
  if (rejected !== undefined) {
    const isUntrusted = rejected.endsWith('unknown authority');
    return known(
      rejected,
      isUntrusted
        ? 'Set certificate-authority in the kubeconfig to the CA of this server.'
        : "Check the server's certificate and the clocks of both machines.",
    );
  }
  if (codes.some((each) => REJECTED_BY_SERVER.has(each))) {
    return known(
      "it rejected this client's certificate",
      'Check client-certificate and client-key in the kubeconfig.',
    );
  }
  switch (code) {
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return known(
        'its host name cannot be resolved',
        'Check the server address and the DNS of this machine.',
      );
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
    case 'EADDRNOTAVAIL':
      return known('no route to host', 'Check the server address, VPN and firewall.');
    case 'ETIMEDOUT':
      return known(
        'no connection within the timeout',
        'Check the server address, VPN and firewall.',
      );
    case 'ERR_RESPONSE_TIMEOUT':
      return known(
        'it accepted the request but sent no response',
        'Check the health and load of the API server and of proxies and load balancers in front of it.',
      );
    case 'ERR_PING_TIMEOUT':
      return {
        ...known(
          'the connection is dead',
          'Check the network, proxies and load balancers between this machine and the API server.',
        ),
        summary: `the connection is dead: ${rootMessageOf(error)} (${code})`,
      };
    case WRONG_NAME:
      return known(
        'x509: certificate is not valid for this host name',
        'Use a name that the certificate contains, or set tls-server-name in the kubeconfig.',
      );
    case 'ERR_SSL_WRONG_VERSION_NUMBER':
    case 'ERR_SSL_PACKET_LENGTH_TOO_LONG':
    case 'EPROTO':
      return known(
        'it does not use TLS',
        'Check the port, and whether the address should start with http://.',
      );
    default:
      if (isCut(error)) {
        return known(
          'the connection broke before the response was complete',
          'The server may have processed the request.',
        );
      }
      return {
        summary: rootMessageOf(error),
        nextStep: 'Check the server address and the network between.',
      };
  }
}

/** Returns the message of the innermost cause, on one line. */
function rootMessageOf(error: unknown): string {
  const cause = causesOf(error).at(-1);
  const text = cause instanceof Error ? cause.message || cause.name : String(cause);
  return text.replaceAll(/\s+/g, ' ').slice(0, 200);
}

/** Returns the codes of the error and its causes, outermost first. */
function codesOf(error: unknown): string[] {
  return causesOf(error).flatMap((cause) =>
    cause instanceof Error && 'code' in cause && typeof cause.code === 'string' ? [cause.code] : [],
  );
}

/** Maximum number of causes; it ends cycles. */
const MAX_CAUSES = 16;

/** Returns the error, its causes, and the errors of an AggregateError (one for each address tried). */
function causesOf(error: unknown): unknown[] {
  const found: unknown[] = [];
  const pending = [error];
  while (pending.length > 0 && found.length < MAX_CAUSES) {
    const next = pending.shift();
    if (next === undefined || next === null) continue;
    found.push(next);
    if (next instanceof AggregateError) for (const each of next.errors) pending.push(each);
    if (next instanceof Error) pending.push(next.cause);
  }
  return found;
}
