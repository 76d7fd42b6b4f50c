import { ApiError, isApiError } from '../../api/api-error.ts';
import { REFUSAL_PERSISTS_MS } from '../../client/refusal-log.ts';
import { failureReason } from '../../client/transport/connection-error.ts';
import type { Clock } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import type { Logger } from '../../util/logger.ts';
import { messageOf } from '../../util/values.ts';
import { permissionToGrant } from './permission.ts';
import { TroubleLog } from './trouble-log.ts';

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

export interface TroubleDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly resource: string;
  /**
   * Shared by the reflectors of one server.
   * @default one of its own
   */
  readonly troubles?: TroubleLog | undefined;
}

/**
 * The failures of one reflector. `TroubleLog` logs when they begin or change their reason, a reminder
 * every five minutes, and their end. Failures between are logged at `-v=4`.
 */
export class Trouble {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #resource: string;
  readonly #troubles: TroubleLog;
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
    this.#troubles = troubles ?? new TroubleLog(clock, log, false);
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

/** To the millisecond. */
function legible(ms: number): string {
  return formatDuration(Math.round(ms));
}
