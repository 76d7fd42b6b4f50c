import { goQuote } from '../../../../util/go-quote.ts';
import type { Overload } from '../overload.ts';
import { costs, global, instanceOf, member, string } from '../overload.ts';
import type { CelType } from '../type.ts';
import { BOOL, STRING, listOf, mapOf } from '../type.ts';
import { Failure, List, LiteralMap, Opaque } from '../value.ts';

const URL_TYPE: CelType = { kind: 'opaque', name: 'kubernetes.URL' };

/** An absolute URL or an absolute path, in the parts that it was written in: nothing is normalised. */
class UrlValue extends Opaque {
  readonly type = URL_TYPE;
  readonly identity: string;
  readonly scheme: string;
  readonly host: string;
  readonly path: string;
  readonly query: string;

  constructor(text: string, scheme: string, host: string, path: string, query: string) {
    super();
    this.identity = text;
    this.scheme = scheme;
    this.host = host;
    this.path = path;
    this.query = query;
  }

  get hostname(): string {
    const bracketed = /^\[(.*)\]/.exec(this.host)?.[1];
    return bracketed ?? this.host.replace(/:\d*$/, '');
  }

  get port(): string {
    return /:(\d*)$/.exec(this.host.replace(/^\[.*\]/, ''))?.[1] ?? '';
  }
}

export function urls(): Overload[] {
  const url = instanceOf(URL_TYPE, UrlValue);
  const traversed = { cost: costs.traverse(0) };
  return [
    global('url', [string], URL_TYPE, ([text]) => parseUrl(text), traversed),
    global('isURL', [string], BOOL, ([text]) => parseUrl(text) instanceof UrlValue, traversed),
    member('getScheme', [url], STRING, ([{ scheme }]) => scheme),
    member('getHost', [url], STRING, ([{ host }]) => host),
    member('getHostname', [url], STRING, ([{ hostname }]) => hostname),
    member('getPort', [url], STRING, ([{ port }]) => port),
    member('getEscapedPath', [url], STRING, ([{ path }]) => path),
    member('getQuery', [url], mapOf(STRING, listOf(STRING)), ([{ query }]) => {
      const values = new Map<string, string[]>();
      for (const [name, value] of new URLSearchParams(query)) {
        const known = values.get(name);
        if (known) known.push(value);
        else values.set(name, [value]);
      }
      const result = new LiteralMap();
      for (const [name, texts] of values) result.add(name, List.of(texts));
      return result;
    }),
  ];
}

const PARTS = /^(?:([a-zA-Z][a-zA-Z0-9+.-]*):)?(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#.*)?$/s;

function parseUrl(text: string): UrlValue | Failure {
  const fail = (why: string) =>
    new Failure(`URL parse error during conversion from string: parse ${goQuote(text)}: ${why}`);
  if (text === '') return fail('empty url');
  if (/[\p{Cc}]/u.test(text)) return fail('net/url: invalid control character in URL');
  const [, scheme = '', authority = '', path = '', query = ''] = PARTS.exec(text) ?? [];
  if (scheme === '' && !text.startsWith('/')) return fail('invalid URI for request');
  if (/%(?![0-9a-fA-F]{2})/.test(path))
    return fail(`invalid URL escape ${goQuote(/%.{0,2}/.exec(path)?.[0] ?? '')}`);
  const host = authority.slice(authority.lastIndexOf('@') + 1);
  if (/[\s<>"\\^`{|}]/.test(host)) return fail('invalid character in host name');
  if (!/^(?:\[[^\]]*\]|[^:[\]]*)(?::\d*)?$/.test(host)) return fail(`invalid port after host`);
  const escaped = path.replace(/[^\w\-.~!$&'()*+,;=:@/%[\]]/gu, encodeURIComponent);
  return new UrlValue(text, scheme.toLowerCase(), host, escaped, query);
}
