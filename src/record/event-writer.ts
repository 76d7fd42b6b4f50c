import { ApiError, isApiError } from '../api/api-error.ts';
import { EVENTS } from '../api/builtin.ts';
import { objectKey } from '../api/object-key.ts';
import type { Client } from '../client/client.ts';
import { LruMap } from '../util/lru-map.ts';
import type { RecordedEvent } from './recorded-event.ts';

/** How many events the writer knows to be on the server. */
const REMEMBERED = 4096;

/** The longest name of a field manager that a server accepts. */
const LONGEST_MANAGER = 128;

/** Brings single events to the server, whichever of creating and patching it takes. */
export class EventWriter {
  readonly #client: Pick<Client, 'create' | 'patch'>;
  /** Keys of events that the server has, or had. */
  readonly #stored = new LruMap<string, true>(REMEMBERED);

  constructor(client: Pick<Client, 'create' | 'patch'>) {
    this.#client = client;
  }

  /**
   * Makes the server's event what `event` is. The server drops events after a while (an hour), and
   * then it is created anew.
   */
  async write(event: RecordedEvent, signal: AbortSignal): Promise<void> {
    const key = objectKey(event.metadata.namespace, event.metadata.name);
    if (this.#stored.get(key) && (await this.#patch(event, signal))) return;
    try {
      await this.#client.create(EVENTS, event, { fieldManager: fieldManagerOf(event), signal });
      this.#stored.set(key, true);
    } catch (error) {
      if (!isApiError(error, 'alreadyExists')) throw error;
      // Ours all the same: an answer was lost, or it is from before we forgot it.
      this.#stored.set(key, true);
      if (event.count === 1 || !(await this.#patch(event, signal))) throw error;
    }
  }

  /** @returns false if there is nothing to patch */
  async #patch(event: RecordedEvent, signal: AbortSignal): Promise<boolean> {
    const { metadata, count, lastTimestamp, message } = event;
    try {
      await this.#client.patch(
        EVENTS,
        metadata,
        { type: 'strategic', body: { count, lastTimestamp, message } },
        { fieldManager: fieldManagerOf(event), signal },
      );
      return true;
    } catch (error) {
      if (isApiError(error, 'notFound')) return false;
      throw error;
    }
  }
}

function fieldManagerOf({ source }: RecordedEvent): string {
  return source.component.slice(0, LONGEST_MANAGER);
}

/** What a failed attempt to write an event calls for. */
export type WriteFailure =
  /** Try again later: the server is at fault, or nobody knows. */
  | 'retry'
  /** No request can be made of this event. */
  | 'impossible'
  /** The server does not want this event. */
  | 'rejected'
  /** As `rejected`, but as it should be: it is there already, or its namespace is (almost) gone. */
  | 'pointless';

export function classifyFailure(error: unknown): WriteFailure {
  // What goes wrong on the way is an ApiError; this is what a client throws before it sends anything.
  if (error instanceof TypeError) return 'impossible';
  if (!(error instanceof ApiError)) return 'retry';
  switch (error.kind) {
    case 'tooManyRequests':
    case 'internal':
    case 'unavailable':
    case 'timeout':
    case 'unreachable':
    case 'malformed':
      return 'retry';
    case 'alreadyExists':
    // Of what creating an event needs, only the namespace can be missing.
    case 'notFound':
      return 'pointless';
    default:
      return error.hasCause('NamespaceTerminating') ? 'pointless' : 'rejected';
  }
}
