import type { Step, StepFault } from './step.ts';

/**
 * Durations of the troubles of the server, in milliseconds. A restore takes the start of etcd and of an API server: informers
 * rely on more than 2 s.
 */
const OUTAGE_MS = 60_000;
const REFUSAL_MS = 120_000;
const RESTORE_MS = 3_000;

/** Outages, restores and refusals of a schedule, which last for a time. */
export class ServerTroubles {
  readonly #elapsedMs: () => number;
  #outageEndMs = 0;
  #restoreEndMs = 0;
  #refused: { readonly resource: string; readonly endMs: number } | undefined;

  /** @param elapsedMs virtual time */
  constructor(elapsedMs: () => number) {
    this.#elapsedMs = elapsedMs;
  }

  startOutage(): void {
    this.#outageEndMs = this.#elapsedMs() + OUTAGE_MS;
  }

  startRestore(): void {
    this.#restoreEndMs = this.#elapsedMs() + RESTORE_MS;
  }

  /** Refuses writes of the resource of a step. */
  startRefusal({ call }: Step): void {
    const { group, resource } = call?.info ?? {};
    this.#refused = { resource: `${group}/${resource}`, endMs: this.#elapsedMs() + REFUSAL_MS };
  }

  /** Returns the consequence for a request, or undefined. */
  consequenceFor({ kind, isFaulty, call }: Step): StepFault | undefined {
    if (kind !== 'request' || !call?.info) return undefined;
    const elapsedMs = this.#elapsedMs();
    if (elapsedMs < this.#restoreEndMs) return 'reset';
    if (!isFaulty) return undefined;
    if (elapsedMs < this.#outageEndMs) return 'reset';
    const { group, resource, verb } = call.info;
    const isRefused =
      this.#refused !== undefined &&
      elapsedMs < this.#refused.endMs &&
      this.#refused.resource === `${group}/${resource}` &&
      call.isWrite &&
      verb !== 'delete';
    return isRefused ? 403 : undefined;
  }
}
