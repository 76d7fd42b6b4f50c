import type { IncomingMessage } from 'node:http';
import { request } from 'node:http';
import type { Socket } from 'node:net';
import { isIPv6 } from 'node:net';
import type { Clock } from '../../util/clock.ts';
import { abandoned, discard, systemError } from './dial-step.ts';
import { socks5 } from './socks5.ts';
import type { Socks5User } from './socks5.ts';

export interface TunnelOptions {
  /** Connected to the proxy. */
  readonly socket: Socket;
  /** `http://`, `https://` or `socks5://`; user and password may be in it. */
  readonly proxy: URL;
  /** Where the tunnel leads: a name or an address, IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
  /** Bound on the proxy's answer, in milliseconds. */
  readonly timeoutMs: number;
  readonly clock: Pick<Clock, 'after'>;
  readonly signal: AbortSignal | undefined;
}

/** Makes the proxy carry the bytes of `socket` from now on; rejects with why it does not. */
export async function tunnel(options: TunnelOptions): Promise<void> {
  const { socket, proxy, host, port, timeoutMs, clock, signal } = options;
  let givenUp: Error | undefined;
  const giveUp = (error: Error) => {
    givenUp ??= error;
    socket.destroy(error);
  };
  const expired = systemError('ETIMEDOUT', `nothing within ${timeoutMs} ms`);
  const cancelTimeout = clock.after(timeoutMs, () => giveUp(expired));
  const abort = () => giveUp(abandoned(signal));
  signal?.addEventListener('abort', abort, { once: true });
  try {
    if (signal?.aborted) abort();
    const user = userOf(proxy);
    await (isSocks(proxy) ? socks5(socket, { host, port }, user) : connect(options, user));
  } catch (error) {
    discard(socket);
    throw givenUp ?? error;
  } finally {
    cancelTimeout();
    signal?.removeEventListener('abort', abort);
  }
}

export function isSocks({ protocol }: URL): boolean {
  return protocol === 'socks5:' || protocol === 'socks5h:';
}

function userOf({ username, password }: URL): Socks5User | undefined {
  if (username === '') return undefined;
  return { name: decodeURIComponent(username), password: decodeURIComponent(password) };
}

async function connect(
  { socket, host, port }: TunnelOptions,
  user: Socks5User | undefined,
): Promise<void> {
  const authority = `${isIPv6(host) ? `[${host}]` : host}:${port}`;
  const pair = user && Buffer.from(`${user.name}:${user.password}`).toString('base64');
  const asked = request({
    method: 'CONNECT',
    path: authority,
    headers: {
      host: authority,
      ...(pair && { 'proxy-authorization': `Basic ${pair}` }),
    },
    createConnection: () => socket,
  });
  const { statusCode } = await new Promise<IncomingMessage>((resolve, reject) => {
    asked.on('error', reject);
    asked.once('connect', resolve);
    asked.once('response', resolve);
    asked.end();
  });
  if (statusCode !== 200) throw new Error(`it answered ${statusCode} to CONNECT ${authority}`);
}
