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
