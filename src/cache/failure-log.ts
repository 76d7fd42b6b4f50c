import { ApiError, isApiError } from '../api/api-error.ts';
import { canICommand, parseForbidden, qualifiedResource } from '../api/permission.ts';
import { DENIAL_PERSISTS_MS } from '../client/missing-permissions.ts';
import { failureReason } from '../client/transport/connection-error.ts';
import type { Clock } from '../util/clock.ts';
import { formatDuration } from '../util/duration.ts';
import type { LogFields, Logger } from '../util/logger.ts';
import { RateLimitedLog, subjectFields } from '../util/rate-limited-log.ts';
import { messageOf } from '../util/values.ts';

/** Interval between two lines about one failure, in milliseconds. */
const REMINDER_MS = 5 * 60_000;

/** Interval between two lines about one failure that alternates with another one, in milliseconds. */
const RETURN_MS = 60_000;

/** Delay before the first log line, in which the other reflectors of the server fail for the same cause. */
const GATHER_MS = 1000;

/** Maximum number of causes that one reflector remembers. */
const MAX_CAUSES = 20;

/** Kinds of failure that are the same for every resource of a server. */
const SERVER_FAILURES: ReadonlySet<string> = new Set<ApiError['kind']>([
  'unreachable',
  'unauthorized',
  'unavailable',
  'timeout',
  'tooManyRequests',
  // The log lines of several resources differ only in the names of the resources.
  'notFound',
]);

/** One failure of one reflector. */
export interface LoggedFailure {
  /** Equal for failures of several reflectors that have one cause. */
  readonly cause: string;
  readonly resource: string;
  /** Writes the line. `fields` contain the resources and the number of failures. */
  readonly write: (log: Logger, fields: LogFields) => void;
}

/** The end of the failures of one reflector. */
export interface Recovery {
  readonly resource: string;
  /** Causes of its failures, the last one last. */
  readonly causes: readonly string[];
  /** Reason of the last failure, in a few words. */
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
 * Logs the failures of all reflectors of one server. A failure of several reflectors is one line with
 * their resources, a reminder every five minutes, and one line when all of them have recovered.
 */
export class FailureLog {
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
  failed({ cause, resource, write }: LoggedFailure): boolean {
    const outage = this.#outages.get(cause) ?? { failing: new Set(), recovered: [] };
    this.#outages.set(cause, outage);
    outage.failing.add(resource);
    return this.#lines.report(cause, resource, (seen) =>
      write(this.#log, {
        ...subjectFields('resource', 'resources', seen),
        ...(seen.forMs >= REMINDER_MS && {
          failures: seen.total,
          for: formatMilliseconds(seen.forMs),
        }),
      }),
    );
  }

  /** Records that the reflector of `resource` fails for another cause than `cause` now. */
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

  /** Records that the reflector of `resource` has stopped while it failed. */
  stopped(causes: readonly string[], resource: string): void {
    for (const cause of causes) this.#outages.get(cause)?.failing.delete(resource);
    this.#end(causes);
  }

  #end(causes: readonly string[]): void {
    for (const cause of causes) {
      this.#endIfOver(cause);
      // The next failure is a new outage. Causes that alternate within one outage do not get here.
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
    const subjects = recovered.map(({ resource }) => resource);
    const sinceMs = recovered.reduce((least, each) => Math.min(least, each.sinceMs), Infinity);
    this.#log.info('Recovered', {
      ...subjectFields('resource', 'resources', { subjects, moreSubjects: 0 }),
      from: first.from,
      failures: recovered.reduce((sum, { failures }) => sum + failures, 0),
      took: formatMilliseconds(this.#clock.monotonic() - sinceMs),
    });
  }
}

/** Dependencies of `FailureReporter`. */
export interface FailureReporterDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly resource: string;
  /**
   * Shared by the reflectors of one server.
   * @default a new one
   */
  readonly failureLog?: FailureLog | undefined;
}

/**
 * Reports the failures of one reflector to a `FailureLog`: the first, each with another reason, and the
 * recovery. Repeated failures are logged at `-v=4`.
 */
export class FailureReporter {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #resource: string;
  readonly #failureLog: FailureLog;
  #reason: string | undefined;
  #sinceMs = 0;
  #reasonSinceMs = 0;
  #failures = 0;
  /** Message of the first failure for this reason. */
  #text = '';
  /** Causes since the first failure, the last one last. */
  #causes: readonly string[] = [];

  constructor({ clock, log, resource, failureLog }: FailureReporterDeps) {
    this.#clock = clock;
    this.#log = log;
    this.#resource = resource;
    this.#failureLog = failureLog ?? new FailureLog(clock, log, false);
  }

  /** True from the first failure until `recovered`. */
  get isFailing(): boolean {
    return this.#reason !== undefined;
  }

  /**
   * @param action the failed request, such as `list`
   * @returns whether a line with all fields was logged
   */
  failed(error: unknown, action: string, retryInMs: number): boolean {
    const retryIn = formatMilliseconds(retryInMs);
    const resource = this.#resource;
    const fix = this.#count(error);
    const cause = this.#causeOf(error, fix);
    const isLogged = this.#failureLog.failed({
      cause,
      resource,
      write: (log, fields) => {
        if (isApiError(error, 'notFound')) {
          log.info('The server does not have the resource; waiting for it to appear', {
            ...fields,
            fix,
          });
          return;
        }
        log.error(error, `Failed to ${action}`, {
          ...fields,
          retryIn,
          ...(fix !== undefined && { fix }),
        });
      },
    });
    if (!isLogged) {
      this.#log.v(4).info('Failed again', { resource, action, err: messageOf(error), retryIn });
    }
    return isLogged;
  }

  /** Reports that the reflector works again. */
  recovered(): void {
    if (this.#reason === undefined) return;
    this.#failureLog.recovered({
      resource: this.#resource,
      causes: this.#causes,
      from: this.#reason,
      failures: this.#failures,
      sinceMs: this.#sinceMs,
    });
    this.#reset();
  }

  /** Reports that the reflector has stopped. */
  stop(): void {
    this.#failureLog.stopped(this.#causes, this.#resource);
    this.#reset();
  }

  #reset(): void {
    this.#reason = undefined;
    this.#causes = [];
  }

  /** Counts the failure and returns the fix for it, if known. */
  #count(error: unknown): string | undefined {
    const nowMs = this.#clock.monotonic();
    const reason = failureReason(error);
    if (this.#reason === undefined) {
      this.#sinceMs = nowMs;
      this.#failures = 0;
    }
    this.#failures++;
    if (reason !== this.#reason) {
      this.#reason = reason;
      this.#reasonSinceMs = nowMs;
      this.#text = messageOf(error);
    }
    return fixOf(error, nowMs - this.#reasonSinceMs);
  }

  /** Messages may differ with each failure, so the first one identifies the cause. */
  #causeOf(error: unknown, fix: string | undefined): string {
    const isServerFailure = error instanceof ApiError && SERVER_FAILURES.has(error.kind);
    const text = isServerFailure ? '' : `${this.#text}\0${fix === undefined}`;
    const cause = `${this.#reason}\0${text}`;
    const last = this.#causes.at(-1);
    if (last === cause) return cause;
    if (last !== undefined) this.#failureLog.changed(last, this.#resource);
    this.#causes = [...this.#causes.filter((each) => each !== cause), cause].slice(-MAX_CAUSES);
    return cause;
  }
}

/** Returns what to do about an error, where the server's message does not contain it. */
function fixOf(error: unknown, forMs: number): string | undefined {
  if (isApiError(error, 'notFound')) {
    return 'install its CustomResourceDefinition: the command check of this program prints how, or kubectl apply -f FOLDER';
  }
  if (isApiError(error, 'unauthorized') && error.code === 401) {
    return 'the server does not accept the credentials: renew the token or client certificate of the kubeconfig, and see: kubectl auth whoami';
  }
  const isMissing = isApiError(error, 'forbidden') && forMs >= DENIAL_PERSISTS_MS;
  return isMissing ? permissionToGrant(error.message) : undefined;
}

/**
 * Returns how to grant both permissions of a reflector, with commands, from the message of a 403 for
 * one of them.
 */
export function permissionToGrant(message: string): string {
  const refusal = parseForbidden(message);
  if (refusal?.user === 'system:anonymous') {
    return 'the request had no credentials: add them to the kubeconfig, and see: kubectl auth whoami';
  }
  if (!refusal) {
    return 'allow the user of the kubeconfig, or the service account, to list and watch this resource';
  }
  const { user, namespace, resource: plural } = refusal;
  const where = namespace === undefined ? 'in all namespaces' : `in the namespace ${namespace}`;
  const resource = qualifiedResource(refusal);
  const [role, scope] =
    namespace === undefined ? ['clusterrole', ''] : ['role', ` --namespace=${namespace}`];
  const name = `read-${plural}`;
  return [
    `allow ${user} to list and watch ${resource} ${where}, for example with: `,
    `kubectl create ${role}${scope} ${name} --verb=list,watch --resource=${resource}`,
    ` && kubectl create ${role}binding${scope} ${name} --${role}=${name} --user=${user}`,
    `; see: ${canICommand(refusal)}`,
    ...(namespace === undefined ? ['; or watch single namespaces only'] : []),
  ].join('');
}

function formatMilliseconds(ms: number): string {
  return formatDuration(Math.round(ms));
}
