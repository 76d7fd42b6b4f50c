import assert from 'node:assert/strict';
import { test } from 'node:test';
import { managerMetrics } from '../../../src/metrics/manager-metrics.ts';
import { createRegistry, expose } from '../../../src/metrics/registry.ts';

test('a controller that runs is 1, and 0 when it no longer does', async () => {
  const registry = createRegistry();
  const metrics = managerMetrics(registry);
  metrics.running('count', true);
  metrics.running('at', true);
  metrics.running('at', false);
  const { text } = await expose(registry);
  assert.match(text, /^running_managed_controllers\{name="count",manager="crd-controller"\} 1$/m);
  assert.match(text, /^running_managed_controllers\{name="at",manager="crd-controller"\} 0$/m);
});
