import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Action, PolicyRule } from '../../../src/api/policy-rule.ts';
import { ruleCovers } from '../../../src/api/policy-rule.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import type { HttpRequest } from '../../../src/util/http.ts';
import { CONFIG_MAPS } from '../apiserver/api-client.ts';

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

  test('covers the names it lists, or all', () => {
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
      assert.equal(ruleCovers(rule, action), expected, JSON.stringify([rule, action]));
    }
  });

  test('covers the paths it lists, or all with a prefix', () => {
    const get = (path: string): Action => ({ kind: 'path', verb: 'get', path });
    for (const [nonResourceURLs, path, expected] of [
      [['/metrics'], '/metrics', true],
      [['/metrics'], '/metrics/', false],
      [['/debug/*'], '/debug/queues', true],
      [['/debug/*'], '/debugging', false],
      [['*'], '/anything', true],
      [[], '/metrics', false],
    ] as const) {
      assert.equal(ruleCovers({ verbs: ['get'], nonResourceURLs }, get(path)), expected, path);
    }
    const post: Action = { kind: 'path', verb: 'post', path: '/metrics' };
    assert.equal(ruleCovers({ verbs: ['get'], nonResourceURLs: ['/metrics'] }, post), false);
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

  test('allows each user what its rules allow, and the administrator everything', async () => {
    for (const [token, method, expected] of [
      ['unknown', 'GET', 401],
      ['', 'GET', 403],
      ['jane’s', 'GET', 403],
      ['reader’s', 'GET', 200],
      ['reader’s', 'DELETE', 403],
      [server.token, 'DELETE', 200],
    ] as const) {
      assert.equal(await statusOf(method, CONFIG_MAPS, bearer(token)), expected, token);
    }
    assert.equal(await statusOf('GET', '/healthz', {}), 200);
    assert.equal(await statusOf('GET', '/version', {}), 200);
    assert.equal(await statusOf('GET', '/apis', {}), 403);
    assert.equal(await statusOf('GET', '/apis', bearer('jane’s')), 200);
  });

  test('allows only its administrator to impersonate', async () => {
    const reader = { 'impersonate-user': 'reader' };
    assert.equal(await statusOf('GET', CONFIG_MAPS, { ...bearer(server.token), ...reader }), 200);
    assert.equal(
      await statusOf('DELETE', CONFIG_MAPS, { ...bearer(server.token), ...reader }),
      403,
    );
    assert.equal(await statusOf('GET', CONFIG_MAPS, { ...bearer('jane’s'), ...reader }), 403);
    assert.equal(await statusOf('GET', '/healthz', reader), 403);
  });
});

describe('a user who may impersonate', () => {
  const AUTHENTICATION_GROUP = 'authentication.k8s.io';
  const rule = (resource: string, resourceNames: string[], group = ''): PolicyRule => ({
    verbs: ['impersonate'],
    apiGroups: [group],
    resources: [resource],
    resourceNames,
  });
  const server = new ApiServer({
    authenticate: true,
    users: [
      {
        token: 'actor’s',
        name: 'actor',
        rules: [
          rule('users', ['reader', 'system:anonymous']),
          rule('groups', ['readers', 'cn=team,dc=example']),
          rule('uids', ['7'], AUTHENTICATION_GROUP),
          rule('userextras/scopes.example/a', ['view'], AUTHENTICATION_GROUP),
          rule('serviceaccounts', ['prometheus']),
        ],
      },
      {
        token: 'agent’s',
        name: 'agent',
        rules: [
          {
            ...rule('nodes', [], AUTHENTICATION_GROUP),
            verbs: ['impersonate:arbitrary-node', 'impersonate:serviceaccount'],
            resources: ['nodes', 'serviceaccounts'],
          },
          {
            ...rule('*', [], '*'),
            verbs: ['impersonate-on:arbitrary-node:create', 'impersonate-on:serviceaccount:create'],
          },
        ],
      },
      { token: 'any’s', name: 'any', rules: [{ ...rule('users', []), verbs: ['*'] }] },
    ],
  });
  const whoami = async (token: string, headers: Record<string, string>) => {
    const response = await server.handler({
      method: 'POST',
      path: '/apis/authentication.k8s.io/v1/selfsubjectreviews',
      headers: { authorization: `Bearer ${token}`, ...headers },
      body: '{}',
    });
    const chunks: Uint8Array[] = [];
    for await (const chunk of response.body) chunks.push(chunk);
    const answer = JSON.parse(Buffer.concat(chunks).toString());
    return answer.status.userInfo ?? `${answer.code} ${answer.message}`;
  };
  const refused = (resource: string, name: string, where = 'at the cluster scope') => {
    const [plain] = resource.split('/');
    const group = /^(uids|userextras)/.test(resource) ? AUTHENTICATION_GROUP : '';
    const full = group ? `${plain}.${group}` : plain;
    return `403 ${full} "${name}" is forbidden: User "actor" cannot impersonate resource "${resource}" in API group "${group}" ${where}`;
  };
  const reader = { 'impersonate-user': 'reader' };

  test('needs the permission for every value', async () => {
    const all = {
      ...reader,
      'impersonate-group': 'readers, cn=team,dc=example',
      'impersonate-uid': '7',
      'impersonate-extra-scopes.example%2fa': 'view',
    };
    assert.deepEqual(await whoami('actor’s', all), {
      username: 'reader',
      uid: '7',
      groups: ['readers', 'cn=team,dc=example', 'system:authenticated'],
      extra: { 'scopes.example/a': ['view'] },
    });
    for (const [headers, refusal] of [
      [{ 'impersonate-user': 'admin' }, refused('users', 'admin')],
      [{ ...all, 'impersonate-group': 'system:masters' }, refused('groups', 'system:masters')],
      [
        { ...all, 'impersonate-group': 'readers, system:masters' },
        refused('groups', 'system:masters'),
      ],
      [{ ...all, 'impersonate-uid': '8' }, refused('uids', '8')],
      [
        { ...all, 'impersonate-extra-scopes.example%2fa': 'view, edit' },
        refused('userextras/scopes.example/a', 'edit'),
      ],
      [{ ...all, 'impersonate-extra-other': 'view' }, refused('userextras/other', 'view')],
    ] as const) {
      assert.equal(await whoami('actor’s', headers), refusal);
    }
  });

  test('does not get groups by the permission to impersonate users', async () => {
    const masters = { 'impersonate-user': 'jane', 'impersonate-group': 'system:masters' };
    assert.deepEqual((await whoami('any’s', { 'impersonate-user': 'jane' })).groups, [
      'system:authenticated',
    ]);
    // The refusal of the mode that permitted the last request.
    assert.match(await whoami('any’s', masters), /^403 groups "system:masters" is forbidden/);
  });

  test('needs the permission for a service account, not for a user of its name', async () => {
    const account = (name: string) => ({ 'impersonate-user': `system:serviceaccount:${name}` });
    assert.deepEqual(await whoami('actor’s', account('default:prometheus')), {
      username: 'system:serviceaccount:default:prometheus',
      groups: ['system:serviceaccounts', 'system:serviceaccounts:default', 'system:authenticated'],
    });
    assert.equal(
      await whoami('actor’s', account('default:other')),
      refused('serviceaccounts', 'other', 'in the namespace "default"'),
    );
    assert.match(await whoami('any’s', account('default:prometheus')), /^403 serviceaccounts/);
    // A service account cannot have this name, so it is that of a user.
    assert.equal(
      await whoami('actor’s', account('default:Prometheus')),
      refused('users', 'system:serviceaccount:default:Prometheus'),
    );
  });

  test('may do so for nodes and service accounts by the verbs of their kinds', async () => {
    const node = { 'impersonate-user': 'system:node:n1' };
    assert.deepEqual(await whoami('agent’s', node), {
      username: 'system:node:n1',
      groups: ['system:nodes', 'system:authenticated'],
    });
    const withGroup = { ...node, 'impersonate-group': 'system:nodes' };
    assert.match(
      await whoami('agent’s', withGroup),
      /^403 users "system:node:n1" .* impersonate r/,
    );
    assert.match(
      await whoami('agent’s', { 'impersonate-user': 'jane' }),
      /^403 selfsubjectreviews.* impersonate-on:user-info:create /,
    );
    const account = { 'impersonate-user': 'system:serviceaccount:default:a' };
    assert.equal((await whoami('agent’s', account)).username, account['impersonate-user']);
  });
});
