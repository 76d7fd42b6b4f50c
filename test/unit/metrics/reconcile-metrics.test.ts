import assert from 'node:assert/strict';
import { test } from 'node:test';
import { managerMetrics, reconcileMetrics } from '../../../src/metrics/reconcile-metrics.ts';
import { createRegistry, expose } from '../../../src/metrics/registry.ts';

test('counts postponed syncs and hot loops by controller, from zero on', async () => {
  const registry = createRegistry();
  const metrics = reconcileMetrics(registry);
  const postponed = metrics.postponed('count');
  metrics.postponed('foo');
  const lines = async () =>
    (await expose(registry)).text.split('\n').filter((line) => line.startsWith('crd_controller_'));
  const series = (stale: number, loops: number, damped: number, controller: string) => [
    `crd_controller_stale_requeues_total{controller="${controller}"} ${stale}`,
    `crd_controller_hot_loops_total{controller="${controller}"} ${loops}`,
    `crd_controller_hot_loop_damped_runs_total{controller="${controller}"} ${damped}`,
  ];
  const both = (...counts: [number, number, number]) =>
    [...series(...counts, 'count'), ...series(0, 0, 0, 'foo')].toSorted();
  assert.deepEqual((await lines()).toSorted(), both(0, 0, 0));
  postponed.stale();
  postponed.hotLoop();
  for (let at = 0; at < 3; at++) postponed.damped();
  assert.deepEqual((await lines()).toSorted(), both(1, 1, 3));
});

test('reports 1 for a running controller and 0 for a stopped one', async () => {
  const registry = createRegistry();
  const metrics = managerMetrics(registry, 'crd-controller');
  metrics.running('count', true);
  metrics.running('at', true);
  metrics.running('at', false);
  const { text } = await expose(registry);
  assert.match(text, /^running_managed_controllers\{name="count",manager="crd-controller"\} 1$/m);
  assert.match(text, /^running_managed_controllers\{name="at",manager="crd-controller"\} 0$/m);
});
