import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRegistry, expose } from '../../../src/metrics/registry.ts';

test('a registry is empty until something is registered', async () => {
  assert.equal((await expose(createRegistry())).text.trim(), '');
});

test('the process metrics are there when asked for, in the text format', async () => {
  const { contentType, text } = await expose(createRegistry({ processMetrics: true }));
  assert.match(contentType, /^text\/plain; version=0\.0\.4/);
  assert.match(text, /^process_resident_memory_bytes \d/m);
  assert.match(text, /^nodejs_version_info\{/m);
});

test('two registries share nothing', () => {
  createRegistry({ processMetrics: true });
  assert.doesNotThrow(() => createRegistry({ processMetrics: true }));
});
