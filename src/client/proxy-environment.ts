import { BlockList, isIP, isIPv6 } from 'node:net';
import { withoutBrackets } from './dial.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY (in either case) name for `server`, if any.
 * As Go reads them: an entry of NO_PROXY is `*`, a host or domain (with its subdomains; with a
 * leading dot, only those), an address, or a range of addresses; a port restricts it. This
 * machine itself is never reached through a proxy.
 */
export function proxyFor(server: URL, environment: Environment): string | undefined {
  const read = (name: string) => environment[name] || environment[name.toLowerCase()] || undefined;
  const proxy = read(server.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY');
  if (proxy === undefined || isLoopback(server.hostname)) return undefined;
  const exceptions = (read('NO_PROXY') ?? '').split(',').map((entry) => entry.trim().toLowerCase());
  if (exceptions.some((entry) => entry !== '' && covers(entry, server))) return undefined;
  return proxy.includes('://') ? proxy : `http://${proxy}`;
}

export function isLoopback(hostname: string): boolean {
  const host = withoutBrackets(hostname);
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

function covers(entry: string, server: URL): boolean {
  if (entry === '*') return true;
  const host = withoutBrackets(server.hostname.toLowerCase());
  const [, name = entry, port] = /^(\[[^\]]*\]|[^:]*):(\d+)$/.exec(entry) ?? [];
  if (port !== undefined && port !== portOf(server)) return false;
  const pattern = withoutBrackets(name);
  if (isIP(host) !== 0) return pattern === host || isInRange(pattern, host);
  if (pattern.startsWith('.')) return host.endsWith(pattern);
  return host === pattern || host.endsWith(`.${pattern}`);
}

function isInRange(range: string, address: string): boolean {
  const [, network = '', bits = ''] = /^([^/]+)\/(\d{1,3})$/.exec(range) ?? [];
  const family = isIPv6(address) ? 'ipv6' : 'ipv4';
  const most = family === 'ipv6' ? 128 : 32;
  if (isIP(network) !== isIP(address) || bits === '' || Number(bits) > most) return false;
  const list = new BlockList();
  list.addSubnet(network, Number(bits), family);
  return list.check(address, family);
}

function portOf(server: URL): string {
  return server.port || (server.protocol === 'https:' ? '443' : '80');
}
