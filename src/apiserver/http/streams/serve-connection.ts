import type { Duplex } from 'node:stream';
import type { KubeletAnswer } from '../../../api/kubelet.ts';
import type { Connection } from '../../operations/connection.ts';
import type { Handshake, HandshakeRefusal } from '../websocket.ts';
import { acceptProtocol, clientProtocols, switchProtocols } from '../websocket.ts';
import { isWebSocketRequest } from '../websocket-request.ts';
import { socketTransport } from './byte-transport.ts';
import { serveSpdyPorts, serveSpdyProcess } from './serve-spdy.ts';
import { serveWebSocketPorts, serveWebSocketProcess, V5 } from './serve-web-socket.ts';
import { WebSocketMessages } from './web-socket-messages.ts';

const SPDY = 'SPDY/3.1';
/** Prefix of the subprotocols of a WebSocket that carries SPDY. */
const TUNNEL = `${SPDY}+`;
const TUNNELED_PORTS = `${TUNNEL}portforward.k8s.io`;

const WEB_SOCKET_PROTOCOLS = ['', 'v4.channel.k8s.io', 'v4.base64.channel.k8s.io'];
const OLD_PROTOCOLS = ['channel.k8s.io', 'base64.channel.k8s.io'];

const SPDY_PROTOCOLS = {
  process: ['v4.channel.k8s.io', 'v3.channel.k8s.io', 'v2.channel.k8s.io', 'channel.k8s.io'],
  ports: ['portforward.k8s.io'],
} as const;

/** Time in which the client closes its side of an ended connection, in milliseconds. */
const CLOSE_MS = 5000;

/** A request to change the protocol of its connection. */
export interface UpgradeRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly socket: Duplex;
  /** Bytes that the client sent after its request. */
  readonly head: Uint8Array;
  /** Aborts when the client is gone. */
  readonly signal: AbortSignal;
}

/** A response that does not change the protocol. */
export interface UpgradeRefusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** Whether a request asks for the connection of an exec, an attach or a port-forward by SPDY. */
export function isSpdyRequest(
  path: string,
  headers: { readonly upgrade?: string | undefined },
): boolean {
  const [pathname = ''] = path.split('?');
  return (
    headers.upgrade?.toLowerCase() === SPDY.toLowerCase() &&
    /\/(?:exec|attach|portforward)$/.test(pathname)
  );
}

/**
 * Connects a client to a container, and resolves when the connection has ended. Returns a refusal if the protocol was not
 * changed. As upstream, a client of `v5.channel.k8s.io` gets errors of the kubelet over its WebSocket.
 */
export async function serveConnection(
  connection: Connection,
  request: UpgradeRequest,
): Promise<UpgradeRefusal | undefined> {
  const { headers, socket } = request;
  const refusal = isWebSocketRequest(headers)
    ? await serveWebSocket(connection, request)
    : await serveSpdy(connection, request);
  if (refusal) return refusal;
  socket.end();
  // If the server closed the connection at once, the client could lose what it has not read.
  const timer = setTimeout(() => socket.destroy(), CLOSE_MS);
  socket.once('close', () => clearTimeout(timer));
  return undefined;
}

async function serveWebSocket(
  connection: Connection,
  request: UpgradeRequest,
): Promise<UpgradeRefusal | undefined> {
  const { socket, head, signal } = request;
  const messages = new WebSocketMessages(socketTransport(socket, head, signal));
  const wanted = clientProtocols(request.headers);
  const accept = (known: readonly string[]): Handshake | HandshakeRefusal => {
    const handshake = acceptProtocol(request.headers, known);
    if (!('status' in handshake)) switchProtocols(socket, handshake.headers);
    return handshake;
  };
  if (connection.kind === 'ports') {
    const isTunnel = wanted.some((each) => each.startsWith(TUNNEL) && each.endsWith('.k8s.io'));
    const answer = connection.open();
    if (answer.kind === 'error') return refused(answer);
    if (!isTunnel && connection.problem !== undefined) return plain(400, connection.problem);
    const handshake = accept(isTunnel ? [TUNNELED_PORTS] : WEB_SOCKET_PROTOCOLS);
    if ('status' in handshake) return handshake;
    if (isTunnel) {
      const transport = {
        received: messages.received(),
        write: (bytes: Uint8Array) => messages.send(bytes),
      };
      await serveSpdyPorts(answer.target, connection, transport);
    } else await serveWebSocketPorts(answer.target, connection, messages, handshake);
  } else {
    const isV5 = wanted.includes(V5);
    const answer = connection.open();
    if (!isV5 && answer.kind === 'error') return refused(answer);
    const handshake = accept(isV5 ? [V5] : [...WEB_SOCKET_PROTOCOLS, ...OLD_PROTOCOLS]);
    if ('status' in handshake) return handshake;
    await serveWebSocketProcess(answer, connection, messages, { handshake, signal });
  }
  await messages.close();
  return undefined;
}

async function serveSpdy(
  connection: Connection,
  { headers, socket, head, signal }: UpgradeRequest,
): Promise<UpgradeRefusal | undefined> {
  const known: readonly string[] = SPDY_PROTOCOLS[connection.kind];
  const wanted = (headers['x-stream-protocol-version'] ?? '').split(',').map((each) => each.trim());
  const protocol = wanted.find((each) => known.includes(each)) ?? '';
  const upgrade = () => {
    const named = { 'x-stream-protocol-version': protocol };
    switchProtocols(socket, { connection: 'Upgrade', upgrade: SPDY, ...named });
    return socketTransport(socket, head, signal);
  };
  if (connection.kind === 'ports') {
    const answer = connection.open();
    if (answer.kind === 'error') return refused(answer);
    if (protocol === '') return unknownProtocol(wanted, known);
    await serveSpdyPorts(answer.target, connection, upgrade());
  } else {
    const answer = connection.open();
    if (answer.kind === 'error') return refused(answer);
    if (protocol === '') return unknownProtocol(wanted, known);
    const options = { transport: upgrade(), protocol, signal };
    await serveSpdyProcess(answer.target, connection, options);
  }
  return undefined;
}

function unknownProtocol(wanted: readonly string[], known: readonly string[]): UpgradeRefusal {
  const clients = `client supports [${wanted.join(' ')}], server accepts [${known.join(' ')}]`;
  return {
    status: 403,
    headers: { ...TEXT, 'x-accepted-stream-protocol-versions': known.join(', ') },
    text: `unable to upgrade: unable to negotiate protocol: ${clients}\n`,
  };
}

const TEXT = { 'content-type': 'text/plain; charset=utf-8' };

function plain(status: number, text: string): UpgradeRefusal {
  return { status, headers: TEXT, text };
}

function refused({
  status,
  message,
}: Extract<KubeletAnswer<never>, { kind: 'error' }>): UpgradeRefusal {
  return plain(status, message);
}
