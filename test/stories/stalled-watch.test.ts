import assert from 'node:assert/strict';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { ReflectorOptions } from '../../src/cache/reflector-options.ts';
import { FaultyNetwork } from '../support/chaos/faulty-network.ts';
import {
  answer,
  eachLine,
  firstHalf,
  HttpChaos,
  isInitialStream,
  isWatch,
} from '../support/chaos/http-chaos.ts';
import type { TcpProxy } from '../support/chaos/tcp-proxy.ts';

/** Idle time until a ping, time until its response is overdue, and a new connection: decision 0008. */
const DEAD_CONNECTION_MS = 40_000;

/** A closed connection is replaced at once, or after the first delay. */
const BROKEN_CONNECTION_MS = 3000;

/**
 * Delays between attempts are at most 1.6, 3.2, 6.4 and 12.8 s. A fault of five seconds ends in the
 * third delay at the latest.
 */
const LONGEST_PAUSE_MS = 6400;

/** Events that the handler must receive for the changes during a fault, in any order. */
const DIFFERENCES = ['add d', 'delete b', 'update a'];

async function changeThings(network: FaultyNetwork): Promise<void> {
  await network.change('a', 'during');
  await network.remove('b');
  await network.create('d');
}

describe('A network that disturbs a watch connection', () => {
  let network: FaultyNetwork;
  let proxy: TcpProxy;

  beforeEach(async () => {
    network = new FaultyNetwork();
    proxy = await network.overNetwork();
    await network.until('synced', 5000, () => network.isUpToDate());
    network.received.length = 0;
  });
  afterEach(() => network.end());

  const faults: readonly {
    readonly what: string;
    readonly harm: () => void;
    readonly boundMs: number;
  }[] = [
    {
      what: 'drops all data and acknowledges it',
      harm: () => proxy.setBehaviour('blackhole'),
      boundMs: DEAD_CONNECTION_MS,
    },
    {
      what: 'leaves it half open',
      harm: () => proxy.setBehaviour('halfOpen'),
      boundMs: DEAD_CONNECTION_MS,
    },
    {
      what: 'delivers bytes slowly',
      harm: () => proxy.setBehaviour('drip'),
      boundMs: BROKEN_CONNECTION_MS,
    },
    { what: 'resets it', harm: () => proxy.reset(), boundMs: BROKEN_CONNECTION_MS },
    {
      what: 'closes it in the middle of a line',
      harm: () => proxy.cutAfter(150),
      boundMs: BROKEN_CONNECTION_MS,
    },
  ];
  for (const { what, harm, boundMs } of faults) {
    it(`${what}: the informer reports all changes in time, once`, async () => {
      harm();
      await changeThings(network);
      const passedMs = await network.until('all changes received', boundMs, () =>
        network.isUpToDate(),
      );
      assert.ok(passedMs <= boundMs, `${passedMs} ms`);
      assert.deepEqual(network.received.splice(0).toSorted(), DIFFERENCES);
      await network.change('a', 'after');
      await network.until('all changes received', 1000, () => network.isUpToDate());
      assert.deepEqual(network.received, ['update a']);
      assert.ok(proxy.connections <= 2, 'one for the watch, and one for other requests');
      assert.equal(network.informer.progress.phase, 'watching');
    });
  }

  it('outage of four minutes: the informer reports that its watch is stalled, and recovers', async () => {
    proxy.shut();
    await changeThings(network);
    await network.pass(120_000);
    assert.equal(network.informer.progress.isStale, false, 'not after a short interruption');
    await network.pass(120_000);
    assert.equal(network.informer.progress.isStale, true);
    assert.equal(network.informer.hasSynced, true, 'hasSynced stays true');
    assert.match(String(network.informer.progress.lastError), /Cannot reach/);
    proxy.open();
    await network.until('all changes received', 61_000, () => network.isUpToDate());
    assert.deepEqual(network.received.toSorted(), DIFFERENCES);
    assert.equal(network.informer.progress.isStale, false);
  });

  it('no disturbance: an idle watch keeps its connection', async () => {
    const before = proxy.accepted;
    await network.pass(240_000);
    assert.equal(proxy.accepted, before);
    assert.equal(network.informer.progress.stalls, 0);
    await network.change('a', 'still-here');
    await network.until('all changes received', 1000, () => network.isUpToDate());
  });

  it('repeated resets: neither sockets nor memory accumulate', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const heapAfter = async (rounds: number) => {
      for (let round = 0; round < rounds; round++) {
        proxy.reset();
        await network.until('watching again', 10_000, () => proxy.connections > 0);
        await network.pass(1500);
      }
      collect();
      return process.memoryUsage().heapUsed;
    };
    await heapAfter(15);
    const before = await heapAfter(5);
    const grown = (await heapAfter(15)) - before;
    assert.ok(grown < 1_000_000, `${grown} additional bytes after fifteen resets`);
    assert.ok(proxy.connections <= 2, 'one for the watch, and one for other requests');
  });
});

describe('A server with faulty responses', () => {
  let network: FaultyNetwork;
  let chaos: HttpChaos;

  beforeEach(async () => {
    network = new FaultyNetwork();
    chaos = new HttpChaos();
    await network.overHandler(chaos.around);
    await network.until('synced', 5000, () => network.isUpToDate());
    network.received.length = 0;
  });
  afterEach(() => network.end());

  const status = (
    code: number,
    reason: string,
    headers: Readonly<Record<string, string>> = {},
    causes: readonly object[] = [],
  ) =>
    answer(
      code,
      JSON.stringify({ kind: 'Status', apiVersion: 'v1', reason, code, details: { causes } }),
      { 'content-type': 'application/json', ...headers },
    );
  const faults: Readonly<Record<string, NonNullable<HttpChaos['fault']>>> = {
    '429 without Retry-After': () => Promise.resolve(status(429, 'TooManyRequests')),
    '429 with Retry-After': () =>
      Promise.resolve(status(429, 'TooManyRequests', { 'retry-after': '2' })),
    '500': () => Promise.resolve(status(500, 'InternalError')),
    '503': () => Promise.resolve(status(503, 'ServiceUnavailable')),
    '504': () => Promise.resolve(status(504, 'Timeout')),
    'a page of HTML': () =>
      Promise.resolve(
        answer(200, '<html><body>Please log in</body></html>', { 'content-type': 'text/html' }),
      ),
    'half a JSON document': async (request, handler) => {
      if (!isWatch(request)) return firstHalf(await handler(request));
      return answer(200, '{"type":"MODIFIED","object":{"kind":"Conf');
    },
    '410 to a request': () => Promise.resolve(status(410, 'Gone')),
    '410 in the stream': async (request, handler) => {
      if (!isWatch(request)) return handler(request);
      const object = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' };
      return answer(200, `${JSON.stringify({ type: 'ERROR', object })}\n`);
    },
    '500 in the stream': async (request, handler) => {
      if (!isWatch(request)) return handler(request);
      const object = { kind: 'Status', code: 500, reason: 'InternalError', message: 'etcd' };
      return answer(200, `${JSON.stringify({ type: 'ERROR', object })}\n`);
    },
    'a resourceVersion that the server has not reached': (request, handler) =>
      /resourceVersion=[1-9]/.test(request.path)
        ? Promise.resolve(status(504, 'Timeout', {}, [{ reason: 'ResourceVersionTooLarge' }]))
        : handler(request),
    'a stream that ends at once': () => Promise.resolve(answer(200, '')),
    'a connection that breaks': () => Promise.reject(new Error('socket hang up')),
  };
  for (const [what, fault] of Object.entries(faults)) {
    it(`${what} for five seconds: the informer reports all changes in time, once`, async () => {
      chaos.fault = fault;
      network.server.faults.dropWatches();
      await changeThings(network);
      await network.pass(5000);
      assert.ok(chaos.hits > 0, 'the fault occurred');
      assert.equal(network.informer.hasSynced, true);
      chaos.fault = undefined;
      await network.until('all changes received', LONGEST_PAUSE_MS, () => network.isUpToDate());
      assert.deepEqual(network.received.splice(0).toSorted(), DIFFERENCES);
      await network.change('a', 'after');
      await network.until('all changes received', LONGEST_PAUSE_MS, () => network.isUpToDate());
      assert.deepEqual(network.received, ['update a']);
      assert.equal(network.informer.progress.lastError, undefined);
    });
  }

  it('compacted history: the informer lists again and reports the differences', async () => {
    network.server.faults.dropWatches();
    chaos.fault = () => Promise.reject(new Error('socket hang up'));
    await changeThings(network);
    network.server.faults.expireHistory();
    await network.pass(3000);
    chaos.fault = undefined;
    await network.until('all changes received', LONGEST_PAUSE_MS, () => network.isUpToDate());
    assert.deepEqual(network.received.toSorted(), DIFFERENCES);
  });

  it('no bookmarks: an idle watch continues after minutes', async () => {
    chaos.fault = async (request, handler) =>
      eachLine(await handler(request), (line) => (line.includes('BOOKMARK') ? undefined : line));
    network.server.faults.dropWatches();
    await network.pass(10 * 60_000);
    await changeThings(network);
    await network.until('all changes received', 1000, () => network.isUpToDate());
    assert.deepEqual(network.received.toSorted(), DIFFERENCES);
  });

  it('lost response to a write: the informer reports the write once', async () => {
    network.server.faults.failNext('POST', 'lostResponse');
    await assert.rejects(network.create('d'));
    await network.until('all changes received', 1000, () => network.isUpToDate());
    assert.deepEqual(network.received, ['add d']);
  });
});

describe('A server with a faulty initial stream', () => {
  type Fault = NonNullable<HttpChaos['fault']>;
  const startWith = async (
    faultIn: (network: FaultyNetwork) => Fault,
    options: ReflectorOptions = {},
  ) => {
    const network = new FaultyNetwork();
    const chaos = new HttpChaos();
    chaos.fault = faultIn(network);
    await network.overHandler(chaos.around, options);
    return network;
  };

  it('the stream never reports completion: the informer lists instead', async (context) => {
    const network = await startWith(
      () => async (request, handler) =>
        isInitialStream(request)
          ? eachLine(await handler(request), (line) =>
              line.includes('initial-events-end') ? undefined : line,
            )
          : handler(request),
    );
    context.after(() => network.end());
    // Ten seconds without an event, then a list.
    await network.until('synced', 12_000, () => network.informer.hasSynced);
    await network.until('all changes received', 1000, () => network.isUpToDate());
    assert.deepEqual(network.received.toSorted(), ['add a', 'add b', 'add c']);
  });

  it('the continue token expires: the informer lists again without a limit', async (context) => {
    let pages = 0;
    const network = await startWith(
      (network) => async (request, handler) => {
        if (isInitialStream(request)) return answer(400, '{"kind":"Status","reason":"BadRequest"}');
        // A server that answers from its cache returns the whole list, whatever the limit.
        if (/[?&]resourceVersion=0/.test(request.path)) {
          return answer(410, '{"kind":"Status","reason":"Expired"}');
        }
        if (/[?&]continue=/.test(request.path)) {
          await network.change('a', `${pages}`);
          network.server.faults.expireHistory();
        } else if (!isWatch(request)) pages++;
        return handler(request);
      },
      { pageSize: 2 },
    );
    context.after(() => network.end());
    await network.until('synced', 20_000, () => network.isUpToDate());
    assert.deepEqual(network.received.toSorted(), ['add a', 'add b', 'add c']);
    assert.ok(pages >= 2, `${pages} lists from the first page`);
    await changeThings(network);
    await network.until('all changes received', 1000, () => network.isUpToDate());
  });
});
