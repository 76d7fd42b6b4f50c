import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';

/**
 * Behaviour of a connection:
 *
 * | behaviour   | bytes                          | visible to client and server                |
 * | ----------- | ------------------------------ | ------------------------------------------- |
 * | `pass`      | forwarded                      |                                             |
 * | `drip`      | forwarded, three at a time     | slow                                        |
 * | `blackhole` | read and discarded             | nothing, since all data is acknowledged     |
 * | `halfOpen`  | not read                       | nothing, until the buffers are full         |
 */
export type ConnectionBehaviour = 'pass' | 'drip' | 'blackhole' | 'halfOpen';

/** Number of bytes that `drip` forwards in a turn of the event loop. */
const DROP_BYTES = 3;

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  behaviour: ConnectionBehaviour;
  /** Pending output to the client. */
  dripping: Promise<void>;
  /** Number of bytes to the client until the connection is cut, if it is to be cut. */
  left: number | undefined;
}

/** A local TCP proxy in front of a server that simulates network faults. */
export class TcpProxy {
  readonly #target: number;
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  #isOpen = true;
  /** Changes with any activity on any connection. */
  activity = 0;
  /** Number of accepted connections. */
  accepted = 0;

  private constructor(target: number) {
    this.#target = target;
    this.#server = createServer((client) => this.#accept(client));
  }

  /** Starts a proxy of 127.0.0.1:`target`. */
  static async start(target: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(target);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Number of open connections, without half-open ones, whose state is unknown. */
  get connections(): number {
    return [...this.#pairs].filter(({ behaviour }) => behaviour !== 'halfOpen').length;
  }

  /** Sets the behaviour of the existing connections. New connections pass. */
  setBehaviour(behaviour: ConnectionBehaviour): void {
    for (const pair of this.#pairs) {
      pair.behaviour = behaviour;
      const flow = behaviour === 'halfOpen' ? 'pause' : 'resume';
      pair.client[flow]();
      pair.server[flow]();
    }
  }

  /** Resets the existing connections. */
  reset(): void {
    for (const { client, server } of this.#pairs) {
      client.resetAndDestroy();
      server.destroy();
    }
  }

  /** Closes each connection after `bytes` more to the client, in the middle of a line. */
  cutAfter(bytes: number): void {
    for (const pair of this.#pairs) pair.left = bytes;
  }

  /** Rejects new connections and resets existing ones until `open`. */
  shut(): void {
    this.#isOpen = false;
    this.reset();
  }

  open(): void {
    this.#isOpen = true;
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.reset();
    await closed;
  }

  #accept(client: Socket): void {
    this.accepted++;
    this.activity++;
    client.on('error', () => undefined);
    if (!this.#isOpen) {
      client.resetAndDestroy();
      return;
    }
    const server = connect(this.#target, '127.0.0.1');
    server.on('error', () => undefined);
    client.setNoDelay(true);
    server.setNoDelay(true);
    const dripping = Promise.resolve();
    const pair: Pair = { client, server, behaviour: 'pass', dripping, left: undefined };
    this.#pairs.add(pair);
    client.on('data', (bytes: Buffer) => {
      this.activity++;
      if (pair.behaviour === 'pass' || pair.behaviour === 'drip') server.write(bytes);
    });
    server.on('data', (bytes: Buffer) => {
      this.activity++;
      if (pair.behaviour === 'pass') this.#toClient(pair, bytes);
      if (pair.behaviour === 'drip') pair.dripping = this.#drip(pair, bytes);
    });
    for (const socket of [client, server]) {
      socket.on('close', () => {
        this.activity++;
        this.#pairs.delete(pair);
        // A blackhole does not forward the end of a connection.
        if (pair.behaviour === 'pass' || pair.behaviour === 'drip' || socket === client) {
          client.destroy();
          server.destroy();
        }
      });
    }
  }

  async #drip(pair: Pair, bytes: Buffer): Promise<void> {
    await pair.dripping;
    for (let at = 0; at < bytes.length; at += DROP_BYTES) {
      this.activity++;
      pair.client.write(bytes.subarray(at, at + DROP_BYTES));
      await turn();
    }
  }

  #toClient(pair: Pair, bytes: Buffer): void {
    if (pair.left === undefined) {
      pair.client.write(bytes);
      return;
    }
    const part = bytes.subarray(0, pair.left);
    pair.left -= part.length;
    pair.client.write(part);
    if (pair.left === 0) pair.client.end();
  }
}
