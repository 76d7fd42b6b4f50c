import type { Logger } from '../util/logger.ts';

/** Warnings remembered so as not to repeat them; beyond that, an old one may be shown again. */
const MOST_REMEMBERED = 1000;

/** Texts of the `Warning` header's values of code 299, the one Kubernetes uses. */
export function parseWarnings(header: string): string[] {
  const values = header.matchAll(/\b299 [^\s"]{1,255} "((?:[^"\\]|\\.){1,4096})"/g);
  return Array.from(values, ([, text = '']) => text.replaceAll(/\\(.)/g, '$1'));
}

/** Logs each distinct warning of the server once: deprecated versions, ignored fields. */
export function logWarningsOnce(log: Logger): (warning: string) => void {
  const seen = new Set<string>();
  return (warning) => {
    if (seen.has(warning)) return;
    if (seen.size >= MOST_REMEMBERED) seen.clear();
    seen.add(warning);
    log.info('Warning from the API server', { warning });
  };
}
