import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import type { ByteSink } from '../../../api/kubelet.ts';

/** A connection that carries bytes in both directions. */
export interface ByteTransport {
  readonly received: AsyncIterable<Uint8Array>;
  readonly write: ByteSink;
}

/**
 * Returns the bytes of a socket.
 *
 * @param head bytes that the client sent after its request
 */
export function socketTransport(
  socket: Duplex,
  head: Uint8Array,
  signal: AbortSignal,
): ByteTransport {
  return {
    received: bytesOf(socket, head),
    write: async (bytes) => {
      if (!socket.write(bytes)) await once(socket, 'drain', { signal });
    },
  };
}

async function* bytesOf(
  socket: Duplex,
  head: Uint8Array,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (head.byteLength > 0) yield head;
  const chunks: AsyncIterable<Uint8Array> = socket.iterator({ destroyOnReturn: false });
  yield* chunks;
}
