import type { InformerView } from '../cache/shared-informer.ts';
import { failureReason } from '../client/transport/connection-error.ts';
import type { Clock } from '../util/clock.ts';
import { formatSeconds } from '../util/duration.ts';
import { goQuote } from '../util/go-quote.ts';
import type { Logger } from '../util/logger.ts';
import type { Runnable } from '../util/runnable.ts';

/** Named check of a health probe. */
export interface HealthCheck {
  readonly name: string;
  /** Returns why the check fails, or undefined if it passes. */
  readonly check: () => string | undefined;
  /** Lines that `?verbose` shows below the check. Every client may read them. */
  readonly detail?: () => readonly string[];
}

/** Request to a health probe. */
export interface ProbeRequest {
  /** `livez`, `readyz` or `healthz`. */
  readonly probe: string;
  readonly checks: readonly HealthCheck[];
  /** Name of the only check to run, as in `/readyz/informer-sync`. */
  readonly only: string | undefined;
  /** `verbose`, and any number of `exclude` parameters with names of checks. */
  readonly query: URLSearchParams;
}

const PING: HealthCheck = { name: 'ping', check: () => undefined };

/**
 * Runs the checks of a probe and returns a response in kube-apiserver's format: `ok`, or one line per
 * check with `?verbose`, or status 500 with these lines if a check fails.
 *
 * Reasons for failures go to the log only, because probes are served without authentication.
 */
export function probeResponse(
  { probe, checks, only, query }: ProbeRequest,
  log: Logger,
): { readonly status: number; readonly body: string } {
  const all = [PING, ...checks];
  const selected = only ? all.filter(({ name }) => name === only) : all;
  if (selected.length === 0) return { status: 404, body: '404 not found\n' };
  const excluded = new Set(only ? [] : query.getAll('exclude'));
  const isVerbose = query.has('verbose');
  const lines: string[] = [];
  let failed = false;
  for (const { name, check, detail } of selected) {
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

const TICK_MS = 1000;

/** Time without a tick after which timers count as broken. */
const MAX_TICK_GAP_MS = 30_000;

/**
 * Checks that timers fire. Leases, retries and timeouts depend on timers.
 *
 * The check cannot detect a blocked event loop: the probe then gets no response and fails with its
 * timeout. The detail shows the longest delay of a tick so far.
 */
export class EventLoopMonitor implements Runnable {
  readonly name = 'event-loop-monitor';
  readonly #clock: Clock;
  #lastTickMs: number | undefined;
  #worst = { lateMs: 0, atMs: 0 };

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  readonly check: HealthCheck = {
    name: 'event-loop',
    check: () => {
      const agoMs = this.#agoMs;
      return agoMs > MAX_TICK_GAP_MS ? `no timer fired for ${formatSeconds(agoMs)}` : undefined;
    },
    detail: () => {
      const { lateMs, atMs } = this.#worst;
      const last = `last tick ${formatSeconds(this.#agoMs)} ago`;
      if (lateMs === 0) return [`${last}; never late`];
      const worstAgoMs = this.#clock.monotonic() - atMs;
      return [`${last}; longest delay ${Math.round(lateMs)}ms, ${formatSeconds(worstAgoMs)} ago`];
    },
  };

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#tick();
      await this.#clock.sleep(TICK_MS, signal);
    }
  }

  get #agoMs(): number {
    return this.#lastTickMs === undefined ? 0 : this.#clock.monotonic() - this.#lastTickMs;
  }

  #tick(): void {
    const nowMs = this.#clock.monotonic();
    const lateMs = this.#lastTickMs === undefined ? 0 : nowMs - this.#lastTickMs - TICK_MS;
    if (lateMs > this.#worst.lateMs) this.#worst = { lateMs, atMs: nowMs };
    this.#lastTickMs = nowMs;
  }
}

/** Maximum movement of the wall clock before the check fails, in milliseconds. */
const MAX_CLOCK_CHANGE_MS = 5 * 60_000;

/**
 * Fails if the wall clock has moved by more than five minutes relative to the monotonic clock since
 * the process started, because the machine was suspended or its clock was set. Keys that wait for a
 * calendar time are then due at the wrong time; a new process computes the delays again.
 */
export function clockSkewCheck(clock: Pick<Clock, 'now' | 'monotonic'>): HealthCheck {
  const offset = () => clock.now() - clock.monotonic();
  const offsetAtStart = offset();
  return {
    name: 'clock',
    check: () => {
      const changeMs = Math.abs(offset() - offsetAtStart);
      return changeMs > MAX_CLOCK_CHANGE_MS
        ? `the wall clock has moved by ${formatSeconds(changeMs)} against the monotonic clock`
        : undefined;
    },
  };
}

/** State of an informer that health checks read. */
export type InformerHealth = Pick<InformerView, 'name' | 'hasSynced' | 'progress'>;

/**
 * Readiness checks of informers: all caches have synced, and all connections are active. A resource that the
 * server does not serve does not make the process unready.
 */
export function informerHealthChecks(
  informers: () => readonly InformerHealth[],
  clock: Pick<Clock, 'monotonic'>,
): HealthCheck[] {
  const failing = (problem: string, isFailing: (informer: InformerHealth) => boolean) => {
    const names = informers()
      .filter((informer) => !informer.progress.missing && isFailing(informer))
      .map(({ name }) => name);
    return names.length > 0 ? `${problem}: ${names.join(', ')}` : undefined;
  };
  return [
    {
      name: 'informer-sync',
      check: () => failing('not synced', ({ hasSynced }) => !hasSynced),
    },
    {
      name: 'informer-progress',
      check: () =>
        failing(
          'no activity from the server',
          ({ hasSynced, progress }) => hasSynced && progress.isStale,
        ),
      detail: () => informers().map((informer) => describeInformer(informer, clock.monotonic())),
    },
  ];
}

/**
 * Describes an informer in one line. Errors are reduced to their reason, because probes are served
 * without authentication and messages can contain the server's address.
 *
 * `pods: watching for 4m10s; synced; last activity 12s ago`
 */
function describeInformer({ name, hasSynced, progress }: InformerHealth, nowMs: number): string {
  const { phase, sinceMs, missing, lastErrorMs } = progress;
  const parts = [
    missing
      ? 'waiting for the server to serve the resource'
      : `${phase} for ${formatSeconds(nowMs - sinceMs)}`,
    hasSynced ? 'synced' : 'not synced',
    progress.lastByteMs === undefined
      ? 'no activity yet'
      : `last activity ${formatSeconds(progress.inactiveMs)} ago`,
    ...(lastErrorMs === undefined
      ? []
      : [
          `last error ${formatSeconds(nowMs - lastErrorMs)} ago: ${failureReason(progress.lastError)}`,
        ]),
  ];
  return `${name}: ${parts.join('; ')}`;
}
