import type { Socket } from 'node:net';
import type { Clock } from '../../util/clock.ts';
import { DialError } from './connection-error.ts';

export interface DialStep {
  readonly socket: Socket;
  /** What shows that it succeeded. */
  readonly event: 'connect' | 'secureConnect';
  readonly timeoutMs: number;
  readonly clock: Pick<Clock, 'after'>;
  readonly signal: AbortSignal | undefined;
}

/** The socket once the event has come; rejects with why it did not, the socket destroyed. */
export function connected({ socket, event, timeoutMs, clock, signal }: DialStep): Promise<Socket> {
  const step = event === 'connect' ? 'dial' : 'TLS handshake';
  return new Promise((resolve, reject) => {
    const detach = () => {
      cancelTimeout();
      socket.off(event, arrived);
      socket.off('error', fail);
      socket.off('close', closed);
      signal?.removeEventListener('abort', aborted);
    };
    const fail = (cause: Error) => {
      detach();
      discard(socket);
      reject(new DialError(`${step} failed: ${cause.message}`, { cause }));
    };
    const arrived = () => {
      detach();
      resolve(socket);
    };
    const closed = () => fail(systemError('ECONNRESET', 'closed by the peer'));
    const aborted = () => fail(abandoned(signal));
    const cancelTimeout = clock.after(timeoutMs, () =>
      fail(systemError('ETIMEDOUT', `nothing within ${timeoutMs} ms`)),
    );
    socket.once(event, arrived);
    socket.once('error', fail);
    socket.once('close', closed);
    signal?.addEventListener('abort', aborted, { once: true });
    if (signal?.aborted) aborted();
  });
}

/** Late errors of a socket that was given up must not end the process. */
export function discard(socket: Socket): void {
  socket.on('error', () => undefined);
  socket.destroy();
}

/** Why `signal` gave a connection up. */
export function abandoned(signal: AbortSignal | undefined): Error {
  const reason: unknown = signal?.reason;
  return reason instanceof Error ? reason : new Error('nobody waits for it any more');
}

/** An error as the operating system gives it. */
export function systemError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}
