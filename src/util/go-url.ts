import { isIPv6 } from 'node:net';
import { goQuote } from './go-quote.ts';

/** The parts of a URL as Go's `net/url` reads it. */
export interface GoUrl {
  /** In lower case. */
  readonly scheme: string;
  /** User and password; undefined without any. */
  readonly user: string | undefined;
  /** With the port, if the text has one. */
  readonly host: string;
  /** As in the text; an escape in it is valid. */
  readonly path: string;
  readonly query: string;
  readonly fragment: string;
}

export interface GoUrlOptions {
  /**
   * Whether the text must be an absolute URL or an absolute path, as for `url.ParseRequestURI`.
   * @default false
   */
  readonly isRequest?: boolean;
}

/** @throws {TypeError} with Go's text if Go does not parse the URL */
export function parseGoUrl(text: string, { isRequest = false }: GoUrlOptions = {}): GoUrl {
  const [whole, fragment] = isRequest ? [text, ''] : cut(text, '#');
  const fail = (reason: string): never => {
    throw new TypeError(`parse ${goQuote(whole)}: ${reason}`);
  };
  if (/[^ -~\u0080-\u{10FFFF}]/u.test(whole)) fail('net/url: invalid control character in URL');
  if (whole === '' && isRequest) fail('empty url');
  if (whole.startsWith(':')) fail('missing protocol scheme');
  const scheme = /^([a-z][a-z\d+.-]*):/i.exec(whole)?.[1]?.toLowerCase() ?? '';
  const [rest, query] = cut(scheme === '' ? whole : whole.slice(scheme.length + 1), '?');
  if (!rest.startsWith('/')) {
    // Rootless paths are opaque.
    if (scheme !== '') return { scheme, user: undefined, host: '', path: '', query, fragment };
    if (isRequest) fail('invalid URI for request');
    if (/^[^/]*:/.test(rest)) fail('first path segment in URL cannot contain colon');
  }
  const hasAuthority =
    rest.startsWith('//') && (scheme !== '' || (!isRequest && !rest.startsWith('///')));
  const [, authority = '', path = rest] = hasAuthority
    ? (/^\/\/([^/]*)(.*)$/s.exec(rest) ?? [])
    : [];
  const at = authority.lastIndexOf('@');
  const host = authority.slice(at + 1);
  const problem = hostProblem(host);
  if (problem !== undefined) fail(problem);
  const user = at < 0 ? undefined : authority.slice(0, at);
  if (user !== undefined && !/^[\w\-.:~!$&'()*+,;=%@]*$/.test(user)) {
    fail('net/url: invalid userinfo');
  }
  const escape = path.search(/%(?![\da-f]{2})/i);
  if (escape >= 0) fail(escapeProblem(path, escape));
  return { scheme, user, host, path, query, fragment };
}

function cut(text: string, separator: string): [before: string, after: string] {
  const index = text.indexOf(separator);
  return index < 0 ? [text, ''] : [text.slice(0, index), text.slice(index + 1)];
}

function hostProblem(host: string): string | undefined {
  const bracket = host.lastIndexOf('[');
  const end = host.lastIndexOf(']');
  if (bracket > 0) return 'invalid IP-literal';
  if (bracket === 0 && end < 0) return "missing ']' in host";
  const port = bracket === 0 ? host.slice(end + 1) : (/:.*$/s.exec(host)?.[0] ?? '');
  if (!/^(?::\d*)?$/.test(port)) return `invalid port ${goQuote(port)} after host`;
  if (bracket === 0) {
    const address = host.slice(1, end);
    if (isIPv6(address)) return undefined;
    return `invalid host: ParseAddr(${goQuote(address)}): unable to parse IP`;
  }
  const invalid = /%(?![\da-f]{2})|%(?!25)[0-7]|[ \\^`{|}/?#@]/i.exec(host);
  if (!invalid) return undefined;
  const [found] = invalid;
  return found.startsWith('%')
    ? escapeProblem(host, invalid.index)
    : `invalid character ${goQuote(found)} in host name`;
}

function escapeProblem(text: string, index: number): string {
  return `invalid URL escape ${goQuote(text.slice(index, index + 3))}`;
}

/** Returns the path with the escapes of the text if they are valid, otherwise as `escapePath` escapes it. */
export function escapedPath({ path }: GoUrl): string {
  return /^[\w\-.~!$&'()*+,;=:@/[\]%]*$/.test(path) ? path : escapePath(unescapePath(path));
}

/** Returns the bytes of a path without escapes. */
export function unescapePath(path: string): Buffer {
  const bytes = Buffer.from(path).toString('latin1');
  const unescaped = bytes.replaceAll(/%([\da-f]{2})/gi, (_, digits: string) =>
    String.fromCodePoint(Number.parseInt(digits, 16)),
  );
  return Buffer.from(unescaped, 'latin1');
}

/** Escapes the bytes of a path. */
export function escapePath(path: Uint8Array): string {
  return Buffer.from(path)
    .toString('latin1')
    .replaceAll(
      /[^\w\-.~$&+,/:;=@]/g,
      (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
    );
}
