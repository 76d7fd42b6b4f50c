import { setImmediate } from 'node:timers/promises';
import { ApiError } from '../../../src/api/api-error.ts';
import type { ApiErrorInit } from '../../../src/api/api-error.ts';
import type { Client, Patch } from '../../../src/client/client.ts';
import type { RecordedEvent } from '../../../src/record/recorded-event.ts';

export interface Call {
  readonly verb: 'create' | 'patch';
  readonly name: string;
  readonly object: string;
}

/** Fake API server that stores Events, and fails requests as configured. */
export class FakeEventServer {
  readonly events = new Map<string, RecordedEvent>();
  readonly calls: Call[] = [];
  /** The bodies of all patches that are not empty. */
  readonly patches: Patch[] = [];
  /** Called before each request. A returned error fails the request; a pending promise delays it. */
  fault: (call: Call) => Promise<Error | undefined> | Error | undefined = () => undefined;
  /** Called after each request. A returned error fails the request although it was executed. */
  lostResponse: (call: Call) => Error | undefined = () => undefined;
  /** Maximum number of concurrent requests so far. */
  maxConcurrency = 0;
  #concurrency = 0;

  get client(): Pick<Client, 'create' | 'patch'> {
    return {
      create: async (_resource, object, options) => {
        const event = object as unknown as RecordedEvent;
        const { name, namespace } = event.metadata;
        await this.#serve(
          { verb: 'create', name, object: event.involvedObject.name },
          options,
          () => {
            const key = `${namespace}/${name}`;
            if (this.events.has(key)) throw apiError('alreadyExists', { code: 409 });
            this.events.set(key, event);
          },
        );
        return object as never;
      },
      patch: async (_resource, at, patch, options) => {
        const key = `${at.namespace}/${at.name}`;
        const object = this.events.get(key)?.involvedObject.name ?? '';
        await this.#serve({ verb: 'patch', name: at.name, object }, options, () => {
          const event = this.events.get(key);
          if (!event) throw apiError('notFound', { code: 404 });
          if (Object.keys(patch.body).length > 0) this.patches.push(patch);
          const { metadata: _, involvedObject: reference, ...fields } = patch.body as RecordedEvent;
          const involvedObject = { ...event.involvedObject, ...reference };
          this.events.set(key, { ...event, ...fields, involvedObject });
        });
        return this.events.get(key) as never;
      },
    };
  }

  /** The stored events, as `<object> <reason> <message> x<count>`. */
  get stored(): string[] {
    return Array.from(
      this.events.values(),
      ({ involvedObject, reason, message, count }) =>
        `${involvedObject.name} ${reason} ${message} x${count}`,
    );
  }

  async #serve(call: Call, options: { signal?: AbortSignal | undefined } = {}, work: () => void) {
    this.calls.push(call);
    this.maxConcurrency = Math.max(this.maxConcurrency, ++this.#concurrency);
    try {
      await setImmediate();
      const fault = await this.fault(call);
      if (options.signal?.aborted) throw options.signal.reason;
      if (fault) throw fault;
      work();
      const lost = this.lostResponse(call);
      if (lost) throw lost;
    } finally {
      this.#concurrency--;
    }
  }
}

export function apiError(kind: ApiErrorInit['kind'], init: Partial<ApiErrorInit> = {}): ApiError {
  return new ApiError({ kind, message: kind, ...init });
}
