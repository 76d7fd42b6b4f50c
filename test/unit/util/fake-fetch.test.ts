import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeFetch } from '../../../src/util/fake-fetch.ts';

test('records requests and answers them in order, and then with 200', async () => {
  const service = new FakeFetch();
  const failure = new Error('connection refused');
  service.answer(503, Response.json({ id: 1 }), failure);
  const url = 'http://service/records';
  assert.equal((await service.fetch(url)).status, 503);
  const created = await service.fetch(url, { method: 'POST', body: 'a' });
  assert.deepEqual(await created.json(), { id: 1 });
  await assert.rejects(service.fetch(new URL(url)), failure);
  assert.equal((await service.fetch(new Request(url))).status, 200);
  assert.deepEqual(service.calls, [`GET ${url}`, `POST ${url}`, `GET ${url}`, `GET ${url}`]);
  assert.equal(await service.requests[1]?.text(), 'a');
});

test('answers calls by their start, then from the others, and then by its function', async () => {
  const service = new FakeFetch();
  const send = async (method: string, path: string) =>
    (await service.fetch(`http://service/${path}`, { method })).status;
  service.answer('DELETE', 404, 410);
  service.answer('PUT http://service/b', 409);
  service.answer(503);
  assert.equal(await send('PUT', 'a'), 503);
  assert.equal(await send('PUT', 'b/c'), 409);
  assert.equal(await send('DELETE', 'b'), 404);
  service.respond = async ({ method }) => (method === 'PUT' ? 201 : 502);
  assert.equal(await send('DELETE', 'b'), 410);
  assert.deepEqual([await send('DELETE', 'b'), await send('PUT', 'b')], [502, 201]);
});

test('rejects a request whose signal aborts while the service hangs', async () => {
  const service = new FakeFetch();
  service.respond = () => new Promise(() => undefined);
  const stop = new AbortController();
  const pending = service.fetch('http://service', { signal: stop.signal });
  stop.abort(new Error('stopped'));
  await assert.rejects(pending, /stopped/);
});
