import { BlockList, isIP, isIPv6 } from 'node:net';
import { domainToASCII } from 'node:url';
import { withoutBrackets } from '../transport/dial.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY (in either case; upper case first) name for
 * `server`, if any. As Go reads them: HTTPS_PROXY alone is for `https://`. An entry of NO_PROXY is
 * `*`, a host or domain (with its subdomains; with a leading `.` or `*.`, only those), an address, or
 * a range of addresses; a port restricts all but ranges. This machine itself is never reached through
 * a proxy.
 */
export function proxyFor(server: URL, environment: Environment): string | undefined {
  const read = (name: string) => environment[name] || environment[name.toLowerCase()] || undefined;
  const proxy = read(server.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY');
  if (proxy === undefined || isLoopback(server.hostname)) return undefined;
  const exceptions = (read('NO_PROXY') ?? '').split(',').map((entry) => entry.trim().toLowerCase());
  if (exceptions.some((entry) => entry !== '' && covers(entry, server))) return undefined;
  return proxy.includes('://') ? proxy : `http://${proxy}`;
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

export function isLoopback(hostname: string): boolean {
  const host = withoutBrackets(hostname);
  return host === 'localhost' || isOneOf(host, LOOPBACK);
}

function covers(entry: string, server: URL): boolean {
  if (entry === '*') return true;
  const host = withoutBrackets(server.hostname);
  const range = rangeOf(entry);
  if (range) return isOneOf(host, range);
  const [, name = entry, port = ''] = /^(\[[^\]]*\]|[^:]*):([^:]*)$/.exec(entry) ?? [];
  if (port !== '' && port !== portOf(server)) return false;
  const pattern = withoutBrackets(name);
  if (isIP(pattern) !== 0) return isOneOf(host, single(pattern));
  return isIP(host) === 0 && isWithin(host, pattern);
}

function isWithin(host: string, pattern: string): boolean {
  const domain = ascii(pattern.replace(/^\*?\./, ''));
  if (host.endsWith(`.${domain}`)) return true;
  return host === domain && !/^\*?\./.test(pattern);
}

/** As `URL` gives names: in punycode where it must be. */
function ascii(name: string): string {
  return /[^ -~]/.test(name) ? domainToASCII(name) : name;
}

function rangeOf(entry: string): BlockList | undefined {
  const [, network = '', bits = ''] = /^([^/]+)\/(\d{1,3})$/.exec(entry) ?? [];
  if (isIP(network) === 0 || Number(bits) > (isIPv6(network) ? 128 : 32)) return undefined;
  const list = new BlockList();
  list.addSubnet(network, Number(bits), familyOf(network));
  return list;
}

function single(address: string): BlockList {
  const list = new BlockList();
  list.addAddress(address, familyOf(address));
  return list;
}

/** However the address is written; an IPv4 address may be written as an IPv6 one. */
function isOneOf(host: string, list: BlockList): boolean {
  return isIP(host) !== 0 && list.check(host, familyOf(host));
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIPv6(address) ? 'ipv6' : 'ipv4';
}

function portOf(server: URL): string {
  return server.port || (server.protocol === 'https:' ? '443' : '80');
}
