import type { AddressInfo } from 'node:net';

/**
 * Reads `:8081`, `127.0.0.1:8081` or `[::1]:8081`. Without a host it is every address of the machine.
 *
 * @throws {RangeError} naming what is wrong with the address
 */
export function parseBindAddress(address: string): { host?: string; port: number } {
  const match = /^(?:\[([^\]]+)\]|([^:]*)):(\d{1,5})$/.exec(address);
  const port = Number(match?.[3]);
  if (!match || port > 65_535) {
    throw new RangeError(
      `Bind address must be HOST:PORT or :PORT with a port up to 65535: got "${address}"`,
    );
  }
  const host = match[1] ?? match[2];
  return host ? { host, port } : { port };
}

/** What a server listens on, for the log. */
export function formatAddress(address: AddressInfo | string | null): string {
  if (!address || typeof address === 'string') return String(address);
  return address.family === 'IPv6'
    ? `[${address.address}]:${address.port}`
    : `${address.address}:${address.port}`;
}

/** Hosts that only the machine itself can reach. */
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/i;

/** True if only this machine can reach `HOST`, or `HOST:PORT`; IPv6 addresses are in brackets. */
export function isLoopback(address: string): boolean {
  return LOOPBACK.test(address.replace(/:\d+$/, ''));
}

/** True if there is an address, and other machines can reach it. */
export function isBeyond(address: string | undefined): address is string {
  return address !== undefined && !isLoopback(address);
}
