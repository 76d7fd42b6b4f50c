import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { parseBindAddress } from '../../../src/manager/bind-address.ts';
import { HttpServer } from '../../../src/manager/http-server.ts';
import type { HttpServerRoutes } from '../../../src/manager/http-server.ts';
import { Deferred } from '../../../src/util/deferred.ts';
import { silentLogger } from '../../../src/util/logger.ts';

/** Serves `routes` while `work` asks. */
async function serving(
  routes: HttpServerRoutes,
  work: (get: (path: string, init?: RequestInit) => Promise<[number, string]>) => Promise<void>,
): Promise<void> {
  const listening = new Deferred<string>();
  const log = {
    ...silentLogger,
    v: () => log,
    info: (_: string, fields: { address?: unknown } = {}) =>
      listening.resolve(String(fields.address)),
  };
  const server = new HttpServer({ log }, { name: 'probes', bindAddress: '127.0.0.1:0', routes });
  const stop = new AbortController();
  const run = server.run(stop.signal);
  const address = await listening.promise;
  try {
    await work(async (path, init) => {
      const response = await fetch(`http://${address}${path}`, init);
      return [response.status, await response.text()];
    });
  } finally {
    stop.abort();
    await run;
  }
}

describe('the HTTP server of probes and metrics', () => {
  it('answers ok, or with ?verbose a line a check', async () => {
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

  it('shows the detail of a check to whoever asks for it, and to nobody else', async () => {
    const detail = () => ['pods: watching for 3s'];
    const fine = { name: 'fine', check: () => undefined, detail };
    const bad = { name: 'bad', check: () => 'secret', detail };
    await serving({ livez: [fine], readyz: [bad] }, async (get) => {
      assert.deepEqual(await get('/livez'), [200, 'ok']);
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

  it('fails with 500, and keeps the reason to the log', async () => {
    const cache = { name: 'cache', check: () => 'counts: secret detail' };
    await serving({ readyz: [cache] }, async (get) => {
      assert.deepEqual(await get('/readyz'), [
        500,
        '[+]ping ok\n[-]cache failed: reason withheld\nreadyz check failed\n',
      ]);
      assert.deepEqual(await get('/readyz?exclude=cache'), [200, 'ok']);
    });
  });

  it('serves pages at their own paths, with their queries', async () => {
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

  it('serves metrics, knows no other path and no other method', async () => {
    const metrics = () => Promise.resolve({ contentType: 'text/plain', text: 'up 1\n' });
    await serving({ metrics }, async (get) => {
      assert.deepEqual(await get('/metrics'), [200, 'up 1\n']);
      assert.equal((await get('/livez'))[0], 404);
      assert.equal((await get('/metrics', { method: 'POST', body: 'x' }))[0], 405);
    });
  });

  it('answers 404 to whatever else is asked, names of JavaScript and half addresses too', async () => {
    await serving({ livez: [] }, async (get) => {
      for (const path of ['/constructor', '/__proto__', '/toString/x', '//', '//a:b/', '/%']) {
        assert.deepEqual(await get(path), [404, '404 not found\n'], path);
      }
    });
  });

  it('rejects when the port is in use', async () => {
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

  it('reads bind addresses, and says what is wrong with one', () => {
    assert.deepEqual(parseBindAddress(':8081'), { port: 8081 });
    assert.deepEqual(parseBindAddress('127.0.0.1:80'), { host: '127.0.0.1', port: 80 });
    assert.deepEqual(parseBindAddress('[::1]:80'), { host: '::1', port: 80 });
    assert.throws(() => parseBindAddress('8081'), /HOST:PORT or :PORT.*got "8081"/);
    assert.throws(() => parseBindAddress(':70000'), RangeError);
  });
});
