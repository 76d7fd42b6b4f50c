import { ByteQueue } from './byte-queue.ts';
import type { WebSocketMessages } from './web-socket-messages.ts';

const ZERO = 48;
/** First byte of the message by which a client of `v5.channel.k8s.io` ends a channel. */
const CLOSE = 255;

/** Options of `WebSocketChannels`. */
export interface ChannelOptions {
  /** Whether messages are base64 text. */
  readonly isBase64: boolean;
  /** Whether a client can end a channel. */
  readonly hasClose: boolean;
  /** Numbers of the channels that the server reads; others are ignored. */
  readonly read: readonly number[];
}

/** Several streams over one WebSocket: the first byte of a message is the number of its channel. */
export class WebSocketChannels {
  readonly #messages: WebSocketMessages;
  readonly #options: ChannelOptions;
  readonly #queues: ReadonlyMap<number, ByteQueue>;

  constructor(messages: WebSocketMessages, options: ChannelOptions) {
    this.#messages = messages;
    this.#options = options;
    this.#queues = new Map(options.read.map((channel) => [channel, new ByteQueue()]));
  }

  /** Returns what arrives at a channel that the server reads. */
  received(channel: number): ByteQueue | undefined {
    return this.#queues.get(channel);
  }

  async write(channel: number, bytes: Uint8Array): Promise<void> {
    const { isBase64 } = this.#options;
    if (!isBase64) return this.#messages.send(Buffer.concat([Uint8Array.of(channel), bytes]));
    const text = String(channel) + Buffer.from(bytes).toString('base64');
    await this.#messages.send(Buffer.from(text), true);
  }

  /** Reads until the client closes the WebSocket, which ends all channels. */
  async serve(): Promise<void> {
    const { isBase64, hasClose } = this.#options;
    try {
      for await (const message of this.#messages.received()) {
        const [first, second] = message;
        if (first === undefined) continue;
        if (hasClose && first === CLOSE) {
          if (message.length !== 2) return;
          this.#queues.get(second ?? 0)?.end();
          continue;
        }
        const rest = message.subarray(1);
        const bytes = isBase64 ? Buffer.from(Buffer.from(rest).toString(), 'base64') : rest;
        await this.#queues.get(isBase64 ? first - ZERO : first)?.push(bytes);
      }
    } finally {
      for (const queue of this.#queues.values()) queue.end();
    }
  }
}
