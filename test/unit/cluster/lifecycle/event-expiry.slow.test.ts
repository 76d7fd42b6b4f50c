import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { EVENTS } from '../../../../src/api/builtin.ts';
import { timestamp } from '../../../../src/api/conditions.ts';
import { ClusterBench, NAMESPACE } from '../cluster-bench.ts';

const MINUTE_MS = 60_000;

describe('An event', () => {
  let bench: ClusterBench;
  beforeEach(async () => {
    bench = new ClusterBench();
    await bench.start({ controllers: ['events'] });
  });
  afterEach(() => bench.end());

  const now = () => timestamp(bench.clock.now());
  const create = (name: string) =>
    bench.create(EVENTS, name, {
      involvedObject: { kind: 'Pod', namespace: NAMESPACE, name: 'a' },
      lastTimestamp: now(),
    });
  const repeat = (name: string) => bench.merge(EVENTS, name, { lastTimestamp: now() });
  const names = async () => (await bench.list(EVENTS)).map(({ metadata }) => metadata.name);

  it('is deleted within 10 minutes when nothing has changed it for an hour', async () => {
    await create('once');
    await create('again');
    await create('series');
    await bench.pass(55 * MINUTE_MS);
    await repeat('again');
    const lastObservedTime = now().replace('Z', '.000000Z');
    await bench.merge(EVENTS, 'series', { series: { count: 2, lastObservedTime } });
    assert.deepEqual(await names(), ['again', 'once', 'series']);
    await bench.pass(16 * MINUTE_MS);
    assert.deepEqual(await names(), ['again', 'series']);
    await bench.pass(55 * MINUTE_MS);
    assert.deepEqual(await names(), []);
  });

  it('is deleted however many there are', async () => {
    await Promise.all(Array.from({ length: 501 }, (_, index) => create(`event-${index}`)));
    await bench.pass(75 * MINUTE_MS);
    assert.deepEqual(await names(), []);
  });

  it('is kept if it happens again while it is deleted', async () => {
    await create('once');
    bench.server.faults.beforeRequest(async ({ method }) => {
      if (method === 'DELETE') await repeat('once');
    });
    await bench.pass(75 * MINUTE_MS);
    assert.deepEqual(await names(), ['once']);
  });
});
