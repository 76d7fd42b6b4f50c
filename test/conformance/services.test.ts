import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Api, assertRejected, JSON_PATCH } from './api.ts';
import type { Json } from './api.ts';

let api: Api;
let path: string;

before(async () => {
  api = await Api.start();
  path = `/api/v1/namespaces/${await api.namespace()}/services`;
});

after(() => api.close());

const create = (name: string, type: string): Promise<Json> =>
  api.made(
    api.post(path, {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name },
      spec: { type, selector: { app: name }, ports: [{ name: 'http', port: 80 }] },
    }),
  );
const change = async (name: string, spec: Json): Promise<Json> =>
  (await api.made(api.patch(`${path}/${name}`, { spec }))).spec;

test('a Service that becomes an ExternalName loses its address and node ports', async () => {
  const { spec } = await create('external', 'NodePort');
  assert.ok(spec.clusterIP);
  assert.ok(spec.ports[0].nodePort);
  const changed = await change('external', { type: 'ExternalName', externalName: 'example.com' });
  assert.deepEqual(changed, {
    externalName: 'example.com',
    ports: [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 80 }],
    selector: { app: 'external' },
    sessionAffinity: 'None',
    type: 'ExternalName',
  });
});

test('an ExternalName keeps neither an address that does not change nor its list', async () => {
  const { spec } = await create('named', 'ClusterIP');
  const put = async (fields: Json) => {
    const named = { type: 'ExternalName', ports: [{ port: 80 }], ...fields };
    const metadata = { name: 'named' };
    const draft = { apiVersion: 'v1', kind: 'Service', metadata, spec: named };
    return api.put(`${path}/named?dryRun=All`, draft);
  };
  const { body } = await put({ externalName: 'a.example.com', clusterIP: spec.clusterIP });
  assert.deepEqual([body.spec.clusterIP, body.spec.clusterIPs], [undefined, undefined]);
  assertRejected(await put({ clusterIP: 'None' }), {
    code: 422,
    reason: 'Invalid',
    message: 'Service "named" is invalid: spec.externalName: Required value',
  });
});

test('a NodePort that becomes a ClusterIP keeps its address and loses its node ports', async () => {
  const { spec } = await create('internal', 'NodePort');
  const changed = await change('internal', { type: 'ClusterIP' });
  assert.equal(changed.clusterIP, spec.clusterIP);
  assert.equal(changed.ports[0].nodePort, undefined);
  assert.equal(changed.externalTrafficPolicy, undefined);
});

test('a LoadBalancer that becomes a NodePort keeps its node ports, also of a changed port', async () => {
  const { spec } = await create('balanced', 'LoadBalancer');
  assert.equal(spec.allocateLoadBalancerNodePorts, true);
  const changed = await change('balanced', {
    type: 'NodePort',
    ports: [{ name: 'http', port: 81 }],
  });
  assert.equal(changed.ports[0].nodePort, spec.ports[0].nodePort);
  assert.equal(changed.allocateLoadBalancerNodePorts, undefined);
  assert.equal(changed.externalTrafficPolicy, 'Cluster');
});

test('a node port is in the range and belongs to one Service', async () => {
  const { spec } = await create('first', 'NodePort');
  const { nodePort } = spec.ports[0];
  const refused = async (port: object, value: number, why: string) => {
    const name = 'second';
    const wanted = { type: 'NodePort', ports: [{ name: 'http', port: 80, ...port }] };
    const reply = await api.post(path, {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name },
      spec: wanted,
    });
    const text = `Invalid value: ${value}: ${why}`;
    assertRejected(reply, {
      code: 422,
      reason: 'Invalid',
      message: `Service "second" is invalid: spec.ports[0].nodePort: ${text}`,
      causes: [['spec.ports[0].nodePort', text]],
    });
  };
  const range = 'provided port is not in the valid range. The range of valid ports is 30000-32767';
  await refused({ nodePort: 1234 }, 1234, range);
  await refused({ nodePort }, nodePort, 'provided port is already allocated');
  const udp = { nodePort, protocol: 'UDP' };
  await refused(udp, nodePort, 'provided port is already allocated');
});

test('the protocols of one port share its node port', async () => {
  const ports = ['TCP', 'UDP'].map((protocol) => ({
    name: protocol.toLowerCase(),
    port: 53,
    protocol,
  }));
  const created = await api.made(
    api.post(path, {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'dns' },
      spec: { type: 'NodePort', ports },
    }),
  );
  const [tcp, other] = created.spec.ports;
  assert.equal(tcp.nodePort, other.nodePort);
});

test('a condition in the status of a Service may lack its time', async () => {
  await create('conditions', 'ClusterIP');
  const status = { conditions: [{ type: 'A', status: 'True', reason: 'B', message: '' }] };
  const { conditions } = (await api.made(api.patch(`${path}/conditions/status`, { status })))
    .status;
  assert.equal(conditions[0].lastTransitionTime ?? null, null);
});

test('an address of a Service is in the range, and a headless Service without selector has both families', async () => {
  const send = (spec: Json) =>
    api.post(`${path}?dryRun=All`, {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'addressed' },
      spec: { ports: [{ port: 80 }], ...spec },
    });
  const { spec } = await api.made(send({ clusterIP: 'None' }));
  assert.deepEqual([spec.ipFamilyPolicy, spec.ipFamilies], ['RequireDualStack', ['IPv4', 'IPv6']]);
  assert.equal((await api.made(send({ clusterIP: '10.0.0.77' }))).spec.clusterIP, '10.0.0.77');
  await api.made(send({ type: 'ExternalName', externalName: 'example.com.' }));
  const refused: readonly (readonly [Json, RegExp])[] = [
    [{ clusterIP: '1.2.3.4' }, /the provided IP \(1\.2\.3\.4\) is not in the valid range/],
    [{ type: 'ExternalName', externalName: '-' }, /spec\.externalName: .*RFC 1123 subdomain/],
    [
      { type: 'ExternalName', externalName: 'a.example.com', clusterIP: 'None' },
      /spec\.clusterIPs: Forbidden: may not be set for ExternalName services$/,
    ],
    [{ clusterIP: 'None', type: 'NodePort' }, /may not be set to 'None' for NodePort services$/],
    [
      { ipFamilyPolicy: 'RequireDualStack' },
      /this cluster is not configured for dual-stack services$/,
    ],
    [{ clusterIP: 'x' }, /spec\.clusterIPs\[0\]: .*must be a valid IP address/],
    [{ ports: [{ port: 80, targetPort: 'x y' }] }, /spec\.ports\[0\]\.targetPort: .*alpha-numeric/],
    [{ externalTrafficPolicy: 'Cluster' }, /may only be set for externally-accessible services$/],
  ];
  for (const [wrong, message] of refused) {
    const { status, body } = await send(wrong);
    assert.equal(status, 422);
    assert.match(body.message, message);
  }
});

test('requests for Endpoints get a warning', async () => {
  const { headers } = await api.get(path.replace(/services$/, 'endpoints'));
  const warning = 'v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice';
  assert.equal(headers['warning'], `299 - "${warning}"`);
});

test('a LoadBalancer with local traffic has a port for health checks, which it keeps', async () => {
  const body = (name: string, spec: Json) => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name },
    spec: { type: 'LoadBalancer', ports: [{ port: 80 }], ...spec },
  });
  const { spec } = await api.made(
    api.post(path, body('local', { externalTrafficPolicy: 'Local' })),
  );
  assert.ok(spec.healthCheckNodePort >= 30_000);
  const taken = { externalTrafficPolicy: 'Local', sessionAffinity: 'ClientIP' };
  const { spec: next } = await api.made(api.put(`${path}/local`, body('local', taken)));
  assert.equal(next.healthCheckNodePort, spec.healthCheckNodePort);
  const fixed = await api.patch(`${path}/local`, { spec: { healthCheckNodePort: 30_001 } });
  assert.match(fixed.body.message, /spec\.healthCheckNodePort: Forbidden: field is immutable$/);
  const open = await change('local', { externalTrafficPolicy: 'Cluster' });
  assert.equal(open.healthCheckNodePort, undefined);
  const wrong = await api.post(path, body('wrong', { healthCheckNodePort: 30_002 }));
  assert.match(wrong.body.message, /may only be set when `type` is 'LoadBalancer'/);
});

test('a Service with external addresses has a policy for external traffic', async () => {
  const spec = { ports: [{ port: 80 }], externalIPs: ['192.0.2.1'] };
  const service = await api.made(api.post(path, { metadata: { name: 'external-ips' }, spec }));
  assert.equal(service.spec.externalTrafficPolicy, 'Cluster');
});

test('a LoadBalancer has no node ports if it asks for none', async () => {
  const spec = {
    type: 'LoadBalancer',
    allocateLoadBalancerNodePorts: false,
    ports: [{ port: 80 }],
  };
  const metadata = { name: 'direct' };
  const created = await api.made(
    api.post(path, { apiVersion: 'v1', kind: 'Service', metadata, spec }),
  );
  assert.equal(created.spec.ports[0].nodePort, undefined);
});

test('a Service of an existing name is rejected as such, whatever was allocated for it', async () => {
  for (const type of ['ClusterIP', 'NodePort', 'LoadBalancer']) {
    const name = `twice-${type.toLowerCase()}`;
    const service = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name },
      spec: { type, ports: [{ port: 80 }] },
    };
    await api.made(api.post(path, service));
    assertRejected(await api.post(path, service), {
      code: 409,
      reason: 'AlreadyExists',
      message: `services "${name}" already exists`,
    });
  }
});

test('the address of a Service cannot be changed', async () => {
  await create('fixed', 'ClusterIP');
  assertRejected(
    await api.patch(`${path}/fixed`, { spec: { clusterIPs: null, clusterIP: 'None' } }),
    {
      code: 422,
      reason: 'Invalid',
      message:
        'Service "fixed" is invalid: spec.clusterIPs[0]: Invalid value: ["None"]: may not change once set',
    },
  );
});

test('a node port stays with the name of its port, and belongs to one port', async () => {
  await api.made(
    api.post(path, {
      metadata: { name: 'kept' },
      spec: { type: 'NodePort', ports: [{ port: 80 }] },
    }),
  );
  const at = `${path}/kept`;
  const ports = [{ port: 80 }, { port: 81 }];
  const applied = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'kept' },
    spec: { ports },
  };
  const { body } = await api.apply(at, 'one', applied, '&force=true');
  const causes = body.details.causes.map(({ field, reason }: Json) => `${field} ${reason}`);
  assert.deepEqual(causes, [
    'spec.ports[0].name FieldValueRequired',
    'spec.ports[1].name FieldValueRequired',
  ]);
  const replaced = await api.patch(
    at,
    [{ op: 'replace', path: '/spec/ports', value: ports }],
    JSON_PATCH,
  );
  assert.equal(replaced.status, 500);
  assert.match(replaced.body.message, /^duplicate nodePort: \{TCP \d+\}$/);
});
