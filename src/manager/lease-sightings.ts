import type { Lease } from '../api/builtin.ts';
import { objectKey } from '../api/object-key.ts';
import type { Clock } from '../util/clock.ts';

/** A Lease as this process last saw it. */
export interface LeaseSighting {
  /** `namespace/name` */
  readonly lease: string;
  /** Empty: nobody. */
  readonly holder: string;
  /** Since when, by the clock of the holder; RFC 3339. */
  readonly acquireTime: string | undefined;
  /** How long ago it was seen, in milliseconds. */
  readonly seenMsAgo: number;
}

/** Remembers the Leases that an election is about, for people who ask who leads. */
export class LeaseSightings {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #seen = new Map<string, { readonly lease: Lease; readonly atMs: number }>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** One of the Leases was read, heard of or written: there are as many as were configured. */
  readonly saw = (lease: Lease): void => {
    const { namespace, name } = lease.metadata;
    this.#seen.set(objectKey(namespace, name), { lease, atMs: this.#clock.monotonic() });
  };

  /** In the order of their names. */
  get all(): LeaseSighting[] {
    const nowMs = this.#clock.monotonic();
    return [...this.#seen]
      .toSorted(([a], [b]) => a.localeCompare(b, 'en', { numeric: true }))
      .map(([key, { lease, atMs }]) => ({
        lease: key,
        holder: lease.spec?.holderIdentity ?? '',
        acquireTime: lease.spec?.acquireTime,
        seenMsAgo: nowMs - atMs,
      }));
  }
}
