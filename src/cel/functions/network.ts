import { goQuote } from '../../util/go-quote.ts';
import { isIP } from '../../util/ip-address.ts';
import type { Overload } from '../values/overload.ts';
import { costs, sizedAs, global, instanceOf, member, stringParameter } from '../values/overload.ts';
import type { CelType } from '../values/type.ts';
import { BOOL, INT, listOf, mapOf, STRING } from '../values/type.ts';
import type { Result } from '../values/value.ts';
import { EvaluationError, List, LiteralMap, Opaque } from '../values/value.ts';

const IP_TYPE: CelType = { kind: 'opaque', name: 'net.IP' };
const CIDR_TYPE: CelType = { kind: 'opaque', name: 'net.CIDR' };

class IpAddress extends Opaque {
  readonly type = IP_TYPE;
  readonly family: 4 | 6;
  readonly bits: bigint;
  readonly identity: string;
  override readonly size: number;

  constructor(family: 4 | 6, bits: bigint) {
    super();
    this.family = family;
    this.bits = bits;
    this.size = family === 4 ? 4 : 16;
    this.identity = family === 4 ? text4(bits) : text6(bits);
  }
}

class Network extends Opaque {
  readonly type = CIDR_TYPE;
  readonly address: IpAddress;
  readonly prefix: number;
  readonly identity: string;
  override readonly size: number;

  constructor(address: IpAddress, prefix: number) {
    super();
    this.address = address;
    this.prefix = prefix;
    this.size = address.size;
    this.identity = `${address.identity}/${prefix}`;
  }

  get masked(): IpAddress {
    const host = BigInt(widthOf(this.address) - this.prefix);
    return new IpAddress(this.address.family, (this.address.bits >> host) << host);
  }

  contains({ family, bits }: IpAddress): boolean {
    if (family !== this.address.family) return false;
    const host = BigInt(widthOf(this.address) - this.prefix);
    return bits >> host === this.address.bits >> host;
  }
}

function widthOf({ family }: IpAddress): 32 | 128 {
  return family === 4 ? 32 : 128;
}

const ip = instanceOf(IP_TYPE, IpAddress);
const cidr = instanceOf(CIDR_TYPE, Network);

/** Functions of IP addresses and networks: `ip('10.0.0.1')`, `cidr('10.0.0.0/8').containsIP(…)`. */
export function networks(): Overload[] {
  const traversed = { cost: costs.traverse(0) };
  const within = (network: Network, address: IpAddress | EvaluationError): Result =>
    address instanceof EvaluationError ? address : network.contains(address);
  const inside = (network: Network, other: Network | EvaluationError): Result =>
    other instanceof EvaluationError
      ? other
      : network.prefix <= other.prefix && network.contains(other.address);
  return [
    global('ip', [stringParameter], IP_TYPE, parseIp, traversed),
    global(
      'isIP',
      [stringParameter],
      BOOL,
      (text) => parseIp(text) instanceof IpAddress,
      traversed,
    ),
    global(
      'ip.isCanonical',
      [stringParameter],
      BOOL,
      (text) => {
        const address = parseIp(text);
        return address instanceof EvaluationError ? address : address.identity === text;
      },
      { cost: costs.traverse(0, 2) },
    ),
    global('string', [ip], STRING, ({ identity }) => identity),
    member('family', [ip], INT, ({ family }) => BigInt(family)),
    ...addressKinds(),
    global('cidr', [stringParameter], CIDR_TYPE, parseCidr, traversed),
    global(
      'isCIDR',
      [stringParameter],
      BOOL,
      (text) => parseCidr(text) instanceof Network,
      traversed,
    ),
    global('string', [cidr], STRING, ({ identity }) => identity),
    member('ip', [cidr], IP_TYPE, ({ address }) => address),
    member('prefixLength', [cidr], INT, ({ prefix }) => BigInt(prefix)),
    member('masked', [cidr], CIDR_TYPE, (network) => new Network(network.masked, network.prefix)),
    member('containsIP', [cidr, ip], BOOL, within, { cost: compared(2) }),
    member(
      'containsIP',
      [cidr, stringParameter],
      BOOL,
      (network, text) => within(network, parseIp(text)),
      {
        cost: (sizes) => compared(2)(sizes) + costs.traverse(1)(sizes),
      },
    ),
    member('containsCIDR', [cidr, cidr], BOOL, inside, { cost: masked }),
    member(
      'containsCIDR',
      [cidr, stringParameter],
      BOOL,
      (network, text) => inside(network, parseCidr(text)),
      { cost: (sizes) => masked(sizes) + costs.traverse(1)(sizes) },
    ),
  ];
}

/** Cost of reading the bytes of a network, which are at most 16. */
const compared =
  (times: number): Overload['cost'] =>
  ([network]) =>
    Math.ceil(Math.min(16, network?.count ?? 16) * times * 0.1);

/** Cost of masking a network and comparing it. */
const masked: Overload['cost'] = (sizes) => compared(2)(sizes) + compared(1)(sizes) + 1;

function addressKinds(): Overload[] {
  const kind = (name: string, four: readonly string[], six: readonly string[]) => {
    const networks = [...four, ...six].map(parseCidr).filter((found) => found instanceof Network);
    return member(name, [ip], BOOL, (address) =>
      networks.some((network) => network.contains(address)),
    );
  };
  const four = ['0.0.0.0/32', '255.255.255.255/32', '127.0.0.0/8', '224.0.0.0/4', '169.254.0.0/16'];
  const six = ['::/128', '::1/128', 'ff00::/8', 'fe80::/10'];
  const notGlobal = [...four, ...six].map(parseCidr).filter((found) => found instanceof Network);
  return [
    kind('isUnspecified', ['0.0.0.0/32'], ['::/128']),
    kind('isLoopback', ['127.0.0.0/8'], ['::1/128']),
    kind('isLinkLocalMulticast', ['224.0.0.0/24'], ['ff02::/16']),
    kind('isLinkLocalUnicast', ['169.254.0.0/16'], ['fe80::/10']),
    member(
      'isGlobalUnicast',
      [ip],
      BOOL,
      (address) => !notGlobal.some((network) => network.contains(address)),
    ),
  ];
}

function parseIp(text: string): IpAddress | EvaluationError {
  const family = isIP(text);
  if (family === 4) return new IpAddress(4, bits4(text));
  if (family !== 6) {
    return new EvaluationError(
      `IP Address ${goQuote(text)} parse error during conversion from string: ParseAddr(${goQuote(text)}): unable to parse IP`,
    );
  }
  if (text.includes('%'))
    return new EvaluationError(`IP address ${goQuote(text)} with zone value is not allowed`);
  const bits = bits6(text);
  if (bits >> 32n === 0xffffn)
    return new EvaluationError(`IPv4-mapped IPv6 address ${goQuote(text)} is not allowed`);
  return new IpAddress(6, bits);
}

function parseCidr(text: string): Network | EvaluationError {
  const [, address = '', prefix = ''] = /^(.*)\/(0|[1-9]\d{0,2})$/.exec(text.slice(0, 100)) ?? [];
  const parsed = address.includes('%') ? undefined : parseIp(address);
  if (parsed instanceof IpAddress && Number(prefix) <= widthOf(parsed)) {
    return new Network(parsed, Number(prefix));
  }
  if (parsed instanceof EvaluationError && isIP(address) !== 0) return parsed;
  return new EvaluationError(
    `network address parse error during conversion from string: netip.ParsePrefix(${goQuote(text)}): no IP address prefix`,
  );
}

function bits4(text: string): bigint {
  return text.split('.').reduce((bits, part) => (bits << 8n) | BigInt(part), 0n);
}

function bits6(text: string): bigint {
  const dotted = /(?:\d+\.){3}\d+$/.exec(text)?.[0];
  const low = dotted === undefined ? 0n : bits4(dotted);
  const hex =
    dotted === undefined
      ? text
      : text.slice(0, -dotted.length) +
        `${(low >> 16n).toString(16)}:${(low & 0xffffn).toString(16)}`;
  const [head = '', tail] = hex.split('::');
  const groups = (part: string) => (part === '' ? [] : part.split(':'));
  const [left, right] = [groups(head), groups(tail ?? '')];
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => '0');
  const all = [...left, ...zeros, ...right];
  return all.reduce((bits, group) => (bits << 16n) | BigInt(`0x${group}`), 0n);
}

function text4(bits: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => (bits >> shift) & 0xffn).join('.');
}

/** Formats an IPv6 address (RFC 5952): omits the longest run of at least two zero groups. */
function text6(bits: bigint): string {
  const groups = Array.from({ length: 8 }, (_, index) =>
    ((bits >> BigInt(112 - 16 * index)) & 0xffffn).toString(16),
  );
  let [start, length] = [0, 0];
  for (let index = 0; index < 8; index++) {
    let end = index;
    while (groups[end] === '0') end++;
    if (end - index > length) [start, length] = [index, end - index];
  }
  if (length < 2) return groups.join(':');
  return `${groups.slice(0, start).join(':')}::${groups.slice(start + length).join(':')}`;
}

const URL_TYPE: CelType = { kind: 'opaque', name: 'kubernetes.URL' };

/** An absolute URL or an absolute path. Its parts are not normalized. */
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
    global('url', [stringParameter], URL_TYPE, parseUrl, {
      ...traversed,
      size: ([text]) => text ?? sizedAs(0),
    }),
    global('isURL', [stringParameter], BOOL, (text) => parseUrl(text) instanceof UrlValue, {
      ...traversed,
      estimatedCost: () => 1,
    }),
    member('getScheme', [url], STRING, ({ scheme }) => scheme),
    member('getHost', [url], STRING, ({ host }) => host),
    member('getHostname', [url], STRING, ({ hostname }) => hostname),
    member('getPort', [url], STRING, ({ port }) => port),
    member('getEscapedPath', [url], STRING, ({ path }) => path),
    member('getQuery', [url], mapOf(STRING, listOf(STRING)), ({ query }) => {
      const result = new LiteralMap();
      for (const [name, pairs] of Map.groupBy(new URLSearchParams(query), ([each]) => each)) {
        result.add(name, List.of(pairs.map(([, value]) => value)));
      }
      return result;
    }),
  ];
}

const PARTS = /^(?:([a-zA-Z][a-zA-Z0-9+.-]*):)?(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#.*)?$/s;

function parseUrl(text: string): UrlValue | EvaluationError {
  const fail = (why: string) =>
    new EvaluationError(
      `URL parse error during conversion from string: parse ${goQuote(text)}: ${why}`,
    );
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
