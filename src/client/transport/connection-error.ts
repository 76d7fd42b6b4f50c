import { ApiError } from '../../api/api-error.ts';

/** A connection that was never had: nothing of the request has left this machine. */
export class DialError extends Error {
  override readonly name = 'DialError';
}

/** The same, because of the proxy between: it cannot be reached, or does not carry us. */
export class ProxyError extends DialError {
  /** @param proxy its user and password are shown to nobody */
  constructor(proxy: URL, cause: unknown) {
    super(`the proxy ${proxy.host}: ${wordsOf(cause)}`, { cause });
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
 * Nobody listens at the server's address: what a restart of the server looks like. The request was
 * never sent; where client-go waits and repeats instead of starting over, so should we.
 */
export function isConnectionRefused(error: unknown): boolean {
  return codesOf(error).includes('ECONNREFUSED');
}

/** No connection came about, so the request was not carried out. */
export function isNeverSent(error: unknown): boolean {
  return causesOf(error).some((cause) => cause instanceof DialError);
}

/** The connection was found dead: its peer said nothing for long and did not answer a ping. */
export function isDeadConnection(error: unknown): boolean {
  return causesOf(error).some((cause) => cause instanceof PingTimeoutError);
}

/** One side does not trust the other's certificate: somebody may have replaced an authority. */
export function isCertificateRefused(error: unknown): boolean {
  return codesOf(error).some((code) => UNTRUSTED_CODES.has(code) || REFUSED_BY_PEER.has(code));
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
  readonly happened: string;
  readonly nextStep: string;
}

function explain(error: unknown): Explanation {
  const codes = codesOf(error);
  const code = codes[0];
  const named = (text: string) => (code ? `${text} (${code})` : text);
  const proxyError = causesOf(error).find((cause) => cause instanceof ProxyError);
  if (proxyError) {
    return {
      happened: proxyError.message,
      nextStep: 'Check HTTPS_PROXY and NO_PROXY, or proxy-url in the kubeconfig.',
    };
  }
  if (codes.includes('ECONNREFUSED')) {
    return {
      happened: 'connection refused (ECONNREFUSED)',
      nextStep: 'Check that it runs and that the address and port are right.',
    };
  }
  if (codes.some((each) => UNTRUSTED_CODES.has(each))) {
    return {
      happened: named('x509: certificate signed by unknown authority'),
      nextStep: 'Check certificate-authority in the kubeconfig: it must be the CA of this server.',
    };
  }
  if (codes.some((each) => REFUSED_BY_PEER.has(each))) {
    return {
      happened: named("it did not accept this client's certificate"),
      nextStep: 'Check client-certificate and client-key in the kubeconfig.',
    };
  }
  switch (code) {
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return {
        happened: named('its host name cannot be resolved'),
        nextStep: 'Check the server address and the DNS of this machine.',
      };
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
    case 'EADDRNOTAVAIL':
      return {
        happened: named('no route to host'),
        nextStep: 'Check the server address, VPN and firewall.',
      };
    case 'ETIMEDOUT':
    case 'UND_ERR_CONNECT_TIMEOUT':
      return {
        happened: named('no connection within the time allowed'),
        nextStep: 'Check the server address, VPN and firewall.',
      };
    case 'UND_ERR_HEADERS_TIMEOUT':
      return {
        happened: named('it took the request and gave no answer'),
        nextStep: 'Check the health and load of the API server and of what stands before it.',
      };
    case 'ERR_PING_TIMEOUT':
      return {
        happened: named(`the connection is dead: ${wordsOf(error)}`),
        nextStep: 'Check the network, and what stands between this machine and the API server.',
      };
    case 'CERT_HAS_EXPIRED':
    case 'CERT_NOT_YET_VALID':
      return {
        happened: named('x509: certificate has expired or is not yet valid'),
        nextStep: "Check the server's certificate and the clocks of both machines.",
      };
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return {
        happened: named('x509: certificate is not valid for this host name'),
        nextStep: 'Use a name the certificate has, or set tls-server-name in the kubeconfig.',
      };
    case 'ERR_SSL_WRONG_VERSION_NUMBER':
    case 'ERR_SSL_PACKET_LENGTH_TOO_LONG':
    case 'EPROTO':
      return {
        happened: named('it does not speak TLS'),
        nextStep: 'Check the port, and whether the address should begin with http://.',
      };
    default:
      if (codes.some((each) => RESET_CODES.has(each))) {
        return {
          happened: named('the connection broke before the answer was complete'),
          nextStep: 'The request may have been carried out.',
        };
      }
      return {
        happened: wordsOf(error),
        nextStep: 'Check the server address and the network between.',
      };
  }
}

/** The error's own words, on one line. */
function wordsOf(error: unknown): string {
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
const MOST_CAUSES = 16;

/** The error, its causes, and the errors an AggregateError gathers (one per address tried). */
function causesOf(error: unknown): unknown[] {
  const found: unknown[] = [];
  const pending = [error];
  while (pending.length > 0 && found.length < MOST_CAUSES) {
    const next = pending.shift();
    if (next === undefined || next === null) continue;
    found.push(next);
    if (next instanceof AggregateError) for (const each of next.errors) pending.push(each);
    if (next instanceof Error) pending.push(next.cause);
  }
  return found;
}
