import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiServer } from '../../../../src/apiserver/api-server.ts';
import {
  CLUSTER_CONTROLLERS_AGENT,
  clusterPages,
} from '../../../../src/cli/embedded/cluster-pages.ts';
import { HttpServer } from '../../../../src/serving/http-server.ts';
import type { ClusterReport } from '../../../../src/serving/page/cluster-report.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';
import { silentLogger } from '../../../../src/util/logger.ts';

const NAMESPACES = '/api/v1/namespaces';

function start() {
  const clock = new FakeClock(Date.UTC(2026, 0, 1));
  const server = new ApiServer({ clock });
  const { pages, settings } = clusterPages(server, 'https://127.0.0.1:6443');
  const create = async (name: string, agent = 'kubectl/1.37') => {
    const body = JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    const headers = { 'content-type': 'application/json', 'user-agent': agent };
    const { status } = await server.handler({ method: 'POST', path: NAMESPACES, headers, body });
    return status;
  };
  const report = () => {
    const page = pages.get('/debug/cluster') ?? assert.fail();
    return JSON.parse(page(new URLSearchParams()).body) as ClusterReport;
  };
  const setting = (name: string) => settings.get(`/debug/faults/${name}`) ?? assert.fail();
  return { server, settings, pages, create, report, setting };
}

describe('the pages about the embedded cluster', () => {
  it('show objects by kind, requests, newest first, and events', async () => {
    const { create, report, server } = start();
    await create('a');
    await create('a', 'token=hunter2hunter2');
    const involvedObject = { kind: 'Namespace', name: 'a', namespace: 'a' };
    const event = { apiVersion: 'v1', kind: 'Event', reason: 'Made', involvedObject };
    await server.handler({
      method: 'POST',
      path: `${NAMESPACES}/a/events`,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...event, metadata: { name: 'a', namespace: 'a' } }),
    });
    const { objects, recent, events } = report();
    assert.equal(objects.find(({ resource }) => resource === 'namespaces')?.count, 5);
    assert.deepEqual(
      recent.map(({ verb, path, status, agent, at }) => [verb, path, status, agent, at]),
      [
        ['create', `${NAMESPACES}/a/events`, 201, '', '2026-01-01T00:00:00.000Z'],
        ['create', NAMESPACES, 409, 'token=[redacted]', '2026-01-01T00:00:00.000Z'],
        ['create', NAMESPACES, 201, 'kubectl/1.37', '2026-01-01T00:00:00.000Z'],
      ],
    );
    assert.deepEqual(
      events.map(({ reason, involvedObject }) => [reason, involvedObject.name]),
      [['Made', 'a']],
    );
    await server.close();
  });

  it('have a switch that fails the next write of a client once', async () => {
    const { create, report, server, setting } = start();
    setting('fail-next-write').set('503');
    assert.equal(report().faults['/debug/faults/fail-next-write'], '503');
    assert.equal(await create('a', CLUSTER_CONTROLLERS_AGENT), 201);
    assert.equal(await create('b'), 503);
    assert.equal(await create('b'), 201);
    assert.equal(setting('fail-next-write').get(), '0');
    assert.throws(() => setting('fail-next-write').set('200'), RangeError);
    await server.close();
  });

  it('have switches that cut watches and expire the history', async () => {
    const { create, report, server, setting } = start();
    await create('a');
    const watchFrom = async (version: number) => {
      const path = `${NAMESPACES}?watch=true&resourceVersion=${version}`;
      const { status, body } = await server.handler({ method: 'GET', path, headers: {} });
      const text = async () => Buffer.concat(await Array.fromAsync(body)).toString();
      return { status, text };
    };
    const watch = await watchFrom(server.revision);
    const ended = assert.rejects(watch.text());
    assert.throws(() => setting('cut-watches').set(''), RangeError);
    setting('cut-watches').set('now');
    await ended;
    await create('b');
    setting('expire-history').set('now');
    assert.match(await (await watchFrom(2)).text(), /"code":410/);
    assert.deepEqual(Object.values(report().faults), ['0', '1', '1']);
    await server.close();
  });

  it('reject changes by web pages of other origins', async () => {
    const { server, pages, settings, report } = start();
    const http = new HttpServer(
      { log: silentLogger },
      { name: 'page', bindAddress: '127.0.0.1:0', routes: { pages, settings } },
    );
    const stop = new AbortController();
    const running = http.run(stop.signal);
    const address = await http.listening;
    const change = async (init: RequestInit, path: string): Promise<number> =>
      (await fetch(`http://${address}${path}`, { ...init, body: 'now' })).status;
    const put = (path: string, headers: Record<string, string>) =>
      change({ method: 'PUT', headers }, path);
    for (const path of settings.keys()) {
      assert.equal(await put(path, { origin: 'http://page.example' }), 403, path);
      assert.equal(await put(path, { 'sec-fetch-site': 'cross-site' }), 403, path);
      // A form of another page can send a POST without asking the server first.
      assert.equal(await change({ method: 'POST' }, path), 405, path);
    }
    assert.deepEqual(Object.values(report().faults), ['0', '0', '0']);
    assert.equal(await put('/debug/faults/cut-watches', { origin: `http://${address}` }), 200);
    stop.abort();
    await running;
    await server.close();
  });
});
