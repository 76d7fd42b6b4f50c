import type { AddressInfo } from 'node:net';

/**
 * Parses `:8081`, `127.0.0.1:8081` or `[::1]:8081`. Without a host, the server listens on all
 * addresses of the machine.
 *
 * @throws {RangeError} if the address is not valid
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

/** Formats the address of a listening server for the log. */
export function formatAddress(address: AddressInfo | string | null): string {
  if (!address || typeof address === 'string') return String(address);
  return address.family === 'IPv6'
    ? `[${address.address}]:${address.port}`
    : `${address.address}:${address.port}`;
}

const LOOPBACK_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/i;

/** Returns whether `HOST` or `HOST:PORT` is a loopback address. IPv6 addresses are in brackets. */
export function isLoopback(address: string): boolean {
  return LOOPBACK_HOST.test(address.replace(/:\d+$/, ''));
}

/** Returns whether an address is given and other machines can reach it. */
export function isNonLoopback(address: string | undefined): address is string {
  return address !== undefined && !isLoopback(address);
}
