import assert from 'node:assert/strict';
import { test } from 'node:test';
import { apiServerMetrics } from '../../../src/metrics/api-server-metrics.ts';
import { createRegistry } from '../../../src/metrics/registry.ts';
import { parseExposition } from '../../support/exposition.ts';
import { Api, CONFIG_MAPS, configMap } from '../apiserver/api-client.ts';

/** Returns the values of a metric by its labels in one text. */
async function scrape(api: Api, name: string): Promise<Record<string, number>> {
  const { status, text, headers } = await api.get('/metrics');
  assert.equal(status, 200);
  assert.match(headers['content-type'] ?? '', /^text\/plain; version=/);
  const samples = parseExposition(text).filter((sample) => sample.name === name);
  return Object.fromEntries(
    samples.map(({ labels, value }) => {
      const shown = Object.entries(labels).filter(
        ([label, text]) => text !== '' && label !== 'component' && label !== 'version',
      );
      return [shown.map(([label, text]) => `${label}=${text}`).join(' '), value];
    }),
  );
}

test('an API server counts requests, watches, events and objects', async () => {
  const api = new Api({ metrics: apiServerMetrics(createRegistry()) });
  await api.post(CONFIG_MAPS, configMap('a'));
  await api.post(CONFIG_MAPS, configMap('a'));
  await api.post(`${CONFIG_MAPS}?dryRun=All`, configMap('b'));
  await api.get(`${CONFIG_MAPS}/a`);
  await api.get('/apis/apps/v1/deployments');
  await api.get('/api/v1/unknown');
  await api.get(`${CONFIG_MAPS}/a/unknown`);
  const response = await api.server.handler({
    method: 'GET',
    path: `${CONFIG_MAPS}?watch=1`,
    headers: {},
  });
  const events = response.body[Symbol.asyncIterator]();
  await events.next();

  const ofConfigMaps = 'resource=configmaps scope=resource';
  assert.deepEqual(await scrape(api, 'apiserver_request_total'), {
    [`verb=POST ${ofConfigMaps} code=201`]: 1,
    [`verb=POST ${ofConfigMaps} code=409`]: 1,
    [`verb=POST ${ofConfigMaps} dry_run=All code=201`]: 1,
    [`verb=GET ${ofConfigMaps} code=200`]: 1,
    'verb=LIST group=apps resource=deployments scope=cluster code=200': 1,
  });
  const watch = 'verb=WATCH resource=configmaps scope=namespace';
  assert.deepEqual(await scrape(api, 'apiserver_longrunning_requests'), { [watch]: 1 });
  assert.deepEqual(await scrape(api, 'apiserver_watch_events_total'), {
    'resource=configmaps': 1,
  });
  assert.deepEqual(await scrape(api, 'apiserver_current_inflight_requests'), {
    'request_kind=mutating': 0,
    'request_kind=readOnly': 0,
  });
  const objects = await scrape(api, 'apiserver_storage_objects');
  assert.equal(objects['resource=configmaps'], 1);
  assert.equal(objects['resource=namespaces'], 4);
  assert.equal((await scrape(api, 'apiserver_resource_objects'))['resource=configmaps'], 1);

  await api.clock.advance(3000);
  await events.return?.();
  assert.deepEqual(await scrape(api, 'apiserver_longrunning_requests'), { [watch]: 0 });
  assert.equal((await scrape(api, 'apiserver_request_total'))[`${watch} code=200`], 1);
  assert.equal((await scrape(api, 'apiserver_request_duration_seconds_sum'))[watch], 3);
});

test('an API server without metrics has no endpoint for them', async () => {
  assert.equal((await new Api().get('/metrics')).status, 404);
});
