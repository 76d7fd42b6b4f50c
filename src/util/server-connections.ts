import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Session } from 'node:http2';
import type { Server, Socket } from 'node:net';
import { maxClientConnections } from './descriptor-limit.ts';

export interface ConnectionLimits {
  /** Maximum number of open connections, including those in the TLS handshake. */
  readonly maxConnections: number;
  /** Timeout for the first request of a connection, in milliseconds. */
  readonly firstRequestMs: number;
  /** Timeout of an HTTP/2 connection without requests in flight, in milliseconds. */
  readonly idleMs: number;
  /** @default the connections of all servers of the process */
  readonly pool?: ConnectionPool | undefined;
}

/**
 * The connections of several servers, which share the descriptors of the process. At the limit, a new connection
 * replaces one of the server that has most. Clients of one port therefore cannot keep out those of another.
 */
export class ConnectionPool {
  readonly #maxConnections: number;
  readonly #servers = new Set<ServerConnections>();

  constructor(maxConnections: number) {
    this.#maxConnections = maxConnections;
  }

  add(server: ServerConnections): void {
    this.#servers.add(server);
  }

  delete(server: ServerConnections): void {
    this.#servers.delete(server);
  }

  /** Closes a connection if there is no place for another one: an idle one if there is one. */
  makeRoom(): void {
    let size = 0;
    for (const server of this.#servers) size += server.size;
    if (size < this.#maxConnections) return;
    const servers = [...this.#servers].toSorted((a, b) => b.size - a.size);
    if (!servers.some((server) => server.evictIdle())) servers[0]?.evictOldest();
  }
}

let processPool: ConnectionPool | undefined;

interface Connection {
  readonly socket: Socket;
  /** Address and port of the client. */
  readonly peer: string;
  readonly address: string;
  /** Number of requests in flight. */
  requests: number;
  /** Closes the connection if no request arrives. */
  readonly unused: NodeJS.Timeout;
}

/**
 * Tracks and limits the open connections of an HTTP server. A new connection is always accepted: at the
 * limit it replaces the connection that has been idle longest, of the remote addresses with more than their share. If all
 * connections have requests in flight, it replaces the one that has been in use longest. Otherwise, clients that open connections
 * and send nothing would block all others, including health probes.
 *
 * Other timeouts of HTTP/1.1 connections are options of the server. Node.js 22 has none for the first request of a
 * connection to a server that also has HTTP/2.
 */
export class ServerConnections {
  readonly #limits: ConnectionLimits;
  /** The connection that has been idle longest comes first. */
  readonly #open = new Set<Connection>();
  /** Number of connections of each remote address. */
  readonly #byAddress = new Map<string, number>();
  readonly #pool: ConnectionPool;
  readonly #byPeer = new Map<string, Connection>();
  /** Connections by the socket of their requests: that of HTTP/1.1, or the session of HTTP/2. */
  readonly #bySocket = new WeakMap<object, Connection>();

  constructor(server: Server, limits: ConnectionLimits) {
    this.#limits = limits;
    this.#pool = limits.pool ?? (processPool ??= new ConnectionPool(maxClientConnections()));
    this.#pool.add(this);
    server.once('close', () => this.#pool.delete(this));
    server.on('connection', (socket: Socket) => this.#add(socket));
    server.on('secureConnection', readInJavaScript);
    server.on('session', (session: ServerHttp2Session) => this.#limitSession(session));
    for (const event of ['request', 'checkContinue']) {
      server.on(
        event,
        (
          request: IncomingMessage | Http2ServerRequest,
          response: ServerResponse | Http2ServerResponse,
        ) => this.#track(request, response),
      );
    }
  }

  get size(): number {
    return this.#open.size;
  }

  /** Marks a connection as in use until it closes, because another protocol has taken it over. */
  hold(socket: Socket): void {
    const connection = this.#find(socket, socket);
    if (!connection) return;
    clearTimeout(connection.unused);
    connection.requests++;
  }

  /** Closes all connections immediately. */
  destroy(): void {
    for (const { socket } of this.#open) socket.destroy();
  }

  #add(socket: Socket): void {
    // Otherwise, the body of an HTTP/1.1 response waits up to 40 ms until its headers are acknowledged.
    socket.setNoDelay(true);
    if (this.#open.size >= this.#limits.maxConnections && !this.evictIdle()) this.evictOldest();
    this.#pool.makeRoom();
    const { remoteAddress: address = '' } = socket;
    const unused = setTimeout(() => socket.destroy(), this.#limits.firstRequestMs);
    unused.unref();
    const connection = { socket, peer: peerOf(socket), address, requests: 0, unused };
    this.#open.add(connection);
    this.#byAddress.set(address, (this.#byAddress.get(address) ?? 0) + 1);
    this.#byPeer.set(connection.peer, connection);
    socket.once('close', () => this.#remove(connection));
  }

  /** Closes the connection that has been idle longest, of an address with its share or more. Returns whether there was one. */
  evictIdle(): boolean {
    const share = this.#open.size / this.#byAddress.size;
    let evicted: Connection | undefined;
    for (const connection of this.#open) {
      if (connection.requests > 0) continue;
      evicted ??= connection;
      if ((this.#byAddress.get(connection.address) ?? 0) < share) continue;
      evicted = connection;
      break;
    }
    if (evicted) this.#close(evicted);
    return evicted !== undefined;
  }

  /** Closes the connection that has been in use longest. */
  evictOldest(): void {
    const [oldest] = this.#open;
    if (oldest) this.#close(oldest);
  }

  #close(connection: Connection): void {
    this.#remove(connection);
    connection.socket.destroy();
  }

  #remove(connection: Connection): void {
    if (!this.#open.delete(connection)) return;
    const { peer, address, unused } = connection;
    clearTimeout(unused);
    const others = (this.#byAddress.get(address) ?? 0) - 1;
    if (others > 0) this.#byAddress.set(address, others);
    else this.#byAddress.delete(address);
    if (this.#byPeer.get(peer) === connection) this.#byPeer.delete(peer);
  }

  /** @param key the socket, or the session of which it is a proxy */
  #find(key: object, socket: Socket): Connection | undefined {
    const known = this.#bySocket.get(key);
    if (known) return known;
    const connection = this.#byPeer.get(peerOf(socket));
    if (connection) this.#bySocket.set(key, connection);
    return connection;
  }

  #track(
    request: IncomingMessage | Http2ServerRequest,
    response: ServerResponse | Http2ServerResponse,
  ): void {
    const { socket } = request;
    const connection = this.#find(
      ('stream' in request && request.stream.session) || socket,
      socket,
    );
    if (!connection) return;
    clearTimeout(connection.unused);
    connection.requests++;
    response.once('close', () => {
      connection.requests--;
      if (connection.requests > 0 || !this.#open.delete(connection)) return;
      this.#open.add(connection);
    });
  }

  #limitSession(session: ServerHttp2Session): void {
    const { idleMs } = this.#limits;
    const connection = this.#find(session, session.socket);
    session.setTimeout(idleMs);
    session.on('timeout', () => {
      // Requests in flight, such as watches, have no idle timeout.
      if (connection?.requests === 0) session.close();
    });
  }
}

/**
 * Reads a TLS connection through its stream. Otherwise, Node.js passes the bytes directly to its HTTP
 * parser, even after it has paused the connection because a client sends requests faster than it reads
 * responses: OpenSSL still buffers bytes. The parser then fails with HPE_PAUSED, and the requests that
 * follow are lost.
 */
function readInJavaScript(socket: Socket): void {
  socket.on('data', () => undefined);
}

/** Returns address and port of the client, which are equal for a socket and the TLS socket on top of it. */
function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
