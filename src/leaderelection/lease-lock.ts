import { isApiError } from '../api/api-error.ts';
import { LEASES } from '../api/builtin.ts';
import type { Lease } from '../api/builtin.ts';
import { objectKey } from '../api/object-key.ts';
import { apiVersionOf } from '../api/resource.ts';
import type { Client } from '../client/client.ts';
import type { LeaseSpec } from './election.ts';

/** As much of a client as a lease takes. */
export type LeaseClient = Pick<Client, 'get' | 'watch' | 'create' | 'update'>;

export interface LeaseLockOptions {
  readonly namespace: string;
  readonly name: string;
  /**
   * Put on the lease with every write, beside the labels it has.
   * @default none
   */
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

export interface LeaseWatchOptions {
  /** After how long the server is asked to end it. */
  readonly timeoutSeconds: number;
  readonly signal: AbortSignal;
}

/** Reads and writes one Lease. Who holds it is not decided here. */
export class LeaseLock {
  /** `namespace/name`: what messages call it. */
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

  /** The lease as it is now: the read goes to the quorum. Undefined if there is none. */
  async get(signal: AbortSignal): Promise<Lease | undefined> {
    try {
      return await this.#client.get(LEASES, this.#at, { signal });
    } catch (error) {
      if (isApiError(error, 'notFound')) return undefined;
      throw error;
    }
  }

  /**
   * The lease as it is now, and then after each change; undefined once it is deleted. Ends when the
   * server ends it, or quietly when `signal` aborts.
   */
  async *watch({ timeoutSeconds, signal }: LeaseWatchOptions): AsyncGenerator<Lease | undefined> {
    const { namespace, name } = this.#at;
    const fieldSelector = `metadata.name=${name}`;
    const options = { namespace, fieldSelector, timeoutSeconds, signal };
    for await (const event of await this.#client.watch(LEASES, options)) {
      if (event.type === 'error') throw event.error;
      if (event.type === 'bookmark' || event.object.metadata.name !== name) continue;
      yield event.type === 'deleted' ? undefined : event.object;
    }
  }

  /** Fails with `alreadyExists` where another was quicker. */
  create(spec: LeaseSpec, signal: AbortSignal): Promise<Lease> {
    const labels = { ...this.#labels };
    return this.#client.create(
      LEASES,
      {
        apiVersion: apiVersionOf(LEASES),
        kind: LEASES.kind,
        metadata: { ...this.#at, ...(Object.keys(labels).length > 0 ? { labels } : {}) },
        spec,
      },
      { signal },
    );
  }

  /**
   * Replaces the spec of `lease`: of that object, and in that state. Fails with `conflict` if
   * somebody has written to it since, or has deleted it.
   */
  update(lease: Lease, spec: LeaseSpec, signal: AbortSignal): Promise<Lease> {
    const labels = { ...lease.metadata.labels, ...this.#labels };
    const metadata = {
      ...lease.metadata,
      ...(Object.keys(labels).length > 0 ? { labels } : {}),
    };
    return this.#client.update(LEASES, { ...lease, metadata, spec }, { signal });
  }
}
