import { BlockList, isIP, isIPv6 } from 'node:net';
import { domainToASCII } from 'node:url';
import { withoutBrackets } from '../transport/dial.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Returns the proxy for `server` according to HTTPS_PROXY, HTTP_PROXY and NO_PROXY, or undefined. Upper case has
 * precedence over lower case. As in Go, HTTPS_PROXY applies to `https://` only, and loopback addresses use no proxy.
 *
 * An entry of NO_PROXY is `*`, a domain with its subdomains (with a leading `.` or `*.`, only these), an address,
 * or an address range. Entries other than ranges can have a port.
 */
export function proxyFor(server: URL, environment: Environment): string | undefined {
  const read = (name: string) => environment[name] || environment[name.toLowerCase()] || undefined;
  const proxy = read(server.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY');
  if (proxy === undefined || isLoopbackHost(server.hostname)) return undefined;
  const exceptions = (read('NO_PROXY') ?? '').split(',').map((entry) => entry.trim().toLowerCase());
  if (exceptions.some((entry) => entry !== '' && covers(entry, server))) return undefined;
  return proxy.includes('://') ? proxy : `http://${proxy}`;
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

export function isLoopbackHost(hostname: string): boolean {
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

/** Converts a name to ASCII, as `URL` does. */
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

/** Reports whether the list contains an address, in any notation, including IPv4-mapped IPv6. */
function isOneOf(host: string, list: BlockList): boolean {
  return isIP(host) !== 0 && list.check(host, familyOf(host));
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIPv6(address) ? 'ipv6' : 'ipv4';
}

function portOf(server: URL): string {
  return server.port || (server.protocol === 'https:' ? '443' : '80');
}
