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

/** As much of an API server as events need: it stores them, and fails when told to. */
export class FakeEventServer {
  readonly events = new Map<string, RecordedEvent>();
  readonly calls: Call[] = [];
  /** What was sent to be patched. */
  readonly patches: Patch[] = [];
  /** Asked before each call; an error fails it. It may also keep the call waiting. */
  fault: (call: Call) => Promise<Error | undefined> | Error | undefined = () => undefined;
  /** As `fault`, but after the call was carried out: its answer is lost. */
  lostAnswer: (call: Call) => Error | undefined = () => undefined;
  /** Most calls that were under way at once. */
  mostAtOnce = 0;
  #atOnce = 0;

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
          const { metadata: _, involvedObject: about, ...said } = patch.body as RecordedEvent;
          const involvedObject = { ...event.involvedObject, ...about };
          this.events.set(key, { ...event, ...said, involvedObject });
        });
        return this.events.get(key) as never;
      },
    };
  }

  /** What is stored, as `<object> <reason> <message> x<count>`. */
  get stored(): string[] {
    return Array.from(
      this.events.values(),
      ({ involvedObject, reason, message, count }) =>
        `${involvedObject.name} ${reason} ${message} x${count}`,
    );
  }

  async #serve(call: Call, options: { signal?: AbortSignal | undefined } = {}, work: () => void) {
    this.calls.push(call);
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.#atOnce);
    try {
      await setImmediate();
      const fault = await this.fault(call);
      if (options.signal?.aborted) throw options.signal.reason;
      if (fault) throw fault;
      work();
      const lost = this.lostAnswer(call);
      if (lost) throw lost;
    } finally {
      this.#atOnce--;
    }
  }
}

export function apiError(kind: ApiErrorInit['kind'], init: Partial<ApiErrorInit> = {}): ApiError {
  return new ApiError({ kind, message: kind, ...init });
}
