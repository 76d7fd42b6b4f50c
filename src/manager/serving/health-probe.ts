import { goQuote } from '../../util/go-quote.ts';
import type { Logger } from '../../util/logger.ts';

/** One named check of a probe: returns why it fails, or undefined when all is well. */
export interface HealthCheck {
  readonly name: string;
  /** Returns why the check fails, or undefined. */
  readonly check: () => string | undefined;
  /** Lines for people, shown under the check by `?verbose`; anybody may read them. */
  readonly detail?: () => readonly string[];
}

/** One request to a probe. */
export interface ProbeRequest {
  /** `livez`, `readyz` or `healthz`: what the answer calls itself. */
  readonly probe: string;
  readonly checks: readonly HealthCheck[];
  /** The check that is asked for alone, as in `/readyz/informer-sync`. */
  readonly only: string | undefined;
  /** `verbose`, and `exclude` with the name of a check as often as there are such. */
  readonly query: URLSearchParams;
}

/** That there is an answer at all. */
const PING: HealthCheck = { name: 'ping', check: () => undefined };

/**
 * The answer to a probe in the manner of the kube-apiserver: `ok`, or with `?verbose` a line a check;
 * 500 and the lines where one fails. The reasons are for the log alone: who may ask is not who may know.
 */
export function probeAnswer(
  { probe, checks, only, query }: ProbeRequest,
  log: Logger,
): { readonly status: number; readonly body: string } {
  const all = [PING, ...checks];
  const asked = only ? all.filter(({ name }) => name === only) : all;
  if (asked.length === 0) return { status: 404, body: '404 not found\n' };
  const excluded = new Set(only ? [] : query.getAll('exclude'));
  const isVerbose = query.has('verbose');
  const lines: string[] = [];
  let failed = false;
  for (const { name, check, detail } of asked) {
    if (excluded.delete(name)) {
      lines.push(`[+]${name} excluded: ok`);
      continue;
    }
    const reason = check();
    if (reason === undefined) {
      lines.push(`[+]${name} ok`);
    } else {
      failed = true;
      lines.push(`[-]${name} failed: reason withheld`);
      log.v(1).info('Health check failed', { probe, check: name, reason });
    }
    if (detail && isVerbose) lines.push(...detail().map((line) => `    ${line}`));
  }
  if (excluded.size > 0) {
    const names = [...excluded].map(goQuote).join(', ');
    lines.push(`warn: some health checks cannot be excluded: no matches for ${names}`);
  }
  if (failed) return { status: 500, body: `${lines.join('\n')}\n${probe} check failed\n` };
  if (isVerbose) return { status: 200, body: `${lines.join('\n')}\n${probe} check passed\n` };
  return { status: 200, body: 'ok' };
}
