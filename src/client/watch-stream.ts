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
  const what = `An event of ${call}`;
  let lastByteMs = clock.monotonic();

  /** Decodes a last line without newline. If it is not a complete event, the stream was cut. */
  const decodeLast = (line: Buffer): WatchEvent<T> => {
    try {
      return decodeEvent(line, 0, line.length, what, options);
    } catch (cause) {
      const message = `${call}: the stream ended in the middle of an event (${line.length} bytes)`;
      throw new ApiError({ kind: 'unreachable', message, cause });
    }
  };

  async function* batches(): AsyncGenerator<WatchEvent<T>[], void, undefined> {
    const lines = new LineSplitter(maxLineBytes, call);
    try {
      for await (const chunk of body) {
        lastByteMs = clock.monotonic();
        const events: WatchEvent<T>[] = [];
        let failure: { readonly error: unknown } | undefined;
        try {
          lines.push(chunk, (bytes, start, end) => {
            events.push(decodeEvent(bytes, start, end, what, options));
          });
        } catch (error) {
          failure = { error };
        }
        if (events.length > 0) yield events;
        if (failure) throw failure.error;
      }
      const rest = lines.rest();
      if (rest.length > 0) yield [decodeLast(rest)];
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

  /** Calls `onLine` with the offsets of each line that is complete. */
  push(bytes: Uint8Array, onLine: (bytes: Buffer, start: number, end: number) => void): void {
    const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      if (this.#partialBytes === 0) {
        this.#checkLength(end - start);
        const last = withoutCarriageReturn(chunk, start, end);
        if (last > start) onLine(chunk, start, last);
      } else {
        const line = this.#finish(chunk.subarray(start, end));
        const last = withoutCarriageReturn(line, 0, line.length);
        if (last > 0) onLine(line, 0, last);
      }
      start = end + 1;
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start));
  }

  /** Returns the bytes after the last newline. */
  rest(): Buffer {
    const line = this.#finish(Buffer.of());
    return line.subarray(0, withoutCarriageReturn(line, 0, line.length));
  }

  #finish(end: Buffer): Buffer {
    this.#keep(end);
    const line = Buffer.concat(this.#partial, this.#partialBytes);
    this.#partial = [];
    this.#partialBytes = 0;
    return line;
  }

  #keep(part: Buffer): void {
    this.#checkLength(part.length);
    this.#partial.push(part);
    this.#partialBytes += part.length;
  }

  #checkLength(bytes: number): void {
    if (this.#partialBytes + bytes <= this.#maxBytes) return;
    throw malformed(`${this.#call}: an event is longer than ${this.#maxBytes} bytes`);
  }
}

/** Returns the end of a line without the carriage return before it. */
function withoutCarriageReturn(bytes: Buffer, start: number, end: number): number {
  return end > start && bytes[end - 1] === CARRIAGE_RETURN ? end - 1 : end;
}

function decodeEvent<T extends KubernetesObject>(
  bytes: Buffer,
  start: number,
  end: number,
  what: string,
  options: WatchStreamOptions<T>,
): WatchEvent<T> {
  const event = options.decoder.event(bytes, start, end, what, options);
  if (event.type !== 'other') return event;
  const { sent, object } = event;
  if (sent === 'BOOKMARK') return decodeBookmark(object, options.call);
  if (sent === 'ERROR') return { type: 'error', error: ApiError.fromStatus(object) };
  throw malformed(`${options.call}: unknown event type ${JSON.stringify(sent)?.slice(0, 40)}`);
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
