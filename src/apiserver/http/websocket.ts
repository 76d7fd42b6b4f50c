import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import type { Headers, MessageFormat } from './websocket-request.ts';
import { BEARER_PROTOCOL, protocolsIn } from './websocket-request.ts';

/** The accepted handshake of a client. */
export interface Handshake {
  readonly headers: Readonly<Record<string, string>>;
  /** Messages are base64 text, as subprotocols such as `base64.binary.k8s.io` require. */
  readonly isBase64: boolean;
  /** The selected subprotocol, or an empty text. */
  readonly protocol: string;
}

/** The response to a handshake that is not accepted. */
export interface HandshakeRefusal {
  readonly status: 400 | 403;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

const LOG_PROTOCOLS = ['binary.k8s.io', 'base64.binary.k8s.io'];

/** From RFC 6455, section 1.3. */
const HANDSHAKE_GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

const TEXT = 1;
const BINARY = 2;
const CLOSE = 8;
const PING = 9;
const PONG = 10;
const NORMAL_CLOSURE = 1000;
const PROTOCOL_ERROR = 1002;

/** Maximum payload of a control frame; a longer ping is answered with its start, as upstream. */
const MAX_CONTROL_BYTES = 125;
/** Maximum payload of a received frame, as upstream. */
const MAX_FRAME_BYTES = 32 * 1024 * 1024;

/**
 * Checks the handshake as a kube-apiserver does: a watch requires a valid `Origin` header, of any host, and
 * at most one subprotocol. A log has no such rule, but its subprotocols are fixed.
 */
export function acceptHandshake(
  headers: Headers,
  format: MessageFormat,
): Handshake | HandshakeRefusal {
  if (format === 'bytes') return acceptProtocol(headers, ['', ...LOG_PROTOCOLS]);
  const protocols = clientProtocols(headers);
  const broken = brokenHandshake(headers);
  if (broken) return broken;
  if (!isOrigin(headers['origin'] ?? '')) return refusal(403);
  if (protocols.length > 1) return refusal(400);
  return accepted(headers, protocols[0] ?? '');
}

/** Accepts a handshake with the client's first subprotocol that the server knows; `''` is none. */
export function acceptProtocol(
  headers: Headers,
  known: readonly string[],
): Handshake | HandshakeRefusal {
  const broken = brokenHandshake(headers);
  if (broken) return broken;
  const wanted = clientProtocols(headers);
  const protocol = (wanted.length === 0 ? [''] : wanted).find((each) => known.includes(each));
  return protocol === undefined ? refusal(403) : accepted(headers, protocol);
}

/** Returns the subprotocols of a handshake, without the one that is a token. */
export function clientProtocols(headers: Headers): readonly string[] {
  return protocolsIn(headers).filter((protocol) => !protocol.startsWith(BEARER_PROTOCOL));
}

function brokenHandshake(headers: Headers): HandshakeRefusal | undefined {
  if (!headers['sec-websocket-key']) return refusal(400, 'mismatch challenge/response');
  if (headers['sec-websocket-version'] === '13') return undefined;
  const supported = { 'sec-websocket-version': '13' };
  return { ...refusal(400, 'missing or bad WebSocket Version'), headers: supported };
}

function accepted(headers: Headers, protocol: string): Handshake {
  const key = headers['sec-websocket-key'] ?? '';
  return {
    headers: {
      upgrade: 'websocket',
      connection: 'Upgrade',
      'sec-websocket-accept': createHash('sha1').update(`${key}${HANDSHAKE_GUID}`).digest('base64'),
      ...(protocol !== '' && { 'sec-websocket-protocol': protocol }),
    },
    isBase64: protocol.includes('base64.'),
    protocol,
  };
}

/**
 * Sends a response body as messages, and closes the connection when it ends. Received messages are
 * discarded without being buffered; a ping is answered, and a close frame ends the exchange.
 *
 * @param head bytes that the client sent after its request
 * @param onClose called when the client closes the WebSocket or violates the protocol
 */
export async function sendMessages(
  socket: Duplex,
  head: Uint8Array,
  handshake: Handshake,
  options: {
    readonly body: AsyncIterable<Uint8Array>;
    readonly format: MessageFormat;
    readonly signal: AbortSignal;
    readonly onClose: () => void;
  },
): Promise<void> {
  const { body, format, signal, onClose } = options;
  const { isBase64 } = handshake;
  switchProtocols(socket, handshake.headers);
  const reader = new FrameReader();
  const receive = (chunk: Uint8Array) => {
    const { response, isClosed } = reader.read(chunk);
    // A client that does not read its pongs cannot send further pings.
    if (response.byteLength > 0 && !socket.write(response)) {
      socket.pause();
      socket.once('drain', () => socket.resume());
    }
    if (!isClosed) return;
    socket.off('data', receive);
    onClose();
  };
  socket.on('data', receive);
  socket.once('end', onClose);
  if (head.byteLength > 0) receive(head);
  socket.resume();
  try {
    // A log starts with an empty message, as upstream: the client sees that it is connected.
    if (format === 'bytes') socket.write(frame(isBase64 ? TEXT : BINARY, new Uint8Array()));
    for await (const chunk of body) {
      const frames = FRAMES[format](chunk, isBase64);
      if (!socket.write(frames)) await once(socket, 'drain', { signal });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  socket.end(closeFrame(NORMAL_CLOSURE), () => socket.destroy());
}

/** Receives the payload of the messages of a client, in parts. */
export type PayloadReceiver = (part: Uint8Array, isLast: boolean) => void;

/** Reads the frames that a client sends, and keeps no more than a header and the payload of a ping. */
export class FrameReader {
  readonly #receive: PayloadReceiver | undefined;
  /** The start of a header. */
  #partial: Buffer = Buffer.alloc(0);
  #frame: FrameHeader | undefined;
  /** Bytes of the frame's payload that were read. */
  #bytes = 0;
  #ping: number[] = [];
  #isClosed = false;

  /** @param receive receives the messages; without it, they are discarded */
  constructor(receive?: PayloadReceiver) {
    this.#receive = receive;
  }

  /** Returns the frames to send in response; `isClosed` if the client may send nothing more. */
  read(chunk: Uint8Array): { readonly response: Uint8Array; readonly isClosed: boolean } {
    const response: Uint8Array[] = [];
    let rest = Buffer.concat([this.#partial, chunk]);
    this.#partial = Buffer.alloc(0);
    while (!this.#isClosed) {
      if (!this.#frame) {
        const frame = headerOf(rest);
        if (!frame) break;
        rest = rest.subarray(frame.headerBytes);
        this.#startFrame(frame, response);
        if (this.#isClosed) break;
      }
      rest = rest.subarray(this.#payload(rest, response));
      if (this.#frame) break;
    }
    if (!this.#isClosed) this.#partial = Buffer.from(rest);
    return { response: Buffer.concat(response), isClosed: this.#isClosed };
  }

  #startFrame(frame: FrameHeader, response: Uint8Array[]): void {
    if (!frame.mask) response.push(closeFrame(PROTOCOL_ERROR));
    this.#isClosed =
      frame.mask === undefined || frame.opcode === CLOSE || frame.payloadBytes > MAX_FRAME_BYTES;
    this.#frame = frame;
    this.#bytes = 0;
    this.#ping = [];
  }

  /** Returns how many bytes of `rest` are payload of the frame, and ends the frame after its last one. */
  #payload(rest: Uint8Array, response: Uint8Array[]): number {
    if (!this.#frame?.mask) return 0;
    const { opcode, payloadBytes, mask, isFinal } = this.#frame;
    const count = Math.min(payloadBytes - this.#bytes, rest.byteLength);
    if (this.#receive && opcode <= BINARY) {
      const offset = this.#bytes;
      const part = Uint8Array.from(rest.subarray(0, count));
      for (let at = 0; at < count; at++)
        part[at] = (part[at] ?? 0) ^ (mask[(offset + at) % 4] ?? 0);
      this.#receive(part, isFinal && offset + count === payloadBytes);
    }
    if (opcode === PING) {
      for (const byte of rest.subarray(0, Math.min(count, MAX_CONTROL_BYTES - this.#ping.length))) {
        this.#ping.push(byte ^ (mask[this.#ping.length % 4] ?? 0));
      }
    }
    this.#bytes += count;
    if (this.#bytes === payloadBytes) {
      if (opcode === PING) response.push(frame(PONG, Uint8Array.from(this.#ping)));
      this.#frame = undefined;
    }
    return count;
  }
}

interface FrameHeader {
  readonly opcode: number;
  /** Whether it is the last frame of its message. */
  readonly isFinal: boolean;
  readonly headerBytes: number;
  readonly payloadBytes: number;
  /** Undefined if the payload is not masked, which a client must not send. */
  readonly mask: Uint8Array | undefined;
}

/** Returns undefined if the header is not complete. */
function headerOf(bytes: Buffer): FrameHeader | undefined {
  const [first, second] = bytes;
  if (first === undefined || second === undefined) return undefined;
  const short = second & 0x7f;
  const isMasked = second >= 0x80;
  const lengthBytes = short === 127 ? 8 : short === 126 ? 2 : 0;
  const headerBytes = 2 + lengthBytes + (isMasked ? 4 : 0);
  if (bytes.byteLength < headerBytes) return undefined;
  const payloadBytes =
    lengthBytes === 0
      ? short
      : lengthBytes === 2
        ? bytes.readUInt16BE(2)
        : Number(bytes.readBigUInt64BE(2));
  const mask = isMasked ? Uint8Array.from(bytes.subarray(headerBytes - 4, headerBytes)) : undefined;
  return { opcode: first & 0x0f, isFinal: first >= 0x80, headerBytes, payloadBytes, mask };
}

function frame(opcode: number, payload: Uint8Array): Uint8Array {
  return Buffer.concat([frameHeader(opcode, payload.byteLength), payload]);
}

function frameHeader(opcode: number, length: number): Uint8Array {
  if (length <= MAX_CONTROL_BYTES) return Uint8Array.of(0x80 | opcode, length);
  if (length < 0x1_0000) return Uint8Array.of(0x80 | opcode, 126, length >> 8, length & 0xff);
  const header = Buffer.alloc(10);
  header[0] = 0x80 | opcode;
  header[1] = 127;
  header.writeBigUInt64BE(BigInt(length), 2);
  return header;
}

function closeFrame(status: number): Uint8Array {
  return frame(CLOSE, Uint8Array.of(status >> 8, status & 0xff));
}

/** A message for each line; the message ends with the newline, as upstream. */
function lineFrames(chunk: Uint8Array): Uint8Array {
  const parts: Uint8Array[] = [];
  for (let start = 0; start < chunk.byteLength;) {
    const newline = chunk.indexOf(0x0a, start);
    const end = newline < 0 ? chunk.byteLength : newline + 1;
    parts.push(frameHeader(TEXT, end - start), chunk.subarray(start, end));
    start = end;
  }
  return Buffer.concat(parts);
}

/** A message for each event, whose length in the chunk is before it. */
function eventFrames(chunk: Uint8Array): Uint8Array {
  const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  const parts: Uint8Array[] = [];
  for (let start = 0; start < bytes.byteLength;) {
    const length = bytes.readUInt32BE(start);
    parts.push(frame(BINARY, bytes.subarray(start + 4, start + 4 + length)));
    start += 4 + length;
  }
  return Buffer.concat(parts);
}

function chunkFrame(chunk: Uint8Array, isBase64: boolean): Uint8Array {
  return isBase64
    ? frame(TEXT, Buffer.from(Buffer.from(chunk).toString('base64')))
    : frame(BINARY, chunk);
}

const FRAMES: Readonly<
  Record<MessageFormat, (chunk: Uint8Array, isBase64: boolean) => Uint8Array>
> = { lines: lineFrames, frames: eventFrames, bytes: chunkFrame };

/** As Go reads a request URI: an absolute URL or an absolute path. */
function isOrigin(origin: string): boolean {
  return origin.startsWith('/') || URL.canParse(origin);
}

function refusal(status: 400 | 403, text: string = ''): HandshakeRefusal {
  return { status, headers: {}, text };
}

/** Sends the response after which the connection has another protocol. */
export function switchProtocols(socket: Duplex, headers: Headers): void {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('')}\r\n`);
}

/** Returns a message of a server: base64 text, or bytes. */
export function messageFrame(bytes: Uint8Array, isText: boolean): Uint8Array {
  return frame(isText ? TEXT : BINARY, bytes);
}

/** Returns the frame that ends a connection. */
export function normalClosure(): Uint8Array {
  return closeFrame(NORMAL_CLOSURE);
}
