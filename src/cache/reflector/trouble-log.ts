import type { Clock } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import type { LogFields, Logger } from '../../util/logger.ts';
import { RateLimitedLog, subjectFields } from '../../util/rate-limited-log.ts';

/** A failure that lasts is logged again after so long, in milliseconds. */
const REMINDER_MS = 5 * 60_000;

/** The same for a cause that returns after another one. */
const RETURN_MS = 60_000;

/** Delay of a first line about reflectors of one server, which fail at nearly the same time. */
const GATHER_MS = 1000;

/** One failure of one reflector. */
export interface Failure {
  /** Equal for failures of several reflectors that are one failure of the server. */
  readonly cause: string;
  readonly resource: string;
  /** Writes the line. `fields` name the resources and count the failures. */
  readonly write: (log: Logger, fields: LogFields) => void;
}

/** The end of the failures of one reflector. */
export interface Recovery {
  readonly resource: string;
  /** Causes of its failures, the last one last. */
  readonly causes: readonly string[];
  /** The last failure, in a few words. */
  readonly from: string;
  readonly failures: number;
  readonly sinceMs: number;
}

/** The reflectors that fail for one cause, and those that failed and have recovered. */
interface Outage {
  readonly failing: Set<string>;
  readonly recovered: Recovery[];
}

/**
 * The log lines about failures of the reflectors of one server. A failure that several of them have is
 * one line that names the resources, a reminder every five minutes, and one line when all of them have
 * recovered.
 */
export class TroubleLog {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #lines: RateLimitedLog;
  readonly #outages = new Map<string, Outage>();

  /** @param isShared several reflectors use it: a first line waits a second for the others */
  constructor(clock: Clock, log: Logger, isShared: boolean) {
    this.#clock = clock;
    this.#log = log;
    const gatherMs = isShared ? GATHER_MS : 0;
    this.#lines = new RateLimitedLog(clock, { windowMs: REMINDER_MS, gatherMs });
  }

  /** @returns false if the cause has been logged before */
  failed({ cause, resource, write }: Failure): boolean {
    const outage = this.#outages.get(cause) ?? { failing: new Set(), recovered: [] };
    this.#outages.set(cause, outage);
    outage.failing.add(resource);
    return this.#lines.report(cause, resource, ({ subjects, moreSubjects, total, forMs }) =>
      write(this.#log, {
        ...resourceFields(subjects, moreSubjects),
        ...(forMs >= REMINDER_MS && { failures: total, for: legible(forMs) }),
      }),
    );
  }

  /** The reflector of `resource` fails for another cause than `cause` now. */
  changed(cause: string, resource: string): void {
    this.#outages.get(cause)?.failing.delete(resource);
    this.#endIfOver(cause);
    if (!this.#outages.has(cause)) this.#lines.shorten(cause, RETURN_MS);
  }

  recovered(recovery: Recovery): void {
    const last = recovery.causes.at(-1);
    const outage = last === undefined ? undefined : this.#outages.get(last);
    if (outage?.failing.delete(recovery.resource)) outage.recovered.push(recovery);
    this.#end(recovery.causes);
  }

  /** The reflector of `resource` has stopped while it failed. */
  stopped(causes: readonly string[], resource: string): void {
    for (const cause of causes) this.#outages.get(cause)?.failing.delete(resource);
    this.#end(causes);
  }

  #end(causes: readonly string[]): void {
    for (const cause of causes) {
      this.#endIfOver(cause);
      // The next failure is a new outage. Causes that alternate within one do not get here.
      if (!this.#outages.has(cause)) this.#lines.end(cause);
    }
  }

  #endIfOver(cause: string): void {
    const outage = this.#outages.get(cause);
    if (!outage || outage.failing.size > 0) return;
    this.#outages.delete(cause);
    const { recovered } = outage;
    const [first] = recovered;
    if (!first) return;
    this.#lines.end(cause);
    const sinceMs = recovered.reduce((least, each) => Math.min(least, each.sinceMs), Infinity);
    this.#log.info('Recovered', {
      ...resourceFields(recovered.map(({ resource }) => resource)),
      from: first.from,
      failures: recovered.reduce((sum, { failures }) => sum + failures, 0),
      took: legible(this.#clock.monotonic() - sinceMs),
    });
  }
}

function resourceFields(resources: readonly string[], more = 0): LogFields {
  const [first, second] = resources;
  if (second === undefined) return { resource: first };
  return subjectFields('resources', { subjects: resources, moreSubjects: more });
}

/** To the millisecond. */
function legible(ms: number): string {
  return formatDuration(Math.round(ms));
}
