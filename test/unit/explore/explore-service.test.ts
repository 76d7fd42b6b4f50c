import assert from 'node:assert/strict';
import { it } from 'node:test';
import { CONFIG_MAPS } from '../../../src/api/builtin.ts';
import { splitKey } from '../../../src/api/object-key.ts';
import { explore } from '../../../src/explore/explore.ts';
import { callService } from '../../../src/manager/call-service.ts';
import { Controller } from '../../../src/manager/controller.ts';
import type { ControllerKit } from '../../../src/manager/controller-kit.ts';
import { done } from '../../../src/workqueue/outcome.ts';

const metadata = { namespace: 'default', name: 'web' };
const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata };

/** Opens an account for each ConfigMap, and writes its id into an annotation. */
const accounts = (method: 'POST' | 'PUT') => (kit: ControllerKit) => {
  const maps = kit.informers.for(CONFIG_MAPS, { fieldSelector: 'metadata.name=web' });
  const controller = new Controller(kit, {
    name: 'account',
    kind: 'ConfigMap',
    sync: async (key, context) => {
      const found = maps.lister.get(key);
      if (!found || found.metadata.annotations?.['account']) return done();
      const url = `https://billing.test/accounts${method === 'PUT' ? `/${key}` : ''}`;
      const response = await callService(context, method, url, { body: { key } });
      const { id } = (await response.json()) as { id: string };
      const body = { metadata: { annotations: { account: id } } };
      await context.client.patch(CONFIG_MAPS, splitKey(key), { type: 'merge', body });
      return done();
    },
  });
  return [controller.for(maps)];
};

/** Explores the controller with a service that creates an account for each POST, and for each URL of a PUT. */
function exploreAccounts(method: 'POST' | 'PUT', options: { replay?: readonly string[] } = {}) {
  let opened = new Set<string>();
  return explore({
    controllers: accounts(method),
    service: () => {
      opened = new Set();
      return ({ method: used, url }) => {
        const id = used === 'PUT' ? url : String(opened.size);
        opened.add(id);
        return Response.json({ id });
      };
    },
    scenario: { 'a user creates a ConfigMap': (client) => client.create(CONFIG_MAPS, map) },
    invariants: { 'one account is opened': () => opened.size <= 1 },
    faults: ['crash', 'reset', 'silence', 'late', 429, 503],
    budget: { schedules: 30 },
    ...options,
  });
}

it('finds a request to a service that is not idempotent', async () => {
  const replay = ['reset @ controller: response to POST https://billing.test/accounts #1'];
  const error = {
    rule: 'one account is opened',
    replay,
    message: /sends POST https:\/\/billing\.test\/accounts\n.*is lost\n/s,
  };
  await assert.rejects(exploreAccounts('POST', { replay }), error);
  await assert.rejects(exploreAccounts('POST'), { rule: error.rule });
});

it('finds nothing in a controller whose requests to a service are idempotent', async () => {
  assert.equal((await exploreAccounts('PUT')).schedules, 30);
});
