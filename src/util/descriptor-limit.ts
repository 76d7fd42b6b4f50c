import { readFileSync } from 'node:fs';

/** The assumed limit where the system does not report one. */
const UNKNOWN_LIMIT = 1024;

/** Minimum number of descriptors for everything but connections of clients: engine, API server, files. */
const MIN_RESERVED = 40;
const RESERVED_SHARE = 1 / 4;
const MIN_CONNECTIONS = 8;

/**
 * Returns the maximum number of connections that clients may have with this process, so that a quarter of its
 * descriptors, and at least 40, remain for everything else. Without a free descriptor, new connections are reset.
 *
 * @param limit maximum number of descriptors
 */
export function maxClientConnections(limit: number = descriptorLimit()): number {
  const reserved = Math.max(MIN_RESERVED, Math.ceil(limit * RESERVED_SHARE));
  return Math.max(MIN_CONNECTIONS, limit - reserved);
}

/** Returns `ulimit -n` on Linux, otherwise 1024. */
function descriptorLimit(): number {
  let limits: string;
  try {
    limits = readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return UNKNOWN_LIMIT;
  }
  const [, limit] = /^Max open files +(\d+|unlimited)/m.exec(limits) ?? [];
  if (limit === undefined) return UNKNOWN_LIMIT;
  return limit === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(limit);
}
