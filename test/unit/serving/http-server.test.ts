import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { Readable } from 'node:stream';
import { describe, it } from 'node:test';
import { parseBindAddress } from '../../../src/serving/bind-address.ts';
import type { Download, DownloadRequest, HttpServerRoutes } from '../../../src/serving/routes.ts';
import type { RequestAuthorizer } from '../../../src/serving/delegated-access.ts';

import { HttpServer } from '../../../src/serving/http-server.ts';
import type { HttpServerOptions } from '../../../src/serving/http-server.ts';
import { Deferred } from '../../../src/util/deferred.ts';
import { OverloadedError } from '../../../src/util/memory-budget.ts';
import { silentLogger } from '../../../src/util/logger.ts';
import { untilAborted } from '../../../src/util/abort.ts';
import { closed } from '../../support/closed.ts';

/** Serves `routes` while `work` sends requests. */
async function serving(
  routes: HttpServerRoutes,
  work: (get: (path: string, init?: RequestInit) => Promise<[number, string]>) => Promise<void>,
): Promise<void> {
  const { server, ended } = await started({ routes });
  try {
    await work(async (path, init) => {
      const response = await fetch(`http://${server}${path}`, init);
      return [response.status, await response.text()];
    });
  } finally {
    await ended();
  }
}

/** Sends headers that `fetch` does not allow to set. */
async function statusOf(
  server: string,
  path: string,
  headers: Record<string, string> = {},
  method = 'GET',
): Promise<number | undefined> {
  const asked = request(`http://${server}${path}`, { method, headers, agent: false });
  asked.end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  response.resume();
  return response.statusCode;
}

/** An open connection. */
async function dial(server: string): Promise<Socket> {
  const [host, port] = server.split(':');
  const socket = connect(Number(port), host);
  socket.on('error', () => undefined).resume();
  await once(socket, 'connect');
  return socket;
}

/** A listening server, and a function that stops it. */
async function started(
  options: Omit<HttpServerOptions, 'name' | 'bindAddress'> & { bindAddress?: string },
) {
  const listening = new Deferred<string>();
  const log = {
    ...silentLogger,
    v: () => log,
    info: (_: string, fields: { address?: unknown } = {}) =>
      listening.resolve(String(fields.address)),
  };
  const server = new HttpServer(
    { log },
    { name: 'probes', bindAddress: '127.0.0.1:0', ...options },
  );
  const stop = new AbortController();
  const run = server.run(stop.signal);
  run.catch((error: unknown) => listening.reject(error));
  const ended = async () => {
    stop.abort();
    await run;
  };
  return { server: await listening.promise, ended };
}

describe('HttpServer', () => {
  it('responds with ok, or with one line per check with ?verbose', async () => {
    const cache = { name: 'informer-sync', check: () => undefined };
    await serving({ livez: [], readyz: [cache] }, async (get) => {
      assert.deepEqual(await get('/livez'), [200, 'ok']);
      assert.deepEqual(await get('/healthz'), [200, 'ok']);
      assert.deepEqual(await get('/readyz?verbose'), [
        200,
        '[+]ping ok\n[+]informer-sync ok\nreadyz check passed\n',
      ]);
      assert.deepEqual(await get('/readyz/informer-sync'), [200, 'ok']);
      assert.deepEqual(await get('/readyz/nonsense'), [404, '404 not found\n']);
    });
  });

  it('ends if it is stopped before it listens', async () => {
    const options = { name: 'probes', bindAddress: '127.0.0.1:0', routes: {} };
    await new HttpServer({ log: silentLogger }, options).run(AbortSignal.abort());
  });

  it('compares the content type of a call without its case and parameters', async () => {
    const respond = async () => ({ status: 200, contentType: 'text/plain', body: 'ok' });
    const calls = new Map([['/call', { maxBytes: 10, respond }]]);
    await serving({ calls }, async (get) => {
      for (const [type, status] of [
        ['Application/JSON; charset=utf-8', 200],
        ['application/jsonp', 415],
      ] as const) {
        const init = { method: 'POST', body: '{}', headers: { 'content-type': type } };
        assert.equal((await get('/call', init))[0], status);
      }
    });
  });

  it('shows the detail of a check only with ?verbose', async () => {
    const detail = () => ['pods: watching for 3s'];
    const fine = { name: 'fine', check: () => undefined, detail };
    const bad = { name: 'bad', check: () => 'secret', detail };
    await serving({ livez: [fine], readyz: [bad] }, async (get) => {
      assert.deepEqual(await get('/livez'), [200, 'ok']);
      assert.deepEqual(await get('/healthz'), [200, 'ok']);
      assert.deepEqual(await get('/livez?verbose'), [
        200,
        '[+]ping ok\n[+]fine ok\n    pods: watching for 3s\nlivez check passed\n',
      ]);
      assert.deepEqual(await get('/readyz?verbose'), [
        500,
        '[+]ping ok\n[-]bad failed: reason withheld\n    pods: watching for 3s\nreadyz check failed\n',
      ]);
    });
  });

  it('responds with 500 if a check fails, and writes the reason only to the log', async () => {
    const cache = { name: 'cache', check: () => 'counts: secret detail' };
    await serving({ readyz: [cache] }, async (get) => {
      assert.deepEqual(await get('/readyz'), [
        500,
        '[+]ping ok\n[-]cache failed: reason withheld\nreadyz check failed\n',
      ]);
      assert.deepEqual(await get('/readyz?exclude=cache'), [200, 'ok']);
      assert.deepEqual(await get('/readyz/cache?exclude=cache'), [
        500,
        '[-]cache failed: reason withheld\nreadyz check failed\n',
      ]);
    });
  });

  it('reports excluded checks, and exclusions that match no check', async () => {
    const bad = { name: 'bad', check: () => 'broken' };
    const fine = { name: 'fine', check: () => undefined };
    await serving({ readyz: [bad, fine] }, async (get) => {
      assert.deepEqual(await get('/readyz?verbose&exclude=bad&exclude=ping&exclude=b%22d'), [
        200,
        '[+]ping excluded: ok\n[+]bad excluded: ok\n[+]fine ok\n' +
          'warn: some health checks cannot be excluded: no matches for "b\\"d"\nreadyz check passed\n',
      ]);
      assert.deepEqual(await get('/readyz/ping'), [200, 'ok']);
      assert.deepEqual(await get('/readyz/fine/more'), [404, '404 not found\n']);
    });
  });

  it('serves pages with their query parameters', async () => {
    const page = (query: URLSearchParams) => ({
      status: 201,
      contentType: 'application/json',
      body: JSON.stringify([...query]),
    });
    await serving({ pages: new Map([['/debug/why', page]]) }, async (get) => {
      assert.deepEqual(await get('/debug/why?key=a%2Fb'), [201, '[["key","a/b"]]']);
      assert.equal((await get('/debug/why/more'))[0], 404);
      assert.equal((await get('/debug/why', { method: 'POST', body: 'x' }))[0], 405);
    });
  });

  it('streams downloads as attachments, and aborts the response if the stream fails', async () => {
    const asked: string[] = [];
    const download = ({ query, signal }: DownloadRequest): Promise<Download> => {
      asked.push(`${query.toString()} ${signal.aborted}`);
      const body = query.has('broken')
        ? Readable.from(broken())
        : Readable.from(['a'.repeat(100_000), 'b']);
      return Promise.resolve({ status: 200, contentType: 'text/x', body, fileName: 'a.b' });
    };
    function* broken() {
      yield 'partial';
      throw new Error('read failed');
    }
    const { server, ended } = await started({
      routes: { downloads: new Map([['/debug/heap', download]]) },
    });
    const response = await fetch(`http://${server}/debug/heap?x=1`);
    assert.equal((await response.text()).length, 100_001);
    const { headers } = response;
    assert.equal(headers.get('content-type'), 'text/x');
    assert.equal(headers.get('content-disposition'), 'attachment; filename="a.b"');
    await assert.rejects(fetch(`http://${server}/debug/heap?broken`).then((it) => it.text()));
    for (const method of ['HEAD', 'POST']) {
      assert.equal((await fetch(`http://${server}/debug/heap`, { method })).status, 405);
    }
    assert.deepEqual(asked, ['x=1 false', 'broken= false']);
    await ended();
  });

  it('reads settings with GET and changes them with PUT', async () => {
    let level = 2;
    const verbosity = {
      name: 'klog.logging.verbosity',
      get: () => String(level),
      set: (text: string) => {
        if (!/^\d$/.test(text)) throw new RangeError('must be a digit');
        level = Number(text);
      },
    };
    const settings = new Map([['/debug/flags/v', verbosity]]);
    await serving({ settings }, async (get) => {
      const put = (body: string) => get('/debug/flags/v', { method: 'PUT', body });
      assert.deepEqual(await get('/debug/flags/v'), [200, '2']);
      assert.deepEqual(await put('4'), [200, 'successfully set klog.logging.verbosity to 4']);
      assert.deepEqual(await get('/debug/flags/v'), [200, '4']);
      assert.deepEqual(await put('high'), [
        400,
        'failed set klog.logging.verbosity high: must be a digit',
      ]);
      assert.equal((await put('4'.repeat(2000)))[0], 413);
      assert.equal((await get('/debug/flags/v', { method: 'DELETE' }))[0], 405);
      assert.equal((await get('/debug/flags/x', { method: 'PUT', body: '4' }))[0], 405);
      assert.equal(level, 4);
    });
  });

  it('authorizes every request except probes', async (context) => {
    const asked: string[] = [];
    const authorizer: RequestAuthorizer = {
      authorize: ({ method, path, authorization }) => {
        asked.push(`${method} ${path} ${authorization}`);
        if (authorization === 'Bearer good') return Promise.resolve({ allowed: true });
        const status = authorization === undefined ? 401 : 403;
        return Promise.resolve({ allowed: false, status, reason: 'No' });
      },
    };
    const metrics = () => Promise.resolve({ contentType: 'text/plain', text: 'up 1\n' });
    const page = () => ({ status: 200, contentType: 'text/plain', body: 'page' });
    let level = '2';
    const setting = { name: 'v', get: () => level, set: (text: string) => (level = text) };
    const routes = {
      livez: [],
      metrics,
      pages: new Map([['/debug/queues', page]]),
      settings: new Map([['/debug/flags/v', setting]]),
    };
    const headers = { authorization: 'Bearer good' };
    const { server, ended } = await started({ routes, authorizer });
    context.after(ended);
    const get = (path: string, init?: RequestInit) => fetch(`http://${server}${path}`, init);
    for (const path of ['/metrics', '/debug/queues', '/debug/flags/v', '/nothing']) {
      const refused = await get(path);
      assert.deepEqual([refused.status, await refused.text()], [401, 'No\n'], path);
      assert.equal(refused.headers.get('www-authenticate'), 'Bearer');
      assert.equal((await get(path, { headers: { authorization: 'Bearer bad' } })).status, 403);
      assert.equal((await get(path, { headers })).status, path === '/nothing' ? 404 : 200);
    }
    assert.equal((await get('/debug/flags/v', { method: 'PUT', body: '9' })).status, 401);
    assert.equal(level, '2');
    assert.equal((await get('/livez')).status, 200);
    assert.equal((await get('/metrics?x=1', { headers })).status, 200);
    assert.equal(asked.at(-1), 'GET /metrics Bearer good', 'without the query');
    assert.ok(!asked.some((line) => line.includes('livez')));
  });

  it('asks for a retry if there is not enough memory for a request', async (context) => {
    const respond = () => Promise.reject(new OverloadedError('too many requests'));
    const routes = { calls: new Map([['/call', { maxBytes: 10, respond }]]) };
    const { server, ended } = await started({ routes });
    context.after(ended);
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`http://${server}/call`, { method: 'POST', headers, body: '{}' });
    await answer.text();
    assert.deepEqual([answer.status, answer.headers.get('retry-after')], [429, '1']);
  });

  it('rejects requests of web pages of other origins, except probes', async (context) => {
    const changes: string[] = [];
    const setting = { name: 'v', get: () => '2', set: (text: string) => void changes.push(text) };
    const page = () => ({ status: 200, contentType: 'text/plain', body: 'page' });
    const routes: Required<HttpServerRoutes> = {
      livez: [],
      readyz: [],
      metrics: () => Promise.resolve({ contentType: 'text/plain', text: 'up 1\n' }),
      pages: new Map([['/page', page]]),
      downloads: new Map([['/download', () => Promise.resolve(page())]]),
      settings: new Map([['/setting', setting]]),
      calls: new Map([['/call', { maxBytes: 10, respond: () => Promise.resolve(page()) }]]),
    };
    const { server, ended } = await started({ routes });
    context.after(ended);
    const port = server.split(':')[1];
    const own = [
      {},
      { host: 'localhost' },
      { host: `LOCALHOST:${port}` },
      { host: '127.1.2.3:1' },
      { host: '[::1]:80' },
      { host: 'localhost:1', origin: 'http://localhost:1', 'sec-fetch-site': 'same-origin' },
      { 'sec-fetch-site': 'none' },
    ];
    const otherHosts = [
      { host: 'rebound.example' },
      { host: `rebound.example:${port}` },
      { host: '127.0.0.1.example' },
      { host: '0.0.0.0' },
    ];
    const crossOrigin = [
      { host: 'localhost:1', origin: 'http://localhost:2' },
      { host: 'localhost:1', origin: 'https://localhost:1' },
      { origin: 'http://page.example' },
      { origin: 'null' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'cross-site' },
    ];
    for (const path of ['/page', '/download', '/setting', '/metrics']) {
      for (const headers of own) {
        assert.equal(await statusOf(server, path, headers), 200, JSON.stringify([path, headers]));
      }
      for (const headers of crossOrigin) {
        assert.equal(await statusOf(server, path, headers), 403, JSON.stringify([path, headers]));
      }
    }
    for (const headers of otherHosts) {
      for (const path of ['/page', '/download', '/setting']) {
        assert.equal(await statusOf(server, path, headers), 403, JSON.stringify([path, headers]));
      }
      assert.equal(await statusOf(server, '/setting', headers, 'PUT'), 403);
      // Proxies in the Pod, Services and API servers name other hosts.
      assert.equal(await statusOf(server, '/metrics', headers), 200);
      assert.equal(await statusOf(server, '/livez', headers), 200);
      assert.equal(await statusOf(server, '/call', headers, 'POST'), 415);
    }
    for (const headers of crossOrigin) {
      assert.equal(await statusOf(server, '/setting', headers, 'PUT'), 403);
      assert.equal(await statusOf(server, '/call', headers, 'POST'), 403);
      assert.equal(await statusOf(server, '/nothing', headers), 403);
      assert.equal(await statusOf(server, '/livez', headers), 200);
    }
    assert.deepEqual(changes, []);
  });

  it('checks the Host header only on a loopback address without authorization', async (context) => {
    const page = () => ({ status: 200, contentType: 'text/plain', body: 'page' });
    const routes = { pages: new Map([['/page', page]]) };
    const authorizer: RequestAuthorizer = { authorize: () => Promise.resolve({ allowed: true }) };
    for (const options of [{ authorizer }, { bindAddress: '0.0.0.0:0' }]) {
      const { server, ended } = await started({ routes, ...options });
      context.after(ended);
      assert.equal(await statusOf(server, '/page', { host: 'pod.example:1' }), 200);
      const origin = 'http://page.example';
      assert.equal(await statusOf(server, '/page', { host: 'pod.example:1', origin }), 403);
    }
  });

  it('closes the connection that was idle longest at the connection limit', async (context) => {
    const answer = new Deferred<Download>();
    const asked = new Deferred();
    const download = () => {
      asked.resolve();
      return answer.promise;
    };
    const { server, ended } = await started({
      routes: { livez: [], downloads: new Map([['/slow', download]]) },
      maxConnections: 3,
    });
    context.after(ended);
    const slow = fetch(`http://${server}/slow`);
    await asked.promise;
    const first = await dial(server);
    const second = await dial(server);
    second.write('GET /livez HTTP/1.1\r\n');
    assert.equal(await statusOf(server, '/livez'), 200);
    await closed(first);
    assert.equal(second.closed, false);
    // A client that has not sent a complete request counts as idle.
    const others = [await dial(server), await dial(server)];
    await closed(second);
    answer.resolve({ status: 200, contentType: 'text/plain', body: 'done' });
    assert.equal(await (await slow).text(), 'done', 'requests under way are left alone');
    for (const socket of others) socket.destroy();
  });

  it('responds to probes while all allowed connections wait for a response', async (context) => {
    const waiting = [new Deferred(), new Deferred(), new Deferred()];
    const download = async ({ query, signal }: DownloadRequest): Promise<Download> => {
      waiting[Number(query.get('n'))]?.resolve();
      await untilAborted(signal);
      return { status: 200, contentType: 'text/plain', body: '' };
    };
    const { server, ended } = await started({
      routes: { livez: [], downloads: new Map([['/slow', download]]) },
      maxConnections: waiting.length,
    });
    context.after(ended);
    for (const [n, { promise }] of waiting.entries()) {
      (await dial(server)).write(`GET /slow?n=${n} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
      await promise;
    }
    assert.equal(await statusOf(server, '/livez'), 200);
    assert.equal(await statusOf(server, '/livez'), 200);
  });

  it('keeps connections open after authorized requests, not after probes and rejected requests', async (context) => {
    const authorizer: RequestAuthorizer = {
      authorize: ({ authorization }) =>
        Promise.resolve(
          authorization ? { allowed: true } : { allowed: false, status: 401, reason: 'No' },
        ),
    };
    const metrics = () => Promise.resolve({ contentType: 'text/plain', text: 'up 1\n' });
    const { server, ended } = await started({ routes: { livez: [], metrics }, authorizer });
    context.after(ended);
    const kept = async (path: string, headers: Record<string, string> = {}) =>
      (await fetch(`http://${server}${path}`, { headers })).headers.get('connection');
    assert.equal(await kept('/livez'), 'close');
    assert.equal(await kept('/metrics'), 'close');
    assert.equal(await kept('/metrics', { authorization: 'Bearer good' }), 'keep-alive');
  });

  it('closes connections whose request does not arrive within the timeout', async (context) => {
    const { server, ended } = await started({ routes: { livez: [] }, requestTimeoutMs: 20 });
    context.after(ended);
    const silent = await dial(server);
    const partial = await dial(server);
    partial.write('GET /livez HTTP/1.1\r\nHost: localhost\r\n');
    await Promise.all([closed(silent), closed(partial)]);
  });

  it('responds with 500 and no details if a handler fails', async () => {
    const metrics = () => Promise.reject(new Error('secret'));
    await serving({ metrics }, async (get) => {
      assert.deepEqual(await get('/metrics'), [500, 'internal error\n']);
    });
  });

  it('serves metrics, responds with 404 to other paths and with 405 to other methods', async () => {
    const metrics = () => Promise.resolve({ contentType: 'text/plain', text: 'up 1\n' });
    await serving({ metrics }, async (get) => {
      assert.deepEqual(await get('/metrics'), [200, 'up 1\n']);
      assert.equal((await get('/livez'))[0], 404);
      assert.equal((await get('/metrics', { method: 'POST', body: 'x' }))[0], 405);
    });
  });

  it('responds with 404 to unknown paths, including names of JavaScript properties', async () => {
    await serving({ livez: [] }, async (get) => {
      for (const path of ['/constructor', '/__proto__', '/toString/x', '//', '//a:b/', '/%']) {
        assert.deepEqual(await get(path), [404, '404 not found\n'], path);
      }
    });
  });

  it('rejects if the port is in use', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as AddressInfo;
    const server = new HttpServer(
      { log: silentLogger },
      { name: 'probes', bindAddress: `127.0.0.1:${port}`, routes: {} },
    );
    await assert.rejects(server.run(new AbortController().signal), /EADDRINUSE/);
    other.close();
  });

  it('parses bind addresses, and rejects invalid ones', () => {
    assert.deepEqual(parseBindAddress(':8081'), { port: 8081 });
    assert.deepEqual(parseBindAddress('127.0.0.1:80'), { host: '127.0.0.1', port: 80 });
    assert.deepEqual(parseBindAddress('[::1]:80'), { host: '::1', port: 80 });
    assert.throws(() => parseBindAddress('8081'), /HOST:PORT or :PORT.*got "8081"/);
    assert.throws(() => parseBindAddress(':70000'), RangeError);
  });
});
