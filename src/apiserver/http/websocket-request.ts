import { textFromBase64 } from '../../util/bytes.ts';

/**
 * How the body of a response is divided into WebSocket messages.
 *
 * - `lines`: each line of a watch is a text message. A chunk of the body has whole lines.
 * - `frames`: each protobuf event of a watch is a binary message, without its length.
 * - `bytes`: each chunk of a log is a message, in the encoding of the subprotocol.
 */
export type MessageFormat = 'lines' | 'frames' | 'bytes';

export type Headers = Readonly<Record<string, string>>;

export const BEARER_PROTOCOL: string = 'base64url.bearer.authorization.k8s.io.';

/** True if the client asks for a WebSocket. */
export function isWebSocketRequest(headers: {
  readonly upgrade?: string | undefined;
  readonly connection?: string | undefined;
}): boolean {
  return (
    headers.upgrade?.toLowerCase() === 'websocket' &&
    (headers.connection ?? '').toLowerCase().includes('upgrade')
  );
}

/**
 * Returns the bearer token that a browser sends as a subprotocol, since it cannot set headers. Undefined if
 * there is none, or if it is not well-formed: it then also needs another subprotocol for the response.
 */
export function protocolToken(headers: Headers): string | undefined {
  if (!isWebSocketRequest(headers)) return undefined;
  const protocols = protocolsIn(headers);
  const tokens = protocols.filter((protocol) => protocol.startsWith(BEARER_PROTOCOL));
  const [token] = tokens;
  if (token === undefined || tokens.length > 1 || tokens.length === protocols.length) {
    return undefined;
  }
  return textFromBase64(token.slice(BEARER_PROTOCOL.length));
}

export function protocolsIn(headers: Headers): string[] {
  const protocols = headers['sec-websocket-protocol']?.trim() ?? '';
  return protocols === '' ? [] : protocols.split(',').map((protocol) => protocol.trim());
}
