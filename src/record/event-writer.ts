import { ApiError, isApiError } from '../api/api-error.ts';
import { objectKey } from '../api/object-key.ts';
import type { KubernetesObject, StrategicMergePatch } from '../api/object.ts';
import type { Client } from '../client/client.ts';
import { LruMap } from '../util/lru-map.ts';
import { truncateBytes } from '../util/truncate.ts';
import type { EventApi } from './event-api.ts';
import { OCCURRENCE } from './recorded-event.ts';
import type { RecordedEvent } from './recorded-event.ts';

/** Maximum number of events that the writer remembers. */
const REMEMBERED = 4096;

/** Maximum length of a field manager's name, in bytes. */
const MAX_MANAGER_BYTES = 128;
/** Characters that the server rejects in the name of a field manager, as Go's `unicode.IsPrint`. */
const NOT_PRINTABLE = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu;

/** The known state of an event on the server. */
interface StoredEvent {
  /** Occurrences counted by other processes before this one. */
  readonly before: number;
  readonly resourceVersion: string | undefined;
}

/**
 * Creates and patches events on the server.
 *
 * The name of an event follows from its content, so another process may have written it before: the
 * previous leader, or the previous owner of a shard. The writer continues the count of that event. The last
 * occurrence of the event on the server is not counted again: it was repeated after a crash. It is recognized by the
 * annotation `OCCURRENCE`, or else by the resourceVersion of the object.
 */
export class EventWriter<T extends KubernetesObject> {
  readonly #client: Pick<Client, 'create' | 'patch'>;
  readonly #api: EventApi<T>;
  /** Written events by key. */
  readonly #stored = new LruMap<string, StoredEvent>(REMEMBERED);

  constructor(client: Pick<Client, 'create' | 'patch'>, api: EventApi<T>) {
    this.#client = client;
    this.#api = api;
  }

  /**
   * Makes the server's event include the occurrences of `event`. Servers drop events after a while (an
   * hour); then it is created again.
   */
  async write(event: RecordedEvent, signal: AbortSignal): Promise<void> {
    const known = this.#stored.get(keyOf(event));
    if (known && (await this.#update(event, known, signal))) return;
    try {
      const fieldManager = fieldManagerOf(event);
      const { resource } = this.#api;
      const draft = this.#api.draft(event);
      const stored = await this.#client.create(resource, draft, { fieldManager, signal });
      this.#remember(event, stored, 0);
    } catch (error) {
      if (!isApiError(error, 'alreadyExists') || !(await this.#continue(event, signal)))
        throw error;
    }
  }

  /** @returns false if the server does not have the event */
  async #update(event: RecordedEvent, known: StoredEvent, signal: AbortSignal): Promise<boolean> {
    const { before, resourceVersion } = known;
    const body = this.#api.repetition(event, before + event.count, resourceVersion);
    try {
      const stored = await this.#patch(event, body, signal);
      if (stored) this.#remember(event, stored, before);
      return stored !== undefined;
    } catch (error) {
      // Another process has counted an occurrence, or the response to our own write was lost.
      if (isApiError(error, 'conflict')) return this.#continue(event, signal);
      throw error;
    }
  }

  /** Continues the count of the event on the server. @returns false if there is none */
  async #continue(event: RecordedEvent, signal: AbortSignal): Promise<boolean> {
    // An empty patch reads the event: emitters have no permission to get events.
    const stored = await this.#patch(event, this.#api.emptyPatch, signal);
    if (!stored) return false;
    const total = this.#api.countOf(stored);
    const isSame = this.#isSameOccurrence(event, stored);
    const before = Math.max(0, total - event.count + (isSame ? 0 : 1));
    this.#remember(event, stored, before);
    if (before + event.count <= total) return true;
    const { resourceVersion } = stored.metadata;
    return this.#update(event, { before, resourceVersion }, signal);
  }

  #isSameOccurrence({ metadata, involvedObject }: RecordedEvent, stored: T): boolean {
    const own = metadata.annotations?.[OCCURRENCE];
    const last = stored.metadata.annotations?.[OCCURRENCE];
    // An earlier version of the program wrote events without the annotation.
    if (own !== undefined && last !== undefined) return own === last;
    return this.#api.subjectVersionOf(stored) === involvedObject.resourceVersion;
  }

  /** @returns undefined if there is nothing to patch */
  async #patch(
    event: RecordedEvent,
    body: StrategicMergePatch<T>,
    signal: AbortSignal,
  ): Promise<T | undefined> {
    const options = { fieldManager: fieldManagerOf(event), signal };
    const patch = { type: 'strategic', body } as const;
    try {
      return await this.#client.patch(this.#api.resource, event.metadata, patch, options);
    } catch (error) {
      if (isApiError(error, 'notFound')) return undefined;
      throw error;
    }
  }

  #remember(event: RecordedEvent, { metadata }: T, before: number): void {
    const { resourceVersion } = metadata;
    this.#stored.set(keyOf(event), { before, resourceVersion });
  }
}

function keyOf({ metadata }: RecordedEvent): string {
  return objectKey(metadata.namespace, metadata.name);
}

function fieldManagerOf({ source }: RecordedEvent): string {
  return truncateBytes(source.component.replaceAll(NOT_PRINTABLE, '?'), MAX_MANAGER_BYTES);
}

/** Classification of a failed attempt to write an event. */
export type WriteFailure =
  /** Retry later: the server failed, or the cause is unknown. */
  | 'retry'
  /** The event cannot be sent as a request. */
  | 'impossible'
  /** The server rejected the event. */
  | 'rejected'
  /** Not an error: the event exists already, or its namespace is being deleted. */
  | 'unnecessary';

export function classifyFailure(error: unknown): WriteFailure {
  // Transport failures are ApiErrors; a TypeError is thrown before anything is sent.
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
    // Only the namespace can be missing.
    case 'notFound':
      return 'unnecessary';
    default:
      return error.hasCause('NamespaceTerminating') ? 'unnecessary' : 'rejected';
  }
}
