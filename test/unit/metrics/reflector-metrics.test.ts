import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRegistry, expose } from '../../../src/metrics/registry.ts';
import { reflectorMetrics } from '../../../src/metrics/reflector-metrics.ts';

const things = { name: 'things', group: 'test.example', version: 'v1', resource: 'things' };
const pods = { name: 'pods', group: '', version: 'v1', resource: 'pods' };
const empty = {
  queued: 0,
  objects: 0,
  storeResourceVersion: '',
  reflectorResourceVersion: '',
  inactiveMs: 0,
  lastProgressMs: undefined,
};

async function samples(registry: ReturnType<typeof createRegistry>): Promise<string[]> {
  const { text } = await expose(registry);
  return text.split('\n').filter((line) => line && !line.startsWith('#'));
}

test('exposes all series from zero on, with full resource names as in kubectl', async () => {
  const registry = createRegistry();
  const metrics = reflectorMetrics(registry);
  metrics.informer(things, empty);
  metrics.informer(pods, empty);
  const lines = await samples(registry);
  for (const expected of [
    'reflector_lists_total{name="things.v1.test.example"} 0',
    'reflector_watches_total{name="pods.v1"} 0',
    'reflector_short_watches_total{name="pods.v1"} 0',
    'reflector_last_resource_version{name="pods.v1"} 0',
    'crd_controller_watch_stalls_total{name="pods.v1"} 0',
    'crd_controller_informer_handler_errors_total{name="pods.v1"} 0',
    'crd_controller_informer_refused_objects_total{name="pods.v1"} 0',
    'informer_queued_items{name="pods",group="",version="v1",resource="pods"} 0',
    'crd_controller_cache_objects{resource="pods.v1"} 0',
  ]) {
    assert.ok(lines.includes(expected), `${expected}\n\n${lines.join('\n')}`);
  }
});

test('counts lists, watches and errors, with durations in seconds', async () => {
  const registry = createRegistry();
  const informer = reflectorMetrics(registry).informer(pods, empty);
  informer.listed(1500, 22_000);
  informer.watchStarted();
  informer.watchStarted();
  informer.watchEnded(300_000, 12, false);
  informer.watchEnded(500, 0, true);
  informer.watchStalled();
  informer.processed(20);
  informer.handlerFailed();
  informer.objectRefused();
  const lines = await samples(registry);
  const labels = 'name="pods",group="",version="v1",resource="pods"';
  for (const expected of [
    'reflector_lists_total{name="pods.v1"} 1',
    'reflector_list_duration_seconds_sum{name="pods.v1"} 1.5',
    'reflector_items_per_list_sum{name="pods.v1"} 22000',
    'reflector_watches_total{name="pods.v1"} 2',
    'reflector_short_watches_total{name="pods.v1"} 1',
    'reflector_watch_duration_seconds_sum{name="pods.v1"} 300.5',
    'reflector_items_per_watch_sum{name="pods.v1"} 12',
    'crd_controller_watch_stalls_total{name="pods.v1"} 1',
    `informer_processing_latency_seconds_sum{${labels}} 0.02`,
    'crd_controller_informer_handler_errors_total{name="pods.v1"} 1',
    'crd_controller_informer_refused_objects_total{name="pods.v1"} 1',
  ]) {
    assert.ok(lines.includes(expected), `${expected}\n\n${lines.join('\n')}`);
  }
});

test('reports the lowest resourceVersion of the reflectors of several namespaces', async () => {
  const registry = createRegistry();
  const metrics = reflectorMetrics(registry);
  for (const [namespace, reached] of Object.entries({ a: '12', b: '7', c: '9' })) {
    const state = { ...empty, objects: 2, reflectorResourceVersion: reached };
    metrics.informer({ ...pods, name: `pods in ${namespace}` }, state);
  }
  const lines = await samples(registry);
  assert.ok(lines.includes('reflector_last_resource_version{name="pods.v1"} 7'));
  assert.ok(lines.includes('crd_controller_cache_objects{resource="pods.v1"} 6'));
});

test('reads the state of informers at each scrape', async () => {
  const registry = createRegistry();
  const metrics = reflectorMetrics(registry);
  const state = {
    queued: 3,
    objects: 7,
    storeResourceVersion: '1234567890123456789',
    reflectorResourceVersion: 'not-a-number',
    inactiveMs: 1500,
    lastProgressMs: 1_790_000_000_250,
  };
  metrics.informer(pods, state);
  metrics.informer({ ...pods, name: 'pods in demo' }, { ...empty, objects: 2 });
  const labels = 'name="pods",group="",version="v1",resource="pods"';
  let lines = await samples(registry);
  assert.ok(lines.includes(`informer_queued_items{${labels}} 3`));
  assert.ok(lines.includes(`crd_controller_informer_age_seconds{${labels}} 1.5`));
  const timestamp = 'crd_controller_informer_last_event_or_bookmark_timestamp_seconds';
  assert.ok(lines.includes(`${timestamp}{${labels}} 1790000000.25`));
  assert.equal(
    lines.filter((line) => line.startsWith(timestamp)).length,
    1,
    'the other informer has no value',
  );
  assert.ok(lines.includes(`informer_store_resource_version{${labels}} 567890123456789`));
  assert.ok(lines.includes('crd_controller_cache_objects{resource="pods.v1"} 9'));
  state.queued = 4;
  lines = await samples(registry);
  assert.ok(lines.includes(`informer_queued_items{${labels}} 4`));
  assert.ok(lines.includes('crd_controller_cache_objects{resource="pods.v1"} 9'), 'not 18');
});
