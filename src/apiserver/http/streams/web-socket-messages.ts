import { FrameReader, messageFrame, normalClosure } from '../websocket.ts';
import type { ByteTransport } from './byte-transport.ts';

/** Maximum size of a received message. */
const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;

/** The messages of a WebSocket in both directions. */
export class WebSocketMessages {
  readonly #transport: ByteTransport;
  #isClosed = false;

  constructor(transport: ByteTransport) {
    this.#transport = transport;
  }

  /** Sends a message. Resolves when more can be sent. */
  async send(bytes: Uint8Array, isText: boolean = false): Promise<void> {
    await this.#transport.write(messageFrame(bytes, isText));
  }

  /** Yields the messages of the client until it closes the WebSocket. */
  async *received(): AsyncGenerator<Uint8Array, void, undefined> {
    const messages: Uint8Array[] = [];
    let parts: Uint8Array[] = [];
    let bytes = 0;
    const reader = new FrameReader((part, isLast) => {
      parts.push(part);
      bytes += part.length;
      if (!isLast) return;
      messages.push(Buffer.concat(parts));
      parts = [];
      bytes = 0;
    });
    for await (const chunk of this.#transport.received) {
      const { response, isClosed } = reader.read(chunk);
      if (response.byteLength > 0 && !this.#isClosed) await this.#transport.write(response);
      yield* messages.splice(0);
      if (isClosed || bytes > MAX_MESSAGE_BYTES) return;
    }
  }

  /** Announces the end of the connection to the client. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#transport.write(normalClosure());
  }
}
