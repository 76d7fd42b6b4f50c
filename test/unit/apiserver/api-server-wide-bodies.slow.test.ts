import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Api, APPLY, CONFIG_MAPS, CRDS, JSON_PATCH, PODS, STRATEGIC } from './api-client.ts';
import type { HttpRequest } from '../../../src/util/http.ts';

/** Large enough that a step whose time is quadratic takes a hundred times as long as the parser. */
const BYTES = 150_000;

/** Maximum time of one step, as a multiple of the time to parse the body and to encode it again. */
const MAX_RATIO = 150;

const SERVICES = '/api/v1/namespaces/default/services';

/** Returns as many members or items as fit. */
function repeated(bytes: number, text: (index: number) => string): string {
  const items: string[] = [];
  for (let size = 0; size < bytes;) {
    const item = text(items.length);
    items.push(item);
    size += item.length + 1;
  }
  return items.join(',');
}

interface Sent {
  readonly method: HttpRequest['method'];
  readonly path: string;
  readonly body: string;
  readonly type: string;
}

const JSON_TYPE = 'application/json';
const YAML_TYPE = 'application/yaml';

function object(kind: string, metadata: string, rest: string): string {
  return `{"apiVersion":"v1","kind":"${kind}","metadata":{"name":"a"${metadata}}${rest}}`;
}

function post(path: string, body: string): Sent {
  return { method: 'POST', path, body, type: JSON_TYPE };
}

function configMap(metadata: string, rest: string = ''): Sent {
  return post(CONFIG_MAPS, object('ConfigMap', metadata, rest));
}

function pod(spec: string): Sent {
  return post(PODS, object('Pod', '', `,"spec":{${spec}}`));
}

function service(spec: string): Sent {
  return post(SERVICES, object('Service', '', `,"spec":{${spec}}`));
}

function apply(path: string, body: string): Sent {
  const query = '?fieldManager=test&force=true';
  return { method: 'PATCH', path: `${path}/a${query}`, body, type: APPLY };
}

function policy(spec: string): Sent {
  const rule = '"apiGroups":[""],"apiVersions":["v1"],"operations":["*"],"resources":["pods"]';
  return post(
    '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies',
    `{"metadata":{"name":"a"},"spec":{"matchConstraints":{"resourceRules":[{${rule}}]},${spec}}}`,
  );
}

function crd(schema: string): Sent {
  const names = { plural: 'as', singular: 'a', kind: 'A', listKind: 'AList' };
  const version = `{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object",${schema}}}}`;
  return post(
    CRDS,
    `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"as.x.io"},"spec":{"group":"x.io","scope":"Namespaced","names":${JSON.stringify(names)},"versions":[${version}]}}`,
  );
}

function container(fields: string): string {
  return `"containers":[{"name":"c","image":"i",${fields}}]`;
}

type Body = (bytes: number) => readonly Sent[];

const BODIES: Readonly<Record<string, Body>> = {
  'owner references': (bytes) => [configMap(`,"ownerReferences":[${repeated(bytes, () => '{}')}]`)],
  finalizers: (bytes) => [configMap(`,"finalizers":[${repeated(bytes, (at) => `"a/${at}"`)}]`)],
  'ports of a container': (bytes) => [
    pod(
      container(`"ports":[${repeated(bytes, (at) => `{"containerPort":${(at % 65_000) + 1}}`)}]`),
    ),
  ],
  'equal ports': (bytes) => [
    pod(container(`"ports":[${repeated(bytes, (at) => `{"containerPort":1,"hostIP":"${at}"}`)}]`)),
  ],
  variables: (bytes) => [pod(container(`"env":[${repeated(bytes, (at) => `{"name":"V${at}"}`)}]`))],
  'tolerations of an update': (bytes) => {
    const spec = `${container('"command":["a"]')},"tolerations":[${repeated(bytes, (at) => `{"operator":"Exists","key":"k${at}"}`)}]`;
    const { body } = pod(spec);
    return [pod(spec), { method: 'PUT', path: `${PODS}/a`, body, type: JSON_TYPE }];
  },
  'spread constraints': (bytes) => [
    pod(
      `${container('"command":["a"]')},"topologySpreadConstraints":[${repeated(bytes, (at) => `{"maxSkew":1,"topologyKey":"k${at}","whenUnsatisfiable":"DoNotSchedule"}`)}]`,
    ),
  ],
  'allowed topologies': (bytes) => [
    post(
      '/apis/storage.k8s.io/v1/storageclasses',
      `{"metadata":{"name":"a"},"provisioner":"p","allowedTopologies":[{"matchLabelExpressions":[{"key":"k","values":[${repeated(bytes, (at) => `"v${at}"`)}]}]}]}`,
    ),
  ],
  'node ports': (bytes) => [
    service(
      `"type":"NodePort","ports":[${repeated(bytes, (at) => `{"name":"p${at}","port":${(at % 65_000) + 1}}`)}]`,
    ),
  ],
  'an apply of items': (bytes) => {
    const body = (from: number) =>
      object(
        'Service',
        '',
        `,"spec":{"ports":[${repeated(bytes, (at) => `{"port":${((at + from) % 65_000) + 1},"name":"p${at + from}"}`)}]}`,
      );
    return [apply(SERVICES, body(0)), apply(SERVICES, body(10))];
  },
  'resource limits': (bytes) => [
    pod(container(`"resources":{"limits":{${repeated(bytes, (at) => `"x.io/r${at}":"1"`)}}}`)),
  ],
  'properties of a kind': (bytes) => [
    crd(`"properties":{${repeated(bytes, (at) => `"p${at}":{"type":"string"}`)}}`),
  ],
  'rules of a kind': (bytes) => [
    crd(
      `"x-kubernetes-validations":[${repeated(bytes, (at) => `{"rule":"self.metadata.name != 'a${at}'"}`)}]`,
    ),
  ],
  'variables of a policy': (bytes) => [
    policy(
      `"variables":[${repeated(bytes, (at) => `{"name":"v${at}","expression":"object.kind"}`)}],"validations":[{"expression":"true"}]`,
    ),
  ],
  'validations of a policy': (bytes) => [
    policy(
      `"validations":[${repeated(bytes, (at) => `{"expression":"object.kind != 'a${at}'"}`)}]`,
    ),
  ],
  'exceptions of a network policy': (bytes) => [
    post(
      '/apis/networking.k8s.io/v1/namespaces/default/networkpolicies',
      `{"metadata":{"name":"a"},"spec":{"podSelector":{},"ingress":[{"from":[{"ipBlock":{"cidr":"10.0.0.0/8","except":[${repeated(bytes, (at) => `"10.0.${at >> 8}.${at & 255}/32"`)}]}}]}]}}`,
    ),
  ],
  'maximums of a limit range': (bytes) => [
    post(
      '/api/v1/namespaces/default/limitranges',
      `{"metadata":{"name":"a"},"spec":{"limits":[{"type":"Container","max":{${repeated(bytes, (at) => `"x.io/r${at}":"1"`)}}}]}}`,
    ),
  ],
  'a list in YAML': (bytes) => [
    {
      ...post(
        CONFIG_MAPS,
        `metadata:\n  name: a\n  finalizers:\n${repeated(bytes, (at) => `  - a/${at}`).replaceAll(',', '\n')}\n`,
      ),
      type: YAML_TYPE,
    },
  ],
  'a flow map in YAML': (bytes) => [
    {
      ...post(
        CONFIG_MAPS,
        `{metadata: {name: a}, data: {${repeated(bytes, (at) => `k${at}: v`)}}}`,
      ),
      type: YAML_TYPE,
    },
  ],
  'copies of a JSON patch': (bytes) => [
    configMap('', `,"data":{${repeated(bytes / 4, (at) => `"k${at}":"v"`)}}`),
    {
      method: 'PATCH',
      path: `${CONFIG_MAPS}/a`,
      body: `[${repeated(bytes / 75, (at) => `{"op":"copy","from":"/data","path":"/x${at}"}`)}]`,
      type: JSON_PATCH,
    },
  ],
  'an apply of a Pod': (bytes) => [
    apply(
      PODS,
      object(
        'Pod',
        '',
        `,"spec":{${container(`"env":[${repeated(bytes, (at) => `{"name":"V${at}"}`)}]`)}}`,
      ),
    ),
  ],
  'a second apply of keys': (bytes) =>
    ['v', 'w'].map((value) =>
      apply(
        CONFIG_MAPS,
        object('ConfigMap', '', `,"data":{${repeated(bytes, (at) => `"k${at}":"${value}"`)}}`),
      ),
    ),
  'inserts of a JSON patch': (bytes) => [
    configMap(',"finalizers":["a/b"]'),
    {
      method: 'PATCH',
      path: `${CONFIG_MAPS}/a`,
      body: `[${repeated(bytes, (at) => `{"op":"add","path":"/metadata/finalizers/0","value":"a/${at}"}`)}]`,
      type: JSON_PATCH,
    },
  ],
  'a strategic merge patch': (bytes) => [
    pod(container('"command":["a"]')),
    {
      method: 'PATCH',
      path: `${PODS}/a`,
      body: `{"metadata":{"finalizers":[${repeated(bytes, (at) => `"a/${at}"`)}]}}`,
      type: STRATEGIC,
    },
  ],
};

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** Returns the longest time for which requests block the event loop, in milliseconds of this thread. */
async function longestBlock(requests: readonly Sent[]): Promise<number> {
  const api = new Api();
  let longest = 0;
  let last = cpuMs();
  let isRunning = true;
  const tick = () => {
    longest = Math.max(longest, cpuMs() - last);
    last = cpuMs();
    if (isRunning) setImmediate(tick);
  };
  setImmediate(tick);
  for (const { method, path, body, type } of requests) {
    const { status } = await api.send(method, path, body, { 'content-type': type });
    assert.ok(status >= 200, String(status));
  }
  isRunning = false;
  tick();
  return longest;
}

/** Returns the time to parse and encode a body. */
function parserMs(requests: readonly Sent[]): number {
  // YAML counts as a list of its parts.
  const bodies = requests.map(({ body, type }) =>
    type === YAML_TYPE ? JSON.stringify(body.split(/[\n,]/)) : body,
  );
  const started = cpuMs();
  let parsed = 0;
  // The clock of a thread is coarse.
  while (cpuMs() - started < 30) {
    for (const body of bodies) JSON.stringify(JSON.parse(body));
    parsed += bodies.length;
  }
  return (cpuMs() - started) / parsed;
}

describe('A wide object blocks the server for a time that grows with its size alone', () => {
  for (const [what, bodies] of Object.entries(BODIES)) {
    it(what, async () => {
      await longestBlock(bodies(BYTES / 20));
      const requests = bodies(BYTES);
      const ratio = (await longestBlock(requests)) / parserMs(requests);
      assert.ok(ratio < MAX_RATIO, `the longest step takes ${ratio} times as long as the parser`);
    });
  }
});

/** Returns the number of rounds of the event loop in which servers answer equal requests. */
async function roundsOf(requests: readonly Sent[], servers: number = 1): Promise<number> {
  let rounds = 0;
  let isRunning = true;
  const tick = () => {
    rounds++;
    if (isRunning) setImmediate(tick);
  };
  setImmediate(tick);
  await Promise.all(
    Array.from({ length: servers }, async () => {
      const api = new Api();
      for (const { method, path, body, type } of requests) {
        await api.send(method, path, body, { 'content-type': type });
      }
    }),
  );
  isRunning = false;
  return rounds;
}

it('A large write has a step for each of its parts', async () => {
  const least = {
    'resource limits': 10,
    'an apply of a Pod': 10,
    'a list in YAML': 20,
    'properties of a kind': 25,
    'validations of a policy': 25,
    'exceptions of a network policy': 25,
    'copies of a JSON patch': 25,
  };
  for (const [what, expected] of Object.entries(least)) {
    const rounds = await roundsOf(BODIES[what]?.(BYTES) ?? []);
    assert.ok(rounds >= expected, `${what}: ${rounds}`);
  }
});

it('A body with more values than an object needs is rejected before its values are checked', async () => {
  const many = repeated(1_700_000, (at) => `"${at}":1`);
  const yaml = repeated(320_000, () => 'v').replaceAll(',', '\n- ');
  for (const [body, type] of [
    [`{"data":{${many}}}`, 'application/json'],
    [`data:\n- ${yaml}`, 'application/yaml'],
  ] as const) {
    const { status } = await new Api().send('POST', CONFIG_MAPS, body, { 'content-type': type });
    assert.equal(status, 413, type);
  }
});

it('A large write of one server does not wait for those of another', async () => {
  const requests = BODIES['resource limits']?.(BYTES) ?? [];
  assert.equal(await roundsOf(requests, 3), await roundsOf(requests));
});

it('Large writes end while the webhook of one of them makes another', async () => {
  const large = (name: string, labels: object) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, labels },
    data: { text: 'x'.repeat(BYTES) },
  });
  const url = 'https://hook.test/validate';
  const api: Api = new Api({
    webhooks: {
      [url]: async () => ({
        allowed: (await api.post(CONFIG_MAPS, large('inner', {}))).status === 201,
      }),
    },
  });
  await api.post('/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations', {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: 'hook' },
    webhooks: [
      {
        name: 'hook.example.com',
        clientConfig: { url },
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
        objectSelector: { matchLabels: { hook: 'yes' } },
        rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['*'], resources: ['*'] }],
      },
    ],
  });
  const replies = await Promise.all([
    api.post(CONFIG_MAPS, large('outer', { hook: 'yes' })),
    ...['a', 'b', 'c'].map((name) => api.post(CONFIG_MAPS, large(name, {}))),
  ]);
  assert.deepEqual(
    replies.map(({ status }) => status),
    [201, 201, 201, 201],
  );
});
