import { ApiError } from '../../api/api-error.ts';

/** A connection that was never had: nothing of the request has left this machine. */
export class DialError extends Error {
  override readonly name = 'DialError';
}

/** The same, because of the proxy between: it cannot be reached, or does not carry us. */
export class ProxyError extends DialError {
  /** @param proxy its user and password are shown to nobody */
  constructor(proxy: URL, cause: unknown) {
    super(`the proxy ${proxy.host}: ${rootMessageOf(cause)}`, { cause });
  }
}

/** The peer did not answer: the connection is dead, whatever the operating system thinks of it. */
export class PingTimeoutError extends Error {
  override readonly name = 'PingTimeoutError';
  readonly code = 'ERR_PING_TIMEOUT';
}

/**
 * The `ApiError` for an exchange that failed below HTTP, whatever threw. Its message says what
 * happened, to which server, and what to look at; `cause` is what was thrown. An `ApiError` is
 * returned as it is.
 */
export function unreachable(error: unknown, server: string): ApiError {
  if (error instanceof ApiError) return error;
  const { happened, nextStep } = explain(error);
  const message = `Cannot reach the API server ${server}: ${happened}. ${nextStep}`;
  return new ApiError({ kind: 'unreachable', message, cause: error });
}

/**
 * Returns why a call failed, in a few constant words: "connection refused", "x509: certificate signed
 * by unknown authority", "Unauthorized". They contain no address, name or server text, so they may be
 * shown to readers who must not learn where the server is.
 */
export function failureReason(error: unknown): string {
  if (!(error instanceof ApiError)) return error instanceof Error ? error.name : typeof error;
  if (error.kind === 'unauthorized' && error.code === 401) return 'Unauthorized';
  return (error.kind === 'unreachable' ? explain(error).reason : undefined) ?? error.kind;
}

/**
 * Nobody listens at the server's address: what a restart of the server looks like. The request was
 * never sent; where client-go waits and repeats instead of starting over, so should we.
 */
export function isConnectionRefused(error: unknown): boolean {
  return codesOf(error).includes('ECONNREFUSED');
}

/** No connection came about, so the request was not carried out. */
export function isNeverSent(error: unknown): boolean {
  return (
    causesOf(error).some((cause) => cause instanceof DialError) ||
    // The pool was retired before it took the request.
    codesOf(error).includes('UND_ERR_CLOSED')
  );
}

/** The connection was found dead: its peer said nothing for long and did not answer a ping. */
export function isDeadConnection(error: unknown): boolean {
  return causesOf(error).some((cause) => cause instanceof PingTimeoutError);
}

/**
 * Reports whether one side refused the other's certificate. The request was not carried out. The
 * certificates on disk may have been replaced since they were read.
 */
export function isCertificateRefused(error: unknown): boolean {
  return codesOf(error).some(
    (code) =>
      UNTRUSTED_CODES.has(code) || INVALID_CERTIFICATE.has(code) || REFUSED_BY_PEER.has(code),
  );
}

/** The connection broke after the request was, or may have been, sent. */
export function isConnectionReset(error: unknown): boolean {
  return !isNeverSent(error) && codesOf(error).some((code) => RESET_CODES.has(code));
}

const RESET_CODES: ReadonlySet<string> = new Set([
  'ECONNRESET',
  'EPIPE',
  'UND_ERR_SOCKET',
  // The parser's words for a body that ended before its declared end.
  'HPE_INVALID_EOF_STATE',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
  'ERR_PING_TIMEOUT',
  'ERR_HTTP2_STREAM_ERROR',
  'ERR_HTTP2_SESSION_ERROR',
  'ERR_HTTP2_STREAM_CANCEL',
  'ERR_HTTP2_GOAWAY_SESSION',
  'ERR_HTTP2_INVALID_SESSION',
]);

const UNTRUSTED_CODES: ReadonlySet<string> = new Set([
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  // By an authority that has the same name.
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
  'INVALID_CA',
]);

/** The authority may be the right one; the server's certificate, or the authority's own, is not valid. */
const INVALID_CERTIFICATE: ReadonlySet<string> = new Set([
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'ERR_TLS_CERT_ALTNAME_INVALID',
]);

/** What a server says of a client's certificate. */
const REFUSED_BY_PEER: ReadonlySet<string> = new Set([
  'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED',
  'ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE',
  'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA',
  'ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE',
  'ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED',
]);

interface Explanation {
  /** What happened, in constant words; absent if there is no name for it. */
  readonly reason?: string;
  readonly happened: string;
  readonly nextStep: string;
}

function explain(error: unknown): Explanation {
  const codes = codesOf(error);
  const code = codes[0];
  const known = (reason: string, nextStep: string): Explanation => ({
    reason,
    happened: code ? `${reason} (${code})` : reason,
    nextStep,
  });
  const proxyError = causesOf(error).find((cause) => cause instanceof ProxyError);
  if (proxyError) {
    return {
      reason: 'proxy failure',
      happened: proxyError.message,
      nextStep: 'Check HTTPS_PROXY and NO_PROXY, or proxy-url in the kubeconfig.',
    };
  }
  if (codes.includes('ECONNREFUSED')) {
    return {
      reason: 'connection refused',
      happened: 'connection refused (ECONNREFUSED)',
      nextStep: 'Check that it runs and that the address and port are right.',
    };
  }
  if (codes.some((each) => UNTRUSTED_CODES.has(each))) {
    return known(
      'x509: certificate signed by unknown authority',
      'Check certificate-authority in the kubeconfig: it must be the CA of this server.',
    );
  }
  if (codes.some((each) => REFUSED_BY_PEER.has(each))) {
    return known(
      "it did not accept this client's certificate",
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
    case 'UND_ERR_CONNECT_TIMEOUT':
      return known(
        'no connection within the time allowed',
        'Check the server address, VPN and firewall.',
      );
    case 'UND_ERR_HEADERS_TIMEOUT':
      return known(
        'it took the request and gave no answer',
        'Check the health and load of the API server and of what stands before it.',
      );
    case 'ERR_PING_TIMEOUT':
      return {
        ...known(
          'the connection is dead',
          'Check the network, and what stands between this machine and the API server.',
        ),
        happened: `the connection is dead: ${rootMessageOf(error)} (${code})`,
      };
    case 'CERT_HAS_EXPIRED':
    case 'CERT_NOT_YET_VALID':
      return known(
        'x509: certificate has expired or is not yet valid',
        "Check the server's certificate and the clocks of both machines.",
      );
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return known(
        'x509: certificate is not valid for this host name',
        'Use a name the certificate has, or set tls-server-name in the kubeconfig.',
      );
    case 'ERR_SSL_WRONG_VERSION_NUMBER':
    case 'ERR_SSL_PACKET_LENGTH_TOO_LONG':
    case 'EPROTO':
      return known(
        'it does not speak TLS',
        'Check the port, and whether the address should begin with http://.',
      );
    default:
      if (codes.some((each) => RESET_CODES.has(each))) {
        return known(
          'the connection broke before the answer was complete',
          'The request may have been carried out.',
        );
      }
      return {
        happened: rootMessageOf(error),
        nextStep: 'Check the server address and the network between.',
      };
  }
}

/** The error's own words, on one line. */
function rootMessageOf(error: unknown): string {
  const cause = causesOf(error).at(-1);
  const words = cause instanceof Error ? cause.message || cause.name : String(cause);
  return words.replaceAll(/\s+/g, ' ').slice(0, 200);
}

/** Codes of the error and its causes, outermost first. */
function codesOf(error: unknown): string[] {
  return causesOf(error).flatMap((cause) =>
    cause instanceof Error && 'code' in cause && typeof cause.code === 'string' ? [cause.code] : [],
  );
}

/** How many causes of causes are looked at: chains are short, and a cycle must end. */
const MAX_CAUSES = 16;

/** The error, its causes, and the errors an AggregateError gathers (one per address tried). */
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
