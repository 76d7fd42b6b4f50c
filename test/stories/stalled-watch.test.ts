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

async function changeThings(world: FaultyNetwork): Promise<void> {
  await world.change('a', 'during');
  await world.remove('b');
  await world.create('d');
}

describe('A network that disturbs a watch connection', () => {
  let world: FaultyNetwork;
  let proxy: TcpProxy;

  beforeEach(async () => {
    world = new FaultyNetwork();
    proxy = await world.overNetwork();
    await world.until('synced', 5000, () => world.isUpToDate());
    world.received.length = 0;
  });
  afterEach(() => world.end());

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
      await changeThings(world);
      const passedMs = await world.until('all changes received', boundMs, () => world.isUpToDate());
      assert.ok(passedMs <= boundMs, `${passedMs} ms`);
      assert.deepEqual(world.received.splice(0).toSorted(), DIFFERENCES);
      await world.change('a', 'after');
      await world.until('all changes received', 1000, () => world.isUpToDate());
      assert.deepEqual(world.received, ['update a']);
      assert.ok(proxy.connections <= 2, 'one for the watch, and one for other requests');
      assert.equal(world.informer.progress.phase, 'watching');
    });
  }

  it('outage of four minutes: the informer reports that its watch is stalled, and recovers', async () => {
    proxy.shut();
    await changeThings(world);
    await world.pass(120_000);
    assert.equal(world.informer.progress.isStale, false, 'not after a short interruption');
    await world.pass(120_000);
    assert.equal(world.informer.progress.isStale, true);
    assert.equal(world.informer.hasSynced, true, 'hasSynced stays true');
    assert.match(String(world.informer.progress.lastError), /Cannot reach/);
    proxy.open();
    await world.until('all changes received', 61_000, () => world.isUpToDate());
    assert.deepEqual(world.received.toSorted(), DIFFERENCES);
    assert.equal(world.informer.progress.isStale, false);
  });

  it('no disturbance: an idle watch keeps its connection', async () => {
    const before = proxy.accepted;
    await world.pass(240_000);
    assert.equal(proxy.accepted, before);
    assert.equal(world.informer.progress.stalls, 0);
    await world.change('a', 'still-here');
    await world.until('all changes received', 1000, () => world.isUpToDate());
  });

  it('repeated resets: neither sockets nor memory accumulate', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const heapAfter = async (rounds: number) => {
      for (let round = 0; round < rounds; round++) {
        proxy.reset();
        await world.until('watching again', 10_000, () => proxy.connections > 0);
        await world.pass(1500);
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
  let world: FaultyNetwork;
  let chaos: HttpChaos;

  beforeEach(async () => {
    world = new FaultyNetwork();
    chaos = new HttpChaos();
    await world.overHandler(chaos.around);
    await world.until('synced', 5000, () => world.isUpToDate());
    world.received.length = 0;
  });
  afterEach(() => world.end());

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
      world.server.faults.dropWatches();
      await changeThings(world);
      await world.pass(5000);
      assert.ok(chaos.hits > 0, 'the fault occurred');
      assert.equal(world.informer.hasSynced, true);
      chaos.fault = undefined;
      await world.until('all changes received', LONGEST_PAUSE_MS, () => world.isUpToDate());
      assert.deepEqual(world.received.splice(0).toSorted(), DIFFERENCES);
      await world.change('a', 'after');
      await world.until('all changes received', LONGEST_PAUSE_MS, () => world.isUpToDate());
      assert.deepEqual(world.received, ['update a']);
      assert.equal(world.informer.progress.lastError, undefined);
    });
  }

  it('compacted history: the informer lists again and reports the differences', async () => {
    world.server.faults.dropWatches();
    chaos.fault = () => Promise.reject(new Error('socket hang up'));
    await changeThings(world);
    world.server.faults.expireHistory();
    await world.pass(3000);
    chaos.fault = undefined;
    await world.until('all changes received', LONGEST_PAUSE_MS, () => world.isUpToDate());
    assert.deepEqual(world.received.toSorted(), DIFFERENCES);
  });

  it('no bookmarks: an idle watch continues after minutes', async () => {
    chaos.fault = async (request, handler) =>
      eachLine(await handler(request), (line) => (line.includes('BOOKMARK') ? undefined : line));
    world.server.faults.dropWatches();
    await world.pass(10 * 60_000);
    await changeThings(world);
    await world.until('all changes received', 1000, () => world.isUpToDate());
    assert.deepEqual(world.received.toSorted(), DIFFERENCES);
  });

  it('lost response to a write: the informer reports the write once', async () => {
    world.server.faults.failNext('POST', 'lostAnswer');
    await assert.rejects(world.create('d'));
    await world.until('all changes received', 1000, () => world.isUpToDate());
    assert.deepEqual(world.received, ['add d']);
  });
});

describe('A server with a faulty initial stream', () => {
  type Fault = NonNullable<HttpChaos['fault']>;
  const startWith = async (
    faultIn: (world: FaultyNetwork) => Fault,
    options: ReflectorOptions = {},
  ) => {
    const world = new FaultyNetwork();
    const chaos = new HttpChaos();
    chaos.fault = faultIn(world);
    await world.overHandler(chaos.around, options);
    return world;
  };

  it('the stream never reports completion: the informer lists instead', async (context) => {
    const world = await startWith(
      () => async (request, handler) =>
        isInitialStream(request)
          ? eachLine(await handler(request), (line) =>
              line.includes('initial-events-end') ? undefined : line,
            )
          : handler(request),
    );
    context.after(() => world.end());
    // Ten seconds without an event, then a list.
    await world.until('synced', 12_000, () => world.informer.hasSynced);
    await world.until('all changes received', 1000, () => world.isUpToDate());
    assert.deepEqual(world.received.toSorted(), ['add a', 'add b', 'add c']);
  });

  it('the continue token expires: the informer lists again without a limit', async (context) => {
    let pages = 0;
    const world = await startWith(
      (world) => async (request, handler) => {
        if (isInitialStream(request)) return answer(400, '{"kind":"Status","reason":"BadRequest"}');
        // A server that answers from its cache returns the whole list, whatever the limit.
        if (/[?&]resourceVersion=0/.test(request.path)) {
          return answer(410, '{"kind":"Status","reason":"Expired"}');
        }
        if (/[?&]continue=/.test(request.path)) {
          await world.change('a', `${pages}`);
          world.server.faults.expireHistory();
        } else if (!isWatch(request)) pages++;
        return handler(request);
      },
      { pageSize: 2 },
    );
    context.after(() => world.end());
    await world.until('synced', 20_000, () => world.isUpToDate());
    assert.deepEqual(world.received.toSorted(), ['add a', 'add b', 'add c']);
    assert.ok(pages >= 2, `${pages} lists from the first page`);
    await changeThings(world);
    await world.until('all changes received', 1000, () => world.isUpToDate());
  });
});
