import type { Logger } from '../util/logger.ts';

/** Number of remembered warnings; beyond that, old ones may be logged again. */
const MAX_REMEMBERED = 1000;

/** Returns the texts of a `Warning` header with code 299, the code that Kubernetes uses. */
export function parseWarnings(header: string): string[] {
  const values = header.matchAll(/\b299 [^\s"]{1,255} "((?:[^"\\]|\\.){1,4096})"/g);
  return Array.from(values, ([, text = '']) => text.replaceAll(/\\(.)/g, '$1'));
}

/** Returns a function that logs each distinct warning of the server once. */
export function logWarningsOnce(log: Logger): (warning: string) => void {
  const seen = new Set<string>();
  return (warning) => {
    if (seen.has(warning)) return;
    if (seen.size >= MAX_REMEMBERED) seen.clear();
    seen.add(warning);
    log.info('Warning from the API server', { warning });
  };
}
