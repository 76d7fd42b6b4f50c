import { ApiError, isApiError } from '../../api/api-error.ts';
import type { Clock } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import type { Logger } from '../../util/logger.ts';
import { messageOf } from '../../util/message-of.ts';
import { permissionToGrant } from './permission.ts';

/** Trouble that lasts is mentioned again after so long, in milliseconds. */
const REMINDER_MS = 5 * 60_000;

/**
 * Tells people about a reflector's failures: one line when trouble begins or changes its kind, a
 * reminder every five minutes, one line when it is over. What lies between is shown at `-v=4`.
 */
export class Trouble {
  readonly #clock: Clock;
  readonly #log: Logger;
  #kind: string | undefined;
  #sinceMs = 0;
  #toldMs = 0;
  #failures = 0;

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
  }

  /** True from the first failure until `over`. */
  get present(): boolean {
    return this.#kind !== undefined;
  }

  /**
   * @param action what could not be done: `list`
   * @returns true if people were told
   */
  failed(error: unknown, action: string, retryInMs: number): boolean {
    const kind = kindOf(error);
    const nowMs = this.#clock.monotonic();
    const retryIn = legible(retryInMs);
    if (this.#kind === undefined) {
      this.#sinceMs = nowMs;
      this.#failures = 0;
    }
    this.#failures++;
    if (kind === this.#kind && nowMs - this.#toldMs < REMINDER_MS) {
      this.#log.v(4).info('Failed again', { action, err: messageOf(error), retryIn });
      return false;
    }
    this.#kind = kind;
    this.#toldMs = nowMs;
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
    if (this.#kind === undefined) return;
    const took = legible(this.#clock.monotonic() - this.#sinceMs);
    this.#log.info('Recovered', { from: this.#kind, failures: this.#failures, took });
    this.#kind = undefined;
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

/** For people: the same kind of trouble is not told twice. */
function kindOf(error: unknown): string {
  if (error instanceof ApiError) return error.kind;
  return error instanceof Error ? error.name : typeof error;
}
