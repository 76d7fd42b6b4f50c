import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { describe, it } from 'node:test';
import { parseBindAddress } from '../../../../src/manager/serving/bind-address.ts';
import type { RequestGuard } from '../../../../src/manager/serving/delegated-access.ts';
import type { Download, DownloadRequest } from '../../../../src/manager/serving/download.ts';
import { HttpServer } from '../../../../src/manager/serving/http-server.ts';
import type {
  HttpServerOptions,
  HttpServerRoutes,
} from '../../../../src/manager/serving/http-server.ts';
import { Deferred } from '../../../../src/util/deferred.ts';
import { silentLogger } from '../../../../src/util/logger.ts';

/** Serves `routes` while `work` asks. */
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

/** A server that listens, and how to end it. */
async function started(options: Omit<HttpServerOptions, 'name' | 'bindAddress'>) {
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
      assert.deepEqual(await get('/readyz/cache?exclude=cache'), [
        500,
        '[-]cache failed: reason withheld\nreadyz check failed\n',
      ]);
    });
  });

  it('tells what was left out, and what there is not to leave out', async () => {
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

  it('streams downloads, to be saved, and breaks off where they do', async () => {
    const asked: string[] = [];
    const download = ({ query, host, signal }: DownloadRequest): Promise<Download> => {
      asked.push(`${query.toString()} of ${host.replace(/\d+$/, 'PORT')} ${signal.aborted}`);
      const body = query.has('broken')
        ? Readable.from(broken())
        : Readable.from(['a'.repeat(100_000), 'b']);
      return Promise.resolve({ status: 200, contentType: 'text/x', body, fileName: 'a.b' });
    };
    function* broken() {
      yield 'begun';
      throw new Error('It cannot go on');
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
    assert.deepEqual(asked, ['x=1 of 127.0.0.1:PORT false', 'broken= of 127.0.0.1:PORT false']);
    await ended();
  });

  it('reads settings, and changes them', async () => {
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

  it('asks its guard about everything but probes', async (context) => {
    const asked: string[] = [];
    const guard: RequestGuard = {
      judge: ({ method, path, authorization }) => {
        asked.push(`${method} ${path} ${authorization}`);
        if (authorization === 'Bearer good') return Promise.resolve({ allowed: true });
        const status = authorization === undefined ? 401 : 403;
        return Promise.resolve({ allowed: false, status, why: 'No' });
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
    const { server, ended } = await started({ routes, guard });
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

  it('answers 500 where an answer cannot be had, and says no more', async () => {
    const metrics = () => Promise.reject(new Error('secret'));
    await serving({ metrics }, async (get) => {
      assert.deepEqual(await get('/metrics'), [500, 'internal error\n']);
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
