import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ConnectionReset } from '../../../../src/apiserver/http/faults.ts';
import { settle } from '../../../../src/util/fake-clock.ts';
import { Api, CONFIG_MAPS, configMap } from '../api-client.ts';

describe('faults', () => {
  test('the next matching request fails, others do not', async () => {
    const api = new Api();
    api.server.faults.failNext('PUT', 409);
    api.server.faults.failNext({ verb: 'create', resource: 'configmaps' }, 503, {
      retryAfterSeconds: 7,
    });
    assert.equal((await api.get(CONFIG_MAPS)).status, 200);
    const failed = await api.post(CONFIG_MAPS, configMap('a'));
    assert.equal(failed.status, 503);
    assert.equal(failed.headers['retry-after'], '7');
    assert.equal(failed.body.reason, 'ServiceUnavailable');
    assert.equal((await api.post(CONFIG_MAPS, configMap('a'))).status, 201);
    assert.equal((await api.put(`${CONFIG_MAPS}/a`, configMap('a'))).status, 409);
    assert.equal((await api.put(`${CONFIG_MAPS}/a`, configMap('a'))).status, 200);
  });

  test('a reset prevents the write, a lost response does not', async () => {
    const api = new Api();
    const { faults } = api.server;
    faults.failNext('POST', 'reset');
    await assert.rejects(api.post(CONFIG_MAPS, configMap('a')), ConnectionReset);
    assert.equal((await api.get(`${CONFIG_MAPS}/a`)).status, 404);
    faults.failNext('POST', 'lostResponse');
    await assert.rejects(api.post(CONFIG_MAPS, configMap('a')), { code: 'ECONNRESET' });
    assert.equal((await api.get(`${CONFIG_MAPS}/a`)).status, 200);
  });

  test('a fault applies to a number of requests, and can be cancelled', async () => {
    const api = new Api();
    const { faults } = api.server;
    faults.failNext(({ info }) => info?.name === 'a', 500, { times: 2 });
    const statuses = async () => {
      const { status } = await api.get(`${CONFIG_MAPS}/a`);
      return status;
    };
    assert.deepEqual([await statuses(), await statuses(), await statuses()], [500, 500, 404]);
    faults.failNext('GET', 500);
    faults.clear();
    assert.equal(await statuses(), 404);
  });

  test('a fault applies to the requests of one user', async () => {
    const { server } = new Api();
    const get = async (headers: Record<string, string> = {}) =>
      (await server.handler({ method: 'GET', path: CONFIG_MAPS, headers })).status;
    const ann = { 'impersonate-user': 'ann', 'impersonate-group': 'system:masters' };
    server.faults.failNext({ verb: 'list', user: 'ann' }, 503);
    assert.deepEqual([await get(), await get(ann), await get(ann)], [200, 503, 200]);
  });

  test('a delayed request is served after the delay', async () => {
    const api = new Api();
    api.server.faults.delayNext('GET', 5000);
    let served = false;
    const reply = api.get(CONFIG_MAPS).then(() => (served = true));
    await api.clock.advance(4999);
    assert.equal(served, false);
    await api.clock.advance(1);
    await reply;
    assert.equal(served, true);
  });

  test('hooks see every request before and after, and can break it', async () => {
    const api = new Api();
    const seen: string[] = [];
    const { faults } = api.server;
    const stopBefore = faults.beforeRequest(({ info }) => {
      seen.push(`before ${info?.verb} ${info?.resource}`);
    });
    const stopAfter = faults.afterRequest(({ method }, { status }) => {
      seen.push(`after ${status}`);
      return method === 'POST' ? 'reset' : undefined;
    });
    await assert.rejects(api.post(CONFIG_MAPS, configMap('a')), ConnectionReset);
    await api.get(`${CONFIG_MAPS}/a`);
    stopBefore();
    stopAfter();
    await api.get(`${CONFIG_MAPS}/a`);
    assert.deepEqual(seen, [
      'before create configmaps',
      'after 201',
      'before get configmaps',
      'after 200',
    ]);
  });

  test('a watch whose response is lost does not stay open', async () => {
    const api = new Api();
    api.server.faults.failNext({ verb: 'watch' }, 'lostResponse');
    await assert.rejects(api.watch(CONFIG_MAPS), ConnectionReset);
    await settle();
    assert.equal(api.server.watches, 0);
    assert.equal(api.clock.pending, 0);
  });
});

describe('the request log', () => {
  test('keeps the last requests and counts all', async () => {
    const api = new Api();
    const { requests } = api.server;
    await api.post(CONFIG_MAPS, configMap('a'));
    await api.get(`${CONFIG_MAPS}/a`);
    await api.get('/version');
    assert.equal(requests.recent.length, 3);
    assert.deepEqual(
      requests.recent.map(({ status }) => status),
      [201, 200, 200],
    );
    assert.equal(requests.recent[0]?.userAgent, 'tester/1');
    assert.equal(requests.count({ verb: 'create', resource: 'configmaps' }), 1);
    assert.equal(requests.count({ resource: 'configmaps' }), 2);
    for (let index = 0; index < 2500; index++) await api.get(`/api/v1/r${index}`);
    assert.ok(requests.recent.length <= 2000);
    requests.reset();
    assert.equal(requests.count(), 0);
  });
});
