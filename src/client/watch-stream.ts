import { ApiError } from '../api/api-error.ts';
import type { KubernetesObject, WatchEvent } from '../api/object.ts';
import type { Clock } from '../util/clock.ts';
import type { ConnectionActivity } from '../util/http.ts';
import type { WatchStream } from './client.ts';
import { unreachable } from './transport/connection-error.ts';
import type { Decoder, Expected } from './decoder.ts';
import { malformed } from './json.ts';
import { isRecord } from '../util/values.ts';

/** Options of `watchStream`. */
export interface WatchStreamOptions<T extends KubernetesObject> extends Expected<T> {
  readonly body: AsyncIterable<Uint8Array>;
  /** The activity of the connection. */
  readonly activity?: ConnectionActivity | undefined;
  readonly decoder: Decoder;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Name of the watch in error messages: `GET https://…`. */
  readonly call: string;
  readonly signal?: AbortSignal | undefined;
  /**
   * Maximum length of a line, in bytes. Servers reject objects above 3 MiB; JSON can double that.
   * @default 16 MiB
   */
  readonly maxLineBytes?: number | undefined;
}

const MAX_LINE_BYTES = 16 * 1024 * 1024;
const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

/**
 * Decodes the response body of a watch, with one JSON object in each line, into events. A line that is not an
 * event, or is incomplete, ends the iteration with an `ApiError` after the events before it. Each byte is
 * copied at most once before it is parsed.
 */
export function watchStream<T extends KubernetesObject>(
  options: WatchStreamOptions<T>,
): WatchStream<T> {
  const { body, clock, call, signal, maxLineBytes = MAX_LINE_BYTES } = options;
  let lastByteMs = clock.monotonic();

  async function* batches(): AsyncGenerator<WatchEvent<T>[], void, undefined> {
    const lines = new LineSplitter(maxLineBytes, call);
    try {
      for await (const chunk of body) {
        lastByteMs = clock.monotonic();
        const { events, fault } = decodeEvents(lines.push(chunk), options);
        if (events.length > 0) yield events;
        if (fault) throw fault.error;
      }
      const rest = lines.rest();
      if (rest.length > 0) yield [decodeLast(rest, options)];
    } catch (error) {
      if (signal?.aborted) return;
      throw unreachable(error, call);
    }
  }

  return {
    activity: options.activity,
    get lastByteMs() {
      return lastByteMs;
    },
    batches,
    async *[Symbol.asyncIterator]() {
      for await (const batch of batches()) yield* batch;
    },
  };
}

/** Splits chunks into lines and skips blank lines. */
class LineSplitter {
  readonly #maxBytes: number;
  readonly #call: string;
  /** Chunks of the incomplete line. */
  #partial: Buffer[] = [];
  #partialBytes = 0;

  constructor(maxBytes: number, call: string) {
    this.#maxBytes = maxBytes;
    this.#call = call;
  }

  *push(bytes: Uint8Array): Generator<Buffer, void, undefined> {
    const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      const part = chunk.subarray(start, end);
      const line = withoutCarriageReturn(
        this.#partialBytes === 0 ? this.#checkLength(part) : this.#finish(part),
      );
      start = end + 1;
      if (line.length > 0) yield line;
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start));
  }

  /** Returns the bytes after the last newline. */
  rest(): Buffer {
    return withoutCarriageReturn(this.#finish(Buffer.of()));
  }

  #finish(end: Buffer): Buffer {
    this.#keep(end);
    const line = Buffer.concat(this.#partial, this.#partialBytes);
    this.#partial = [];
    this.#partialBytes = 0;
    return line;
  }

  #keep(part: Buffer): void {
    this.#partial.push(this.#checkLength(part));
    this.#partialBytes += part.length;
  }

  #checkLength(part: Buffer): Buffer {
    if (this.#partialBytes + part.length <= this.#maxBytes) return part;
    throw malformed(`${this.#call}: an event is longer than ${this.#maxBytes} bytes`);
  }
}

function withoutCarriageReturn(line: Buffer): Buffer {
  return line.at(-1) === CARRIAGE_RETURN ? line.subarray(0, -1) : line;
}

/** Decodes a last line without newline. If it is not a complete event, the stream was cut. */
function decodeLast<T extends KubernetesObject>(
  line: Buffer,
  options: WatchStreamOptions<T>,
): WatchEvent<T> {
  try {
    return decodeEvent(line, options);
  } catch (cause) {
    const message = `${options.call}: the stream ended in the middle of an event (${line.length} bytes)`;
    throw new ApiError({ kind: 'unreachable', message, cause });
  }
}

/** Decodes events up to the first line that is not an event. */
function decodeEvents<T extends KubernetesObject>(
  lines: Iterable<Buffer>,
  options: WatchStreamOptions<T>,
): { readonly events: WatchEvent<T>[]; readonly fault?: { readonly error: unknown } } {
  const events: WatchEvent<T>[] = [];
  try {
    for (const line of lines) events.push(decodeEvent(line, options));
    return { events };
  } catch (error) {
    return { events, fault: { error } };
  }
}

function decodeEvent<T extends KubernetesObject>(
  line: Buffer,
  options: WatchStreamOptions<T>,
): WatchEvent<T> {
  const event = options.decoder.parse(line, `An event of ${options.call}`, 'event');
  const object = isRecord(event) ? event['object'] : undefined;
  if (!isRecord(event) || !isRecord(object)) {
    throw malformed(`${options.call}: a line of ${line.length} bytes is not a watch event`);
  }
  const { type } = event;
  switch (type) {
    case 'ADDED':
      return { type: 'added', object: options.decoder.object(object, options) };
    case 'MODIFIED':
      return { type: 'modified', object: options.decoder.object(object, options) };
    case 'DELETED':
      return { type: 'deleted', object: options.decoder.object(object, options) };
    case 'BOOKMARK':
      return decodeBookmark(object, options.call);
    case 'ERROR':
      return { type: 'error', error: ApiError.fromStatus(object) };
    default:
      throw malformed(`${options.call}: unknown event type ${JSON.stringify(type)?.slice(0, 40)}`);
  }
}

function decodeBookmark(
  object: Record<string, unknown>,
  call: string,
): Extract<WatchEvent<never>, { type: 'bookmark' }> {
  const metadata = isRecord(object['metadata']) ? object['metadata'] : {};
  const { resourceVersion, annotations } = metadata;
  if (typeof resourceVersion !== 'string' || resourceVersion === '') {
    throw malformed(`${call}: a bookmark has no resourceVersion`);
  }
  const initialEventsEnd =
    isRecord(annotations) &&
    Object.hasOwn(annotations, INITIAL_EVENTS_END) &&
    annotations[INITIAL_EVENTS_END] === 'true';
  return { type: 'bookmark', resourceVersion, initialEventsEnd };
}
