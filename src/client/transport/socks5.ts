import type { Socket } from 'node:net';
import { isIP, isIPv4 } from 'node:net';

export interface Socks5Target {
  readonly host: string;
  readonly port: number;
}

export interface Socks5User {
  readonly name: string;
  readonly password: string;
}

const VERSION = 5;
const METHOD = { none: 0, password: 2 } as const;
const ADDRESS = { ipv4: 1, name: 3, ipv6: 4 } as const;

/**
 * Opens a tunnel to `target` through a SOCKS5 proxy (RFC 1928). As in Go, the proxy resolves names, with
 * `socks5://` as with `socks5h://`. Rejects with the proxy's reply; the socket cannot be used after that.
 */
export async function socks5(
  socket: Socket,
  target: Socks5Target,
  user: Socks5User | undefined,
): Promise<void> {
  const methods = user ? [METHOD.none, METHOD.password] : [METHOD.none];
  socket.write(Buffer.from([VERSION, methods.length, ...methods]));
  const [version, method] = await read(socket, 2);
  if (version !== VERSION) throw new Error('it does not speak SOCKS5');
  if (method === METHOD.password && user) await authenticate(socket, user);
  else if (method !== METHOD.none)
    throw new Error('it accepts none of the offered authentication methods');

  const port = Buffer.alloc(2);
  port.writeUInt16BE(target.port);
  socket.write(Buffer.concat([Buffer.from([VERSION, 1, 0]), addressOf(target.host), port]));
  const [, reply = 1, , kind = 0] = await read(socket, 4);
  if (reply !== 0) throw new Error(REPLIES.get(reply) ?? `it replied with code ${reply}`);
  await read(socket, (await lengthOf(socket, kind)) + 2);
}

/** Authenticates with user and password (RFC 1929). */
async function authenticate(socket: Socket, { name, password }: Socks5User): Promise<void> {
  socket.write(Buffer.concat([Buffer.from([1]), short(name), short(password)]));
  const [, status] = await read(socket, 2);
  if (status !== 0) throw new Error('it did not accept the user and password');
}

function addressOf(host: string): Buffer {
  if (isIP(host) === 0) return Buffer.concat([Buffer.from([ADDRESS.name]), short(host)]);
  if (isIPv4(host)) return Buffer.from([ADDRESS.ipv4, ...host.split('.').map(Number)]);
  return Buffer.concat([Buffer.from([ADDRESS.ipv6]), ipv6Bytes(host)]);
}

function ipv6Bytes(host: string): Buffer {
  // A URL normalizes the address: hexadecimal groups, with `::` for the longest run of zeros.
  const { hostname } = new URL(`http://[${host}]`);
  const [before = [], after = []] = hostname
    .slice(1, -1)
    .split('::')
    .map((part) => (part === '' ? [] : part.split(':')));
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0');
  const groups = [...before, ...zeros, ...after].map((group) => group.padStart(4, '0'));
  return Buffer.from(groups.join(''), 'hex');
}

async function lengthOf(socket: Socket, kind: number): Promise<number> {
  if (kind === ADDRESS.ipv4) return 4;
  if (kind === ADDRESS.ipv6) return 16;
  const [length = 0] = await read(socket, 1);
  return length;
}

function short(text: string): Buffer {
  const bytes = Buffer.from(text);
  if (bytes.length > 255) throw new Error('a name or password is longer than 255 bytes');
  return Buffer.concat([Buffer.from([bytes.length]), bytes]);
}

/** Reads exactly `length` bytes; later bytes stay in the socket. */
async function read(socket: Socket, length: number): Promise<Buffer> {
  for (;;) {
    const bytes = socket.read(length) as Buffer | null;
    if (bytes?.length === length) return bytes;
    if (socket.destroyed || socket.readableEnded || bytes)
      throw new Error('it closed the connection');
    await readable(socket);
  }
}

/** Resolves when there is data to read or the socket has ended; rejects with the socket's error. */
function readable(socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    const detach = () => {
      for (const event of EVENTS) socket.off(event, arrived);
      socket.off('error', failed);
    };
    const arrived = () => {
      detach();
      resolve();
    };
    const failed = (error: Error) => {
      detach();
      reject(error);
    };
    for (const event of EVENTS) socket.on(event, arrived);
    socket.on('error', failed);
  });
}

const EVENTS = ['readable', 'end', 'close'] as const;

const REPLIES: ReadonlyMap<number, string> = new Map([
  [1, 'general failure'],
  [2, 'its rules do not permit the connection'],
  [3, 'network unreachable'],
  [4, 'host unreachable'],
  [5, 'connection refused'],
  [6, 'TTL expired'],
  [7, 'command not supported'],
  [8, 'address type not supported'],
]);
