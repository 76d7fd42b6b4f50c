import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';

/**
 * What becomes of a connection:
 *
 * | fate        | bytes                          | what the ends notice                        |
 * | ----------- | ------------------------------ | ------------------------------------------- |
 * | `pass`      | go through                     |                                             |
 * | `drip`      | go through, three at a time    | that it takes long                          |
 * | `blackhole` | are read and thrown away       | nothing: all they send is acknowledged      |
 * | `halfOpen`  | are not read                   | nothing, until the buffers between are full |
 */
export type Fate = 'pass' | 'drip' | 'blackhole' | 'halfOpen';

/** Bytes of a drip, each in a turn of the event loop. */
const DROP_BYTES = 3;

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  fate: Fate;
  /** What trickles to the client. */
  dripping: Promise<void>;
  /** Bytes that still go to the client before the connection is cut; undefined: all do. */
  left: number | undefined;
}

/**
 * A TCP proxy on this machine in front of a server, and in between whatever befalls networks. TLS and
 * HTTP pass through unseen.
 */
export class TcpProxy {
  readonly #target: number;
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  #isOpen = true;
  /** Moves whenever something happens on any connection: for those who wait for quiet. */
  activity = 0;
  /** Connections accepted so far. */
  accepted = 0;

  private constructor(target: number) {
    this.#target = target;
    this.#server = createServer((client) => this.#accept(client));
  }

  /** In front of 127.0.0.1:`target`. */
  static async start(target: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(target);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Connections that are open. Of half-open ones nobody here can know whether they are. */
  get connections(): number {
    return [...this.#pairs].filter(({ fate }) => fate !== 'halfOpen').length;
  }

  /** What becomes of the connections there are; new ones pass. */
  befall(fate: Fate): void {
    for (const pair of this.#pairs) {
      pair.fate = fate;
      const flow = fate === 'halfOpen' ? 'pause' : 'resume';
      pair.client[flow]();
      pair.server[flow]();
    }
  }

  /** Ends the connections there are with RST. */
  reset(): void {
    for (const { client, server } of this.#pairs) {
      client.resetAndDestroy();
      server.destroy();
    }
  }

  /** Lets `bytes` more go to each client, and then ends its connection: in the middle of a line. */
  cutAfter(bytes: number): void {
    for (const pair of this.#pairs) pair.left = bytes;
  }

  /** Refuses new connections and resets those there are, until `open`. */
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
    const pair: Pair = { client, server, fate: 'pass', dripping, left: undefined };
    this.#pairs.add(pair);
    client.on('data', (bytes: Buffer) => {
      this.activity++;
      if (pair.fate === 'pass' || pair.fate === 'drip') server.write(bytes);
    });
    server.on('data', (bytes: Buffer) => {
      this.activity++;
      if (pair.fate === 'pass') this.#toClient(pair, bytes);
      if (pair.fate === 'drip') pair.dripping = this.#drip(pair, bytes);
    });
    for (const socket of [client, server]) {
      socket.on('close', () => {
        this.activity++;
        this.#pairs.delete(pair);
        // Nobody hears of an end that is swallowed.
        if (pair.fate === 'pass' || pair.fate === 'drip' || socket === client) {
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
