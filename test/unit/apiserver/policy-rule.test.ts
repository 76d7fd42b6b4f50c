import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Action, PolicyRule } from '../../../src/apiserver/policy-rule.ts';
import { covers } from '../../../src/apiserver/policy-rule.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import type { HttpRequest } from '../../../src/util/http.ts';
import { CONFIG_MAPS } from './api-client.ts';

const POD: Action = {
  kind: 'resource',
  verb: 'get',
  group: '',
  resource: 'pods',
  subresource: '',
  namespace: 'default',
  name: 'web',
};

describe('a rule', () => {
  const pods: PolicyRule = { verbs: ['get', 'list'], apiGroups: [''], resources: ['pods'] };

  test('covers what it names, or all of it', () => {
    const all = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] };
    for (const [rule, action, expected] of [
      [pods, POD, true],
      [pods, { ...POD, verb: 'delete' }, false],
      [pods, { ...POD, group: 'apps' }, false],
      [pods, { ...POD, resource: 'nodes' }, false],
      [pods, { ...POD, subresource: 'log' }, false],
      [{ ...pods, resources: ['pods/log'] }, { ...POD, subresource: 'log' }, true],
      [{ ...pods, resources: ['pods/log'] }, POD, false],
      [{ ...pods, resources: ['*/log'] }, { ...POD, subresource: 'log' }, true],
      [{ ...pods, resources: ['*/log'] }, POD, false],
      [{ ...pods, resourceNames: ['web'] }, POD, true],
      [{ ...pods, resourceNames: ['db'] }, POD, false],
      [{ ...pods, resourceNames: ['web'] }, { ...POD, verb: 'list', name: '' }, false],
      [all, { ...POD, subresource: 'log' }, true],
      [all, { kind: 'path', verb: 'get', path: '/metrics' }, false],
    ] as const) {
      assert.equal(covers(rule, action), expected, JSON.stringify([rule, action]));
    }
  });

  test('covers paths it names, or all that begin as it says', () => {
    const get = (path: string): Action => ({ kind: 'path', verb: 'get', path });
    for (const [nonResourceURLs, path, expected] of [
      [['/metrics'], '/metrics', true],
      [['/metrics'], '/metrics/', false],
      [['/debug/*'], '/debug/queues', true],
      [['/debug/*'], '/debugging', false],
      [['*'], '/anything', true],
      [[], '/metrics', false],
    ] as const) {
      assert.equal(covers({ verbs: ['get'], nonResourceURLs }, get(path)), expected, path);
    }
    const post: Action = { kind: 'path', verb: 'post', path: '/metrics' };
    assert.equal(covers({ verbs: ['get'], nonResourceURLs: ['/metrics'] }, post), false);
  });
});

describe('a server with users', () => {
  const server = new ApiServer({
    authenticate: true,
    users: [
      { token: 'jane’s', name: 'jane' },
      {
        token: 'reader’s',
        name: 'reader',
        groups: ['readers'],
        rules: [{ verbs: ['get', 'list'], apiGroups: [''], resources: ['configmaps'] }],
      },
    ],
  });
  const statusOf = async (
    method: HttpRequest['method'],
    path: string,
    headers: Record<string, string>,
  ) => (await server.handler({ method, path, headers })).status;
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

  test('lets each do what rules allow, and its administrator everything', async () => {
    for (const [token, method, expected] of [
      ['nobody’s', 'GET', 401],
      ['', 'GET', 401],
      ['jane’s', 'GET', 403],
      ['reader’s', 'GET', 200],
      ['reader’s', 'DELETE', 403],
      [server.token, 'DELETE', 200],
    ] as const) {
      assert.equal(await statusOf(method, CONFIG_MAPS, bearer(token)), expected, token);
    }
    assert.equal(await statusOf('GET', '/healthz', {}), 200);
    assert.equal(await statusOf('GET', '/version', {}), 200);
    assert.equal(await statusOf('GET', '/apis', {}), 401);
    assert.equal(await statusOf('GET', '/apis', bearer('jane’s')), 200);
  });

  test('lets nobody but its administrator act for others', async () => {
    const reader = { 'impersonate-user': 'reader' };
    assert.equal(await statusOf('GET', CONFIG_MAPS, { ...bearer(server.token), ...reader }), 200);
    assert.equal(
      await statusOf('DELETE', CONFIG_MAPS, { ...bearer(server.token), ...reader }),
      403,
    );
    assert.equal(await statusOf('GET', CONFIG_MAPS, { ...bearer('jane’s'), ...reader }), 403);
    assert.equal(await statusOf('GET', '/healthz', reader), 401);
  });
});
