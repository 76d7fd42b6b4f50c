import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { fetchKey, fetchMonitorSnapshot } from '../../../../src/cli/top/snapshot.ts';
import { snapshotOf } from './snapshots.ts';

describe('a fetchSnapshot at a program', () => {
  const answers = new Map<string, string>();
  let missing: string | undefined;
  const server = createServer((request, response) => {
    const body = answers.get(request.url ?? '');
    response.writeHead(body === undefined ? 404 : 200).end(body ?? missing);
  });
  let address: string;

  before(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  const ask = () => fetchMonitorSnapshot(address, () => 7, new AbortController().signal);

  it('rejects responses that are not from a program', async () => {
    await assert.rejects(ask(), /^Error: it responded with 404 to \/debug\/(status|queues)$/);
    for (const path of ['/debug/status', '/debug/queues', '/metrics']) answers.set(path, 'hello');
    await assert.rejects(ask(), /does not serve the debug pages/);
    answers.set('/debug/status', '{"informers":{}}');
    await assert.rejects(ask(), /does not serve the debug pages/);
  });

  it('returns the status, the queues and the metrics', async () => {
    const { status, queues } = snapshotOf();
    answers.set('/debug/status', JSON.stringify(status));
    answers.set('/debug/queues', JSON.stringify(queues));
    answers.set('/metrics', 'a 1');
    const seen = await ask();
    assert.deepEqual([seen.atMs, seen.status, seen.queues], [7, status, queues]);
    assert.equal(seen.metrics.value('a'), 1);
  });

  it('reads a key, or why the program does not know it', async () => {
    const read = (key: string) => fetchKey(address, { key }, new AbortController().signal);
    const owner = { lease: 'system/x-1', holder: 'other', isThisProcess: false };
    answers.set('/debug/why?key=a', JSON.stringify({ controllers: [], owner }));
    assert.deepEqual(await read('a'), { controllers: [], owner });
    const controllers = [{ controller: 'count', state: 'idle' }];
    answers.set('/debug/why?key=c', JSON.stringify({ controllers }));
    assert.deepEqual(await read('c'), { controllers });
    const object = { condition: { state: 'notReady', message: 'no' }, ownedProblems: ['why'] };
    answers.set('/debug/object?key=c&controller=count', JSON.stringify(object));
    assert.deepEqual(await read('c'), { controllers, object });
    missing = '{"error":"Ask other"}';
    assert.deepEqual(await read('b'), { controllers: [], error: 'Ask other' });
    missing = '404 page not found';
    await assert.rejects(read('b'), /does not serve the debug pages/);
  });

  it('reports a refused connection', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as AddressInfo;
    await new Promise((resolve) => other.close(resolve));
    await assert.rejects(
      fetchMonitorSnapshot(`127.0.0.1:${port}`, () => 0, new AbortController().signal),
      /^Error: connection refused$/,
    );
  });
});
