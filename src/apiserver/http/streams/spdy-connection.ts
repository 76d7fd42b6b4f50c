import type { Inflate } from 'node:zlib';
import { createInflate } from 'node:zlib';
import type { ByteSink } from '../../../api/kubelet.ts';
import type { ByteTransport } from './byte-transport.ts';
import { ByteQueue } from './byte-queue.ts';
import { spdyDictionary } from './spdy-dictionary.ts';

const SYN_STREAM = 1;
const SYN_REPLY = 2;
const RST_STREAM = 3;
const PING = 6;
const GOAWAY = 7;

const FIN = 1;
const CANCEL = 5;
const OK = 0;

const HEADER_BYTES = 8;
const MAX_CONTROL_BYTES = 64 * 1024;
const MAX_DATA_BYTES = 4 * 1024 * 1024;
const MAX_STREAMS = 1000;
/** Maximum size of the headers of a stream after decompression, which can be a thousand times that of their block. */
const MAX_HEADER_BYTES = 64 * 1024;

/**
 * A header block without headers, as zlib stores it, with the empty block that makes readers return it. The first one
 * starts with the header of the format.
 */
const EMPTY_HEADERS = Uint8Array.of(0, 4, 0, 0xfb, 0xff, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff);
const ZLIB_HEADER = Uint8Array.of(0x78, 1);

/** A stream that the client opened. */
export interface SpdyStream {
  readonly id: number;
  /** Lower-case names. */
  readonly headers: ReadonlyMap<string, string>;
  readonly received: ByteQueue;
  readonly write: ByteSink;
  /** Ends the direction to the client. */
  readonly close: () => Promise<void>;
  /** Ends both directions. */
  readonly reset: () => Promise<void>;
}

/** The part of SPDY/3.1 that Kubernetes uses, for a server: streams without flow control. */
export class SpdyConnection {
  readonly #transport: ByteTransport;
  readonly #streams = new Map<number, SpdyStream>();
  readonly #inflate: Inflate = createInflate({ dictionary: spdyDictionary() });
  #lastId = 0;
  #hasReplied = false;

  constructor(transport: ByteTransport) {
    this.#transport = transport;
  }

  /**
   * Reads until the client closes the connection or violates the protocol.
   *
   * @param accept returns whether a new stream is accepted
   */
  async serve(accept: (stream: SpdyStream) => boolean): Promise<void> {
    let bytes: Buffer = Buffer.alloc(0);
    try {
      for await (const chunk of this.#transport.received) {
        bytes = Buffer.concat([bytes, chunk]);
        for (let size; (size = frameSize(bytes)) <= bytes.length; bytes = bytes.subarray(size)) {
          const isLast = await this.#receive(bytes.subarray(0, size), accept);
          if (isLast) return;
        }
        if (frameSize(bytes) === Infinity && bytes.length >= HEADER_BYTES) return;
      }
    } finally {
      for (const { received } of this.#streams.values()) received.end();
      this.#inflate.destroy();
    }
  }

  /** Announces the end of the connection to the client. */
  async close(): Promise<void> {
    await this.#transport.write(control(GOAWAY, 0, words(this.#lastId, OK)));
  }

  /** Handles a frame. Returns whether it is the last one. */
  async #receive(frame: Buffer, accept: (stream: SpdyStream) => boolean): Promise<boolean> {
    const flags = frame[4] ?? 0;
    const payload = frame.subarray(HEADER_BYTES);
    if (!isControl(frame)) {
      const stream = this.#streams.get(frame.readUInt32BE(0));
      await stream?.received.push(Uint8Array.from(payload));
      if (flags & FIN) stream?.received.end();
      return false;
    }
    switch (frame.readUInt16BE(2)) {
      case SYN_STREAM:
        return this.#open(payload, flags, accept);
      case RST_STREAM: {
        const id = payload.readUInt32BE(0);
        this.#streams.get(id)?.received.end();
        this.#streams.delete(id);
        return false;
      }
      case PING:
        await this.#transport.write(Uint8Array.from(frame));
        return false;
      case GOAWAY:
        return true;
      default:
        return false;
    }
  }

  async #open(
    payload: Buffer,
    flags: number,
    accept: (stream: SpdyStream) => boolean,
  ): Promise<boolean> {
    const id = payload.readUInt32BE(0);
    const headers = await this.#headers(payload.subarray(10));
    if (id <= this.#lastId || this.#streams.size >= MAX_STREAMS) return true;
    this.#lastId = id;
    const stream = this.#stream(id, headers);
    if (flags & FIN) stream.received.end();
    this.#streams.set(id, stream);
    if (!accept(stream)) {
      await stream.reset();
      return false;
    }
    const empty = this.#hasReplied ? [EMPTY_HEADERS] : [ZLIB_HEADER, EMPTY_HEADERS];
    this.#hasReplied = true;
    await this.#transport.write(control(SYN_REPLY, 0, Buffer.concat([words(id), ...empty])));
    return false;
  }

  #stream(id: number, headers: ReadonlyMap<string, string>): SpdyStream {
    const { write } = this.#transport;
    let isClosed = false;
    return {
      id,
      headers,
      received: new ByteQueue(),
      write: async (bytes) => {
        if (!isClosed && bytes.length > 0) await write(data(id, 0, bytes));
      },
      close: async () => {
        if (isClosed) return;
        isClosed = true;
        await write(data(id, FIN, new Uint8Array()));
      },
      reset: async () => {
        isClosed = true;
        this.#streams.get(id)?.received.end();
        this.#streams.delete(id);
        await write(control(RST_STREAM, 0, words(id, CANCEL)));
      },
    };
  }

  /** Decompresses a header block, which continues those before it. */
  async #decompress(block: Buffer): Promise<Buffer> {
    const inflate = this.#inflate;
    const chunks: Buffer[] = [];
    let size = 0;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const collect = (chunk: Buffer) => {
      chunks.push(chunk);
      size += chunk.length;
      if (size > MAX_HEADER_BYTES) reject(new RangeError('The headers of a stream are too large'));
    };
    inflate.on('data', collect).once('error', reject);
    inflate.write(block, (error) => (error ? reject(error) : resolve()));
    try {
      await promise;
    } finally {
      inflate.off('data', collect).off('error', reject);
    }
    return Buffer.concat(chunks);
  }

  async #headers(block: Buffer): Promise<ReadonlyMap<string, string>> {
    const bytes = await this.#decompress(block);
    const headers = new Map<string, string>();
    let at = 4;
    const text = () => {
      const start = at + 4;
      at = start + bytes.readUInt32BE(at);
      return bytes.toString('utf8', start, at);
    };
    for (let left = bytes.readUInt32BE(0); left > 0; left--) headers.set(text(), text());
    return headers;
  }
}

function isControl(frame: Buffer): boolean {
  return (frame[0] ?? 0) >= 0x80;
}

/** Returns the size of the first frame; infinity if its header is not complete, or it is too large. */
function frameSize(bytes: Buffer): number {
  if (bytes.length < HEADER_BYTES) return Infinity;
  const length = bytes.readUInt32BE(4) & 0xff_ffff;
  return length > (isControl(bytes) ? MAX_CONTROL_BYTES : MAX_DATA_BYTES)
    ? Infinity
    : HEADER_BYTES + length;
}

function control(type: number, flags: number, payload: Uint8Array): Uint8Array {
  return Buffer.concat([words(0x8003_0000 + type, flags * 0x100_0000 + payload.length), payload]);
}

function data(id: number, flags: number, payload: Uint8Array): Uint8Array {
  return Buffer.concat([words(id, flags * 0x100_0000 + payload.length), payload]);
}

/** Returns numbers of 32 bits. */
function words(...numbers: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * numbers.length);
  for (const [index, number] of numbers.entries()) bytes.writeUInt32BE(number, 4 * index);
  return bytes;
}
