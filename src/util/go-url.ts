import { goQuote } from './go-quote.ts';
import { isIP } from './ip-address.ts';

/** Returns the error of Go's `url.Parse`, or undefined if it parses the URL. */
export function goUrlProblem(text: string): string | undefined {
  const [url = ''] = text.split('#', 1);
  const problem = problemOf(url);
  if (problem !== undefined) return `parse ${goQuote(url)}: ${problem}`;
  const wrong = badEscape(text.slice(url.length + 1));
  return wrong === undefined ? undefined : `parse ${goQuote(text)}: ${wrong}`;
}

function problemOf(url: string): string | undefined {
  const hasControl = Array.from(url).some((letter) => letter < ' ' || letter === '\u007f');
  if (hasControl) return 'net/url: invalid control character in URL';
  if (url.startsWith(':')) return 'missing protocol scheme';
  const [, scheme = ''] = /^([a-z][a-z\d+.-]*):/i.exec(url) ?? [];
  const [rest = ''] = url.slice(scheme === '' ? 0 : scheme.length + 1).split('?', 1);
  if (!rest.startsWith('/')) {
    const isOpaque = scheme !== '';
    if (!isOpaque && rest.split('/', 1)[0]?.includes(':')) {
      return 'first path segment in URL cannot contain colon';
    }
    return isOpaque ? undefined : badEscape(rest);
  }
  if (!rest.startsWith('//') || (scheme === '' && rest.startsWith('///'))) return badEscape(rest);
  const [authority = ''] = rest.slice(2).split('/', 1);
  return authorityProblem(authority) ?? badEscape(rest.slice(2 + authority.length));
}

function authorityProblem(authority: string): string | undefined {
  const at = authority.lastIndexOf('@');
  const problem = hostProblem(authority.slice(at + 1));
  if (problem !== undefined || at < 0) return problem;
  const user = authority.slice(0, at);
  return /^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/.test(user)
    ? badEscape(user)
    : 'net/url: invalid userinfo';
}

function hostProblem(host: string): string | undefined {
  const open = host.lastIndexOf('[');
  if (open > 0) return 'invalid IP-literal';
  if (open < 0) {
    const colon = host.indexOf(':');
    return (colon < 0 ? undefined : portProblem(host.slice(colon))) ?? nameProblem(host);
  }
  const close = host.lastIndexOf(']');
  if (close < 0) return "missing ']' in host";
  const problem = portProblem(host.slice(close + 1));
  if (problem !== undefined) return problem;
  const [address = '', zone] = host.slice(1, close).split(/%25(.*)/s);
  const wrong = nameProblem(address) ?? (zone === undefined ? undefined : badEscape(zone));
  if (wrong !== undefined) return wrong;
  const version = isIP(address);
  if (version === 0) return `invalid host: ParseAddr(${goQuote(address)}): unable to parse IP`;
  return version === 6 ? undefined : 'invalid IP-literal';
}

function portProblem(port: string): string | undefined {
  return /^(?::\d*)?$/.test(port) ? undefined : `invalid port ${goQuote(port)} after host`;
}

/** A host escapes only bytes that are no ASCII. */
function nameProblem(host: string): string | undefined {
  const wrong = badEscape(host) ?? escapeError(/%(?!25)[0-7][\da-f]/i.exec(host)?.[0]);
  if (wrong !== undefined) return wrong;
  const [invalid] = /[^A-Za-z0-9!$&'()*+,;=:[\]<>"\-_.~%\u0080-\u{10ffff}]/u.exec(host) ?? [];
  return invalid === undefined ? undefined : `invalid character ${goQuote(invalid)} in host name`;
}

function badEscape(text: string): string | undefined {
  return escapeError(/%(?![\da-f]{2}).{0,2}/is.exec(text)?.[0]);
}

function escapeError(escape: string | undefined): string | undefined {
  return escape === undefined ? undefined : `invalid URL escape ${goQuote(escape)}`;
}
