import { isApiError } from '../../api/api-error.ts';
import { failureReason } from '../../client/transport/connection-error.ts';
import type { Clock } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import type { Logger } from '../../util/logger.ts';
import { messageOf } from '../../util/message-of.ts';
import { permissionToGrant } from './permission.ts';

/** Trouble that lasts is mentioned again after so long, in milliseconds. */
const REMINDER_MS = 5 * 60_000;
/** The same for a reason that returns after another one. */
const RETURN_MS = 60_000;

/**
 * Logs a reflector's failures: one line when they begin or their reason changes, a reminder every
 * five minutes, one line when they are over. The failures between are logged at `-v=4`.
 */
export class Trouble {
  readonly #clock: Clock;
  readonly #log: Logger;
  #reason: string | undefined;
  #sinceMs = 0;
  #loggedReason: string | undefined;
  /** When each reason was last logged: reasons that alternate must not cost one line per failure. */
  readonly #loggedMs = new Map<string, number>();
  #failures = 0;

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
  }

  /** True from the first failure until `over`. */
  get present(): boolean {
    return this.#reason !== undefined;
  }

  /**
   * @param action what could not be done: `list`
   * @returns true if people were told
   */
  failed(error: unknown, action: string, retryInMs: number): boolean {
    const reason = failureReason(error);
    const nowMs = this.#clock.monotonic();
    const retryIn = legible(retryInMs);
    if (this.#reason === undefined) {
      this.#sinceMs = nowMs;
      this.#failures = 0;
    }
    this.#failures++;
    this.#reason = reason;
    const quietMs = reason === this.#loggedReason ? REMINDER_MS : RETURN_MS;
    if (nowMs - (this.#loggedMs.get(reason) ?? -Infinity) < quietMs) {
      this.#log.v(4).info('Failed again', { action, err: messageOf(error), retryIn });
      return false;
    }
    this.#loggedReason = reason;
    this.#loggedMs.set(reason, nowMs);
    if (isApiError(error, 'notFound')) {
      this.#log.info('The server does not have the resource; waiting for it to appear', {
        fix: 'install its CustomResourceDefinition, for example with: kubectl apply -f crds/',
      });
      return true;
    }
    this.#log.error(error, `Failed to ${action}`, {
      retryIn,
      ...(this.#failures > 1
        ? { failures: this.#failures, for: legible(nowMs - this.#sinceMs) }
        : {}),
      ...fixOf(error),
    });
    return true;
  }

  /** It works again. */
  over(): void {
    if (this.#reason === undefined) return;
    const took = legible(this.#clock.monotonic() - this.#sinceMs);
    this.#log.info('Recovered', { from: this.#reason, failures: this.#failures, took });
    this.#reason = undefined;
    this.#loggedMs.clear();
  }
}

/** What servers leave unsaid: that of a 401 is the one word `Unauthorized`. */
function fixOf(error: unknown): { readonly fix?: string } {
  if (isApiError(error, 'unauthorized') && error.code === 401) {
    return {
      fix: 'the server does not accept the credentials: renew the token or client certificate of the kubeconfig, and see: kubectl auth whoami',
    };
  }
  return isApiError(error, 'forbidden') ? { fix: permissionToGrant(error.message) } : {};
}

/** To the millisecond: as exact as anybody wants to know. */
function legible(ms: number): string {
  return formatDuration(Math.round(ms));
}
