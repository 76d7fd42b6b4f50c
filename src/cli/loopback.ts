/** Hosts that are this very machine. */
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** Whether nobody but this machine can reach `HOST`, or `HOST:PORT`; IPv6 is in brackets. */
export function isLoopback(address: string): boolean {
  return LOOPBACK.test(address.replace(/:\d+$/, ''));
}

/** Whether there is an address, and more than this machine can reach it. */
export function isBeyond(address: string | undefined): address is string {
  return address !== undefined && !isLoopback(address);
}
