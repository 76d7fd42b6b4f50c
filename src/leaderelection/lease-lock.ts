import { isApiError } from '../api/api-error.ts';
import { LEASES } from '../api/builtin.ts';
import type { Lease } from '../api/builtin.ts';
import { objectKey } from '../api/object-key.ts';
import { apiVersionOf } from '../api/resource.ts';
import type { Client } from '../client/client.ts';
import type { LeaseSpec } from './lease-state.ts';

/** The requests that a lease lock sends. */
export type LeaseClient = Pick<Client, 'get' | 'watch' | 'create' | 'update'>;

/** Options of `LeaseLock`. */
export interface LeaseLockOptions {
  readonly namespace: string;
  readonly name: string;
  /**
   * Labels added to the lease with every write.
   * @default none
   */
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

/** Options of `LeaseLock.watch`. */
export interface LeaseWatchOptions {
  /** Requested duration of the watch. */
  readonly timeoutSeconds: number;
  readonly signal: AbortSignal;
}

/** A state of the lease, or its last state before it was deleted. */
export interface LeaseChange {
  readonly lease: Lease;
  readonly isDeleted: boolean;
}

/** The longest name of a field manager that a server accepts. */
const LONGEST_MANAGER = 128;

/** Returns the field manager of writes: the name of the Lease, by convention that of the program. */
export function fieldManagerOf(lease: string): string {
  return lease.slice(0, LONGEST_MANAGER);
}

/** Reads and writes one Lease. `LeaderElector` decides who holds it. */
export class LeaseLock {
  /** `namespace/name`, for messages. */
  readonly key: string;
  readonly #client: LeaseClient;
  readonly #at: { readonly namespace: string; readonly name: string };
  readonly #labels: Readonly<Record<string, string>>;

  constructor(client: LeaseClient, { namespace, name, labels = {} }: LeaseLockOptions) {
    this.key = objectKey(namespace, name);
    this.#client = client;
    this.#at = { namespace, name };
    this.#labels = labels;
  }

  /** Reads the lease by a quorum read; undefined if it does not exist. */
  async get(signal: AbortSignal): Promise<Lease | undefined> {
    try {
      return await this.#client.get(LEASES, this.#at, { signal });
    } catch (error) {
      if (isApiError(error, 'notFound')) return undefined;
      throw error;
    }
  }

  /**
   * Yields the lease, its state after each change, and its deletion. Ends when the server ends the watch or when
   * `signal` aborts.
   */
  async *watch({ timeoutSeconds, signal }: LeaseWatchOptions): AsyncGenerator<LeaseChange> {
    const { namespace, name } = this.#at;
    const fieldSelector = `metadata.name=${name}`;
    const options = { namespace, fieldSelector, timeoutSeconds, signal };
    for await (const event of await this.#client.watch(LEASES, options)) {
      if (event.type === 'error') throw event.error;
      if (event.type === 'bookmark' || event.object.metadata.name !== name) continue;
      yield { lease: event.object, isDeleted: event.type === 'deleted' };
    }
  }

  /** Creates the lease. Rejects with `alreadyExists` if another process was faster. */
  create(spec: LeaseSpec, signal: AbortSignal): Promise<Lease> {
    const labels = { ...this.#labels };
    return this.#client.create(
      LEASES,
      {
        apiVersion: apiVersionOf(LEASES),
        kind: LEASES.kind,
        metadata: { ...this.#at, ...(Object.keys(labels).length > 0 && { labels }) },
        spec,
      },
      { fieldManager: fieldManagerOf(this.#at.name), signal },
    );
  }

  /**
   * Replaces the spec of `lease` in exactly that state. Rejects with `conflict` if it was changed or deleted
   * since.
   */
  update(lease: Lease, spec: LeaseSpec, signal: AbortSignal): Promise<Lease> {
    const labels = { ...lease.metadata.labels, ...this.#labels };
    const metadata = {
      ...lease.metadata,
      ...(Object.keys(labels).length > 0 && { labels }),
    };
    const fieldManager = fieldManagerOf(this.#at.name);
    return this.#client.update(LEASES, { ...lease, metadata, spec }, { fieldManager, signal });
  }
}
