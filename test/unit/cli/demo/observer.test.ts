import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PODS } from '../../../../src/api/builtin.ts';
import { ApiServer } from '../../../../src/apiserver/api-server.ts';
import { observedKinds, Observer } from '../../../../src/cli/demo/observer.ts';
import { HttpClient } from '../../../../src/client/http-client.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';
import { silentLogger } from '../../../../src/util/logger.ts';

test('the observer continues after broken watches and a lost history', async () => {
  const clock = new FakeClock();
  const server = new ApiServer({ clock });
  const { handler } = server;
  const client = new HttpClient({
    handler,
    server: 'https://test',
    userAgent: 'test',
    clock,
    log: silentLogger,
  });
  const lines: string[] = [];
  const onChange = (line: string) => void lines.push(line);
  const kinds = observedKinds([]).filter(({ resource }) => resource === PODS);
  const observer = new Observer({ client, clock, onChange }, 'default', kinds);
  const stop = new AbortController();
  const running = observer.run(stop.signal);
  const names = () => [...observer.view(PODS).keys()].join();
  const add = async (name: string) => {
    await client.create(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { namespace: 'default', name },
      spec: { containers: [{ name: 'web', image: 'web' }] },
    });
  };
  const until = async (expected: string) => {
    for (let at = 0; at < 50 && names() !== expected; at++) await clock.advance(100);
    assert.equal(names(), expected);
  };
  await add('a');
  await until('a');
  server.faults.dropWatches();
  await add('b');
  await until('a,b');
  server.faults.dropWatches();
  await client.delete(PODS, { namespace: 'default', name: 'a' }, { gracePeriodSeconds: 0 });
  await add('c');
  server.faults.expireHistory();
  await until('b,c');
  assert.equal(observer.podsSeen, 3);
  assert.deepEqual(lines, ['pod/a  Pending', 'pod/b  Pending', 'pod/c  Pending']);
  stop.abort();
  await running.catch(() => undefined);
  await server.close();
});
