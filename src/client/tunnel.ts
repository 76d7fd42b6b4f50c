import type { ClientRequest } from 'node:http';
import { request } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../util/clock.ts';
import { DialError } from './connection-error.ts';
import { abandoned, discard, systemError } from './dial-step.ts';

export interface TunnelOptions {
  /** Connected to the proxy. */
  readonly socket: Socket;
  /** User and password may be in it. */
  readonly proxy: URL;
  /** Where the tunnel leads: `10.0.0.1:6443`. */
  readonly authority: string;
  /** Bound on the proxy's answer, in milliseconds. */
  readonly timeoutMs: number;
  readonly clock: Pick<Clock, 'after'>;
  readonly signal: AbortSignal | undefined;
}

/** Makes the proxy carry the bytes of `socket` from now on (CONNECT); rejects with a `DialError`. */
export async function tunnel(options: TunnelOptions): Promise<void> {
  const { socket, proxy, authority, timeoutMs, clock, signal } = options;
  const asked = connectRequest(options);
  const answered = new Promise<number | undefined>((resolve, reject) => {
    asked.on('error', reject);
    asked.once('connect', ({ statusCode }) => resolve(statusCode));
    asked.once('response', ({ statusCode }) => resolve(statusCode));
  });
  const expired = systemError('ETIMEDOUT', `nothing within ${timeoutMs} ms`);
  const cancelTimeout = clock.after(timeoutMs, () => asked.destroy(expired));
  const abort = () => asked.destroy(abandoned(signal));
  signal?.addEventListener('abort', abort, { once: true });
  asked.end();
  try {
    const status = await answered;
    if (status !== 200) throw new Error(`${proxy.host} answered ${status} to CONNECT ${authority}`);
  } catch (cause) {
    discard(socket);
    const words = cause instanceof Error ? cause.message : String(cause);
    throw new DialError(`proxy failed: ${words}`, { cause });
  } finally {
    cancelTimeout();
    signal?.removeEventListener('abort', abort);
  }
}

function connectRequest({ socket, proxy, authority }: TunnelOptions): ClientRequest {
  const { username, password } = proxy;
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  const authorization = `Basic ${Buffer.from(credentials).toString('base64')}`;
  return request({
    method: 'CONNECT',
    path: authority,
    headers: {
      host: authority,
      ...(username === '' ? {} : { 'proxy-authorization': authorization }),
    },
    createConnection: () => socket,
  });
}
