import type { IncomingHttpHeaders } from 'node:http2';
import { isLoopback } from './bind-address.ts';

/** How clients reach a server. */
export interface ServedAt {
  readonly scheme: 'http' | 'https';
  /** Only this machine can reach it, and it does not ask who sends a request. */
  readonly isOpenLocally: boolean;
}

/** Values of `Sec-Fetch-Site` for a page of the server itself, and for an address typed by a person. */
const OWN_SITES: ReadonlySet<unknown> = new Set(['same-origin', 'none']);

/**
 * Returns why a request may come from a web page of somebody else, or undefined if it does not.
 *
 * A page in a browser on this machine can send requests to a server on a loopback address. It can
 * also read the answers if its own host name resolves to that address (DNS rebinding); only the Host
 * header tells such a request from others.
 */
export function foreignOrigin(
  headers: IncomingHttpHeaders,
  { scheme, isOpenLocally }: ServedAt,
): string | undefined {
  const host = headers.host ?? headers[':authority'] ?? '';
  if (isOpenLocally && !isLoopback(host)) {
    return 'The Host header must be localhost or a loopback address such as 127.0.0.1';
  }
  const { origin } = headers;
  if (origin !== undefined && origin.toLowerCase() !== `${scheme}://${host}`.toLowerCase()) {
    return 'The Origin header must be absent or name this server';
  }
  const site = headers['sec-fetch-site'];
  if (site !== undefined && !OWN_SITES.has(site)) {
    return 'The Sec-Fetch-Site header must be absent, same-origin or none';
  }
  return undefined;
}
