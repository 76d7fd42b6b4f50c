import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Counter, Histogram } from 'prom-client';
import { createRegistry, expose } from '../../../src/metrics/registry.ts';
import { SeriesCounter, SeriesHistogram } from '../../../src/metrics/series.ts';

const labelNames = ['queue'];
const buckets = [0.1, 1, 10];
const VALUES = [0.05, 0.1, 0.2, 1, 3, 10, 11, 0];

function histogram(registers: ReturnType<typeof createRegistry>[]) {
  return { name: 'wait_seconds', help: 'Wait', labelNames, buckets, registers };
}

test('exposes a histogram as prom-client does', async () => {
  const actual = createRegistry();
  const expected = createRegistry();
  const series = new SeriesHistogram(histogram([actual])).series({ queue: 'a' });
  const reference = new Histogram(histogram([expected]));
  reference.zero({ queue: 'a' });
  assert.deepEqual(await expose(actual), await expose(expected));
  for (const value of VALUES) {
    series.observe(value);
    reference.observe({ queue: 'a' }, value);
  }
  assert.deepEqual(await expose(actual), await expose(expected));
});

test('exposes a counter as prom-client does', async () => {
  const actual = createRegistry();
  const expected = createRegistry();
  const options = { name: 'adds_total', help: 'Additions', labelNames };
  const counter = new SeriesCounter({ ...options, registers: [actual] });
  const reference = new Counter({ ...options, registers: [expected] });
  counter.series({ queue: 'b' });
  reference.inc({ queue: 'b' }, 0);
  const series = counter.series({ queue: 'a' });
  for (let count = 0; count < 3; count++) series.inc();
  reference.inc({ queue: 'a' }, 3);
  assert.deepEqual(await expose(actual), await expose(expected));
  assert.deepEqual(
    await expose(actual),
    await expose(expected),
    'a second scrape counts nothing twice',
  );
});

test('returns the same series for the same labels', () => {
  const counter = new SeriesCounter({ name: 'a', help: 'A', labelNames, registers: [] });
  assert.equal(counter.series({ queue: 'a' }), counter.series({ queue: 'a' }));
  assert.notEqual(counter.series({ queue: 'a' }), counter.series({ queue: 'b' }));
});
