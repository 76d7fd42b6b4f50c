import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Json } from './api.ts';
import { Api, assertRejected } from './api.ts';
import { pod, pods } from './objects.ts';

let api: Api;
let path: string;

before(async () => {
  api = await Api.start();
  const namespace = await api.namespace();
  path = pods(namespace);
  await api.until('the default ServiceAccount is not needed or exists', async () => {
    const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`;
    const { status } = await api.post(accounts, { metadata: { name: 'default' } });
    return status === 201 || status === 409;
  });
  await api.made(
    api.post(`/api/v1/namespaces/${namespace}/limitranges`, {
      apiVersion: 'v1',
      kind: 'LimitRange',
      metadata: { name: 'limits' },
      spec: {
        limits: [
          {
            type: 'Container',
            default: { cpu: '500m' },
            defaultRequest: { cpu: '100m' },
            min: { cpu: '50m' },
            max: { cpu: '1' },
          },
        ],
      },
    }),
  );
  await api.until('the LimitRange applies', async () => {
    const { body } = await api.post(`${path}?dryRun=All`, pod('probe'));
    return body.metadata.annotations !== undefined;
  });
});

after(() => api.close());

function podWith(name: string, resources: Json): Json {
  return { ...pod(name), spec: { containers: [{ name: 'web', image: 'nginx', resources }] } };
}

test('a container without requests and limits gets those of the LimitRange', async () => {
  const { spec, metadata } = await api.made(api.post(path, pod('defaults')));
  assert.deepEqual(spec.containers[0].resources, {
    limits: { cpu: '500m' },
    requests: { cpu: '100m' },
  });
  assert.equal(
    metadata.annotations['kubernetes.io/limit-ranger'],
    'LimitRanger plugin set: cpu request for container web; cpu limit for container web',
  );
});

test('rejects a container whose limits the LimitRange does not permit', async () => {
  const large = podWith('large', { limits: { cpu: '2' } });
  assertRejected(await api.post(path, large), {
    code: 403,
    reason: 'Forbidden',
    message: 'pods "large" is forbidden: maximum cpu usage per Container is 1, but limit is 2',
  });
  const small = podWith('small', { requests: { cpu: '10m' } });
  assertRejected(await api.post(path, small), {
    code: 403,
    reason: 'Forbidden',
    message:
      'pods "small" is forbidden: minimum cpu usage per Container is 50m, but request is 10m',
  });
});

test('the sum of the containers of a Pod is within the limits of Pods', async () => {
  const namespace = await api.namespace();
  const ranges = `/api/v1/namespaces/${namespace}/limitranges`;
  const limits = [{ type: 'Pod', max: { cpu: '2' }, maxLimitRequestRatio: { cpu: '4' } }];
  await api.made(api.post(ranges, { metadata: { name: 'pods' }, spec: { limits } }));
  const create = (limit: Json, request?: string) => {
    const resources = { limits: limit && { cpu: limit }, requests: request && { cpu: request } };
    const container = { image: 'nginx', resources };
    const containers = [
      { name: 'a', ...container },
      { name: 'b', ...container },
    ];
    return api.post(`${pods(namespace)}?dryRun=All`, {
      metadata: { name: 'p' },
      spec: { containers },
    });
  };
  await api.until('the LimitRange applies', async () => (await create(undefined)).status === 403);
  for (const [reply, problem] of [
    [await create('1'), undefined],
    [await create('1500m'), 'maximum cpu usage per Pod is 2, but limit is 3'],
    [await create(undefined, '1'), 'maximum cpu usage per Pod is 2.  No limit is specified'],
    [
      await create('1', '200m'),
      'cpu max limit to request ratio per Pod is 4, but provided ratio is 5.000000',
    ],
  ] as const) {
    assert.equal(reply.status, problem === undefined ? 201 : 403, reply.text);
    if (problem) assert.ok(reply.body.message.includes(problem), reply.body.message);
  }
});
