import type { Socket } from 'node:net';

/** Waits until a socket is closed, also by an error: a server can reset a connection that it gives up. */
export async function closed(socket: Socket): Promise<void> {
  if (socket.closed) return;
  await new Promise((resolve) => {
    socket.once('close', resolve);
  });
}
