import type { Clock } from '../util/clock.ts';
import { formatDuration } from '../util/duration.ts';
import type { LogFields, Logger } from '../util/logger.ts';
import { RateLimitedLog, subjectFields } from '../util/rate-limited-log.ts';
import { ApiError, isApiError } from '../api/api-error.ts';
import { REFUSAL_PERSISTS_MS } from '../client/missing-permissions.ts';
import { failureReason } from '../client/transport/connection-error.ts';
import { messageOf } from '../util/values.ts';
import { canICommand, parseForbidden, qualifiedResource } from '../api/permission.ts';

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

/** Kinds of failure that are the same for every resource of a server. */
const OF_THE_SERVER: ReadonlySet<string> = new Set<ApiError['kind']>([
  'unreachable',
  'unauthorized',
  'unavailable',
  'timeout',
  'tooManyRequests',
  // Its line says nothing but the names of the resources.
  'notFound',
]);

/** Causes of one reflector's failures that are remembered. */
const MAX_CAUSES = 20;

/** Dependencies of `Trouble`. */
export interface TroubleDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly resource: string;
  /**
   * Shared by the reflectors of one server.
   * @default one of its own
   */
  readonly troubles?: FailureLog | undefined;
}

/**
 * The failures of one reflector. `FailureLog` logs when they begin or change their reason, a reminder
 * every five minutes, and their end. Failures between are logged at `-v=4`.
 */
export class FailureReporter {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #resource: string;
  readonly #troubles: FailureLog;
  #reason: string | undefined;
  #sinceMs = 0;
  #reasonSinceMs = 0;
  #failures = 0;
  /** Message of the first failure for this reason. */
  #text = '';
  /** Since the first failure; the last one last. */
  #causes: readonly string[] = [];

  constructor({ clock, log, resource, troubles }: TroubleDeps) {
    this.#clock = clock;
    this.#log = log;
    this.#resource = resource;
    this.#troubles = troubles ?? new FailureLog(clock, log, false);
  }

  /** True from the first failure until `over`. */
  get present(): boolean {
    return this.#reason !== undefined;
  }

  /**
   * @param action what failed: `list`
   * @returns true if it is logged at length
   */
  failed(error: unknown, action: string, retryInMs: number): boolean {
    const retryIn = legible(retryInMs);
    const resource = this.#resource;
    const fix = this.#begin(error);
    const cause = this.#causeOf(error, fix);
    const isLogged = this.#troubles.failed({
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

  /** It works again. */
  over(): void {
    if (this.#reason === undefined) return;
    this.#troubles.recovered({
      resource: this.#resource,
      causes: this.#causes,
      from: this.#reason,
      failures: this.#failures,
      sinceMs: this.#sinceMs,
    });
    this.#forget();
  }

  /** The reflector has stopped. */
  stop(): void {
    this.#troubles.stopped(this.#causes, this.#resource);
    this.#forget();
  }

  #forget(): void {
    this.#reason = undefined;
    this.#causes = [];
  }

  /** Counts the failure. Returns what to do about it. */
  #begin(error: unknown): string | undefined {
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

  /** Messages may differ each time: until the reason changes, the first one counts. */
  #causeOf(error: unknown, fix: string | undefined): string {
    const text = isOfTheServer(error) ? '' : `${this.#text}\0${fix === undefined}`;
    const cause = `${this.#reason}\0${text}`;
    const last = this.#causes.at(-1);
    if (last === cause) return cause;
    if (last !== undefined) this.#troubles.changed(last, this.#resource);
    this.#causes = [...this.#causes.filter((each) => each !== cause), cause].slice(-MAX_CAUSES);
    return cause;
  }
}

function isOfTheServer(error: unknown): boolean {
  return error instanceof ApiError && OF_THE_SERVER.has(error.kind);
}

/** What servers leave unsaid: the message of a 401 is the one word `Unauthorized`. */
function fixOf(error: unknown, forMs: number): string | undefined {
  if (isApiError(error, 'notFound')) {
    return 'install its CustomResourceDefinition, for example with: kubectl apply -f crds/';
  }
  if (isApiError(error, 'unauthorized') && error.code === 401) {
    return 'the server does not accept the credentials: renew the token or client certificate of the kubeconfig, and see: kubectl auth whoami';
  }
  const isMissing = isApiError(error, 'forbidden') && forMs >= REFUSAL_PERSISTS_MS;
  return isMissing ? permissionToGrant(error.message) : undefined;
}

/**
 * What to grant so that a cache can be filled, in words and as commands, from the words of the
 * refusal: both requests of a reflector, whichever of them was refused.
 */
export function permissionToGrant(message: string): string {
  const refusal = parseForbidden(message);
  if (refusal?.user === 'system:anonymous') {
    return 'the server was not told who asks: give credentials in the kubeconfig, and see: kubectl auth whoami';
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
    ...(namespace === undefined ? ['; or look after single namespaces only'] : []),
  ].join('');
}
