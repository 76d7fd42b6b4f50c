import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Json } from './api.ts';
import { Api } from './api.ts';

let api: Api;

before(async () => {
  api = await Api.start();
});

after(() => api.close());

/** A change of an object, with the beginnings of the causes of its refusal: `spec.a: Required value`. */
type Case = readonly [change: Json, ...causes: string[]];

function requireCauses(reply: Json, causes: readonly string[], shown: string): void {
  const found: string[] = (reply.body.details?.causes ?? []).map(
    ({ field, message }: Json) => `${field}: ${message}`,
  );
  const missing = causes.filter((cause) => !found.some((text) => text.startsWith(cause)));
  const others = found.filter((text) => !causes.some((cause) => text.startsWith(cause)));
  assert.deepEqual({ missing, others }, { missing: [], others: [] }, `${shown}: ${reply.text}`);
  assert.equal(found.length, causes.length, `${shown}: ${reply.text}`);
  assert.equal(reply.status < 300, causes.length === 0, `${shown}: ${reply.text}`);
}

/** Sends objects as dry runs. */
async function refuses(
  path: string,
  cases: readonly Case[],
  toObject: (change: Json) => Json,
): Promise<void> {
  for (const [change, ...causes] of cases) {
    const object = { metadata: { name: 'refused' }, ...toObject(change) };
    requireCauses(await api.post(`${path}?dryRun=All`, object), causes, JSON.stringify(change));
  }
}

/** Creates an object, and sends merge patches of it as dry runs. */
async function refusesPatches(
  path: string,
  object: Json,
  cases: readonly Case[],
  subresource = '',
): Promise<void> {
  const { metadata } = await api.made(api.post(path, { metadata: { name: 'refused' }, ...object }));
  const place = `${path}/${metadata.name}`;
  for (const [change, ...causes] of cases) {
    const reply = await api.patch(`${place}${subresource}?dryRun=All`, change);
    requireCauses(reply, causes, JSON.stringify(change));
  }
  await api.delete(place);
}

test('the taints, addresses and features of a Node are validated', async () => {
  const spec = (change: Json) => ({ spec: change });
  await refuses(
    '/api/v1/nodes',
    [
      [
        { taints: [{ key: '', value: `-${'a'.repeat(64)}` }] },
        'metadata.taints[0].key: Invalid value: "": name part must be non-empty',
        'metadata.taints[0].key: Invalid value: "": name part must consist',
        `metadata.taints[0].value: Invalid value: "-${'a'.repeat(64)}": must be no more than 63 bytes;a valid label`,
        'metadata.taints[0].effect: Required value',
      ],
      [
        { podCIDRs: ['10.0.0.0/8', 'a'] },
        'spec.podCIDRs[1]: Invalid value: "a": must be a valid CIDR value',
        'spec.podCIDRs: Internal error: invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[1]: <nil> (invalid CIDR address: a)',
        'spec.podCIDRs: Invalid value: ["10.0.0.0/8","a"]: may specify no more than one',
      ],
    ],
    spec,
  );
  const annotation = 'scheduler.alpha.kubernetes.io/taints';
  await refuses(
    '/api/v1/nodes',
    [
      [
        '[{"key":"a b"}]',
        `metadata.annotations.${annotation}[0].key: Invalid value: "a b": name part`,
        `metadata.annotations.${annotation}[0].effect: Required value`,
      ],
      [
        '{}',
        `metadata.annotations: Invalid value: "${annotation}": json: cannot unmarshal object into Go value of type []core.Taint`,
      ],
    ],
    (taints) => ({ metadata: { name: 'refused', annotations: { [annotation]: taints } } }),
  );
  await refuses(
    '/api/v1/nodes',
    [
      [{ declaredFeatures: ['Feature', 'Feature/part'] }],
      [
        { declaredFeatures: ['feature'] },
        'status.declaredFeatures[0]: Invalid value: "feature": invalid feature name "feature": must start with an UpperCamelCase segment, with subsequent segments separated by \'/\' (e.g., MyFeature or MyFeature/mySubFeature), and contain only',
      ],
      [
        { nodeInfo: { swap: { capacity: 0 } } },
        'metadata.nodeSwapStatus.capacity: Invalid value: 0: must be greater than zero',
      ],
    ],
    (status) => ({ status }),
  );
  await refusesPatches(
    '/api/v1/nodes',
    { metadata: { name: 'core-rules' } },
    [
      [{ status: { nodeInfo: { swap: { capacity: 0 } } } }],
      [
        { status: { addresses: [0, 1].map(() => ({ type: 'Hostname', address: '<' })) } },
        'status.addresses[1]: Duplicate value: {"Type":"Hostname","Address":"\\u003c"}',
      ],
    ],
    '/status',
  );
  const dropped = { podPreemptionPolicy: {}, configSource: { configMap: { name: 'a' } } };
  const { spec: kept } = await api.made(
    api.post('/api/v1/nodes?dryRun=All', { metadata: { name: 'a' }, spec: dropped }),
  );
  assert.deepEqual(Object.keys(kept), ['taints']);
});

test('the ports, the affinity and the external addresses of a Service are validated', async () => {
  const path = `/api/v1/namespaces/${await api.namespace()}/services`;
  const port = { port: 80 };
  await refuses(
    path,
    [
      [
        {
          ports: [
            { ...port, name: 'a' },
            { ...port, name: 'b' },
          ],
        },
        'spec.ports[1]: Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,"TargetPort":0,"NodePort":0}',
      ],
      [
        { externalIPs: ['::ffff:127.0.0.1', '0:0:0:0:0:0:0:1'] },
        'spec.externalIPs[0]: Invalid value: "::ffff:127.0.0.1": must not be an IPv4-mapped',
        'spec.externalIPs[1]: Invalid value: "0:0:0:0:0:0:0:1": may not be in the loopback range',
      ],
      [{ externalIPs: ['fe8::1'] }],
    ],
    (spec) => ({ spec: { ports: [port], ...spec } }),
  );
  const { spec } = await api.made(
    api.post(`${path}?dryRun=All`, {
      metadata: { name: 'a' },
      spec: { ports: [port], sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: {} } },
    }),
  );
  assert.deepEqual(spec.sessionAffinityConfig, { clientIP: { timeoutSeconds: 10_800 } });
});

test('a Service keeps what was allocated for it', async () => {
  const path = `/api/v1/namespaces/${await api.namespace()}/services`;
  const port = { name: 'a', port: 80 };
  const made = await api.made(
    api.post(path, {
      metadata: { name: 'a' },
      spec: { type: 'LoadBalancer', externalTrafficPolicy: 'Local', ports: [port] },
    }),
  );
  const of = (spec: Json) => ({ metadata: { name: 'a' }, spec });
  const { clusterIP, healthCheckNodePort, ports } = made.spec;
  const next = [port, { ...port, name: 'b', protocol: 'UDP' }];
  const grown = await api.made(
    api.put(`${path}/a`, of({ type: 'LoadBalancer', externalTrafficPolicy: 'Local', ports: next })),
  );
  assert.deepEqual(
    [grown.spec.clusterIP, grown.spec.healthCheckNodePort, grown.spec.ports[0].nodePort],
    [clusterIP, healthCheckNodePort, ports[0].nodePort],
  );
  // Only in a new Service do ports with one number share their node port.
  assert.notEqual(grown.spec.ports[1].nodePort, ports[0].nodePort);
  const named = await api.made(
    api.put(`${path}/a`, {
      ...grown,
      spec: { ...grown.spec, type: 'ExternalName', externalName: 'a.b' },
    }),
  );
  assert.deepEqual(
    Object.keys(named.spec).sort(),
    ['externalName', 'ports', 'selector', 'sessionAffinity', 'type'].filter(
      (field) => field in named.spec,
    ),
  );
  const refused = await api.post(path, {
    metadata: { name: 'b' },
    spec: {
      type: 'LoadBalancer',
      externalTrafficPolicy: 'Local',
      healthCheckNodePort: 1,
      ports: [port],
    },
  });
  assert.equal(refused.status, 500);
  assert.match(
    refused.body.message,
    /failed to allocate requested HealthCheck NodePort 1: provided port is not in the valid range/,
  );
});

test('the addresses and names of endpoints are validated', async () => {
  const space = await api.namespace();
  await refuses(
    `/api/v1/namespaces/${space}/endpoints`,
    [
      [
        { ip: '::ffff:127.0.0.1' },
        'subsets[0].addresses[0].ip: Invalid value: "::ffff:127.0.0.1": must not be an IPv4-mapped',
        'subsets[0].addresses[0].ip: Invalid value: "::ffff:127.0.0.1": may not be in the loopback',
      ],
      [
        { ip: '1.2.3.4', nodeName: '', hostname: '' },
        'subsets[0].addresses[0].nodeName: Invalid value: "": a lowercase RFC 1123 subdomain',
      ],
    ],
    (address) => ({ subsets: [{ addresses: [address] }] }),
  );
  const slices = `/apis/discovery.k8s.io/v1/namespaces/${space}/endpointslices`;
  const at = 'endpoints[0].addresses';
  await refuses(
    slices,
    [
      [
        { addressType: 'IPv4', endpoints: [{ addresses: ['0:0::1', '1.2.3.04'] }] },
        `${at}: Invalid value: "0:0::1": must be an IPv4 address`,
        `${at}[0]: Invalid value: "0:0::1": may not be in the loopback`,
        `${at}[1]: Invalid value: "1.2.3.04": must not have leading 0s`,
      ],
      [
        { addressType: 'IPv6', endpoints: [{ addresses: ['0:0::2'], hostname: '' }] },
        `${at}[0]: Invalid value: "0:0::2": must be in canonical form ("::2")`,
        'endpoints[0].hostname: Invalid value: "": a lowercase RFC 1123 label',
      ],
      [
        { addressType: 'FQDN', endpoints: [{ addresses: ['.', `${'a'.repeat(64)}.b`] }] },
        `${at}[0]: Invalid value: "": a lowercase RFC 1123 subdomain`,
        `${at}[1]: Invalid value: "${'a'.repeat(64)}": must be no more than 63`,
      ],
    ],
    (slice) => slice,
  );
  const slice = {
    metadata: { name: 'refused' },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['1.2.3.4'] }],
  };
  await refusesPatches(slices, slice, [
    [
      { addressType: 'Other' },
      'addressType: Unsupported value: "Other"',
      'addressType: Invalid value: ',
    ],
    [{ addressType: '' }, 'addressType: Required value', 'addressType: Invalid value: '],
  ]);
  const deprecatedTopology = { 'kubernetes.io/hostname': 'a' };
  await api.made(
    api.post(slices, { ...slice, endpoints: [{ addresses: ['1.2.3.4'], deprecatedTopology }] }),
  );
  const { endpoints, metadata } = await api.made(
    api.patch(`${slices}/refused`, {
      endpoints: [{ addresses: ['1.2.3.4'], deprecatedTopology }],
    }),
  );
  assert.deepEqual(
    Object.keys(endpoints[0]).filter((field) => /topology/i.test(field)),
    [],
  );
  assert.equal(metadata.generation, 2);
});

test('the paths and backends of an Ingress are validated', async () => {
  const path = `/apis/networking.k8s.io/v1/namespaces/${await api.namespace()}/ingresses`;
  const backend = (fields: Json) => ({ defaultBackend: fields });
  const service = (port: Json) => backend({ service: { name: 'a', port } });
  const at = 'spec.rules[0].http.paths[0].path: Invalid value';
  const rule = (fields: Json) => ({
    rules: [
      {
        http: {
          paths: [
            {
              pathType: 'Prefix',
              backend: { service: { name: 'a', port: { number: 1 } } },
              ...fields,
            },
          ],
        },
      },
    ],
  });
  await refuses(
    path,
    [
      [
        rule({ path: '//%2f/..' }),
        `${at}: "//%2f/..": must not contain '//'`,
        `${at}: "//%2f/..": must not contain '%2f'`,
        `${at}: "//%2f/..": cannot end with '/..'`,
      ],
      [rule({ path: '//', pathType: 'ImplementationSpecific' })],
      [service({ name: '', number: 1 })],
      [
        service({ name: '1-' }),
        'spec.defaultBackend.service.port.name: Invalid value: "1-": must contain at least one letter',
        'spec.defaultBackend.service.port.name: Invalid value: "1-": must not',
      ],
      [
        backend({ resource: { apiGroup: '', kind: 'A', name: 'b' } }),
        'spec.defaultBackend.resource.apiGroup: Invalid value: "": a lowercase RFC 1123 subdomain',
      ],
      [{}, 'spec: Invalid value: null: either'],
      [
        { ...service({ number: 1 }), rules: [{ host: `*.${'a.'.repeat(126)}a` }] },
        'spec.rules[0].host: Invalid value: "*.',
      ],
    ],
    (spec) => ({ spec }),
  );
});

test('a text that Go compares as such is shown as a Go string', async () => {
  const parameters = { kind: 'a', name: 'b', scope: '<' };
  await refuses(
    '/apis/networking.k8s.io/v1/ingressclasses',
    [[parameters, 'spec.parameters.scope: Unsupported value: "<": supported values: "Cluster"']],
    () => ({ spec: { controller: 'a/b', parameters } }),
  );
  await refuses(
    `/api/v1/namespaces/${await api.namespace()}/services`,
    [['<', 'spec.trafficDistribution: Unsupported value: "<": supported values: "PreferClose"']],
    (trafficDistribution) => ({ spec: { ports: [{ port: 80 }], trafficDistribution } }),
  );
});

test('the ports and blocks of a NetworkPolicy are validated', async () => {
  const path = `/apis/networking.k8s.io/v1/namespaces/${await api.namespace()}/networkpolicies`;
  const block = (cidr: string, ...except: string[]) => ({ from: [{ ipBlock: { cidr, except } }] });
  const at = 'spec.ingress[0].from[0].ipBlock';
  await refuses(
    path,
    [
      [
        { ports: [{ port: 2, endPort: 0 }] },
        'spec.ingress[0].ports[0].endPort: Invalid value: 0: must be between',
        'spec.ingress[0].ports[0].endPort: Invalid value: 0: must be greater',
      ],
      [
        block('10.0.0.1/8', '11.0.0.0/8', '10.0.0.1/9', 'a'),
        `${at}.cidr: Invalid value: "10.0.0.1/8": must not have bits set`,
        `${at}.except[0]: Invalid value: "11.0.0.0/8": must be a strict subset`,
        `${at}.except[1]: Invalid value: "10.0.0.1/9": must not have bits set`,
        `${at}.except[2]: Invalid value: "a": must be a valid CIDR`,
      ],
      [block('a', 'b'), `${at}.cidr: Invalid value: "a": must be a valid CIDR`],
    ],
    (rule) => ({ spec: { podSelector: {}, ingress: [rule] } }),
  );
});

test('addresses and ranges of the cluster are validated', async () => {
  await refuses(
    '/apis/networking.k8s.io/v1/servicecidrs',
    [
      [
        { cidrs: ['10.0.0.0/8', '11.0.0.0/8', '12.0.0.0/8'] },
        'spec.cidrs: Invalid value: {"CIDRs":["10.0.0.0/8","11.0.0.0/8","12.0.0.0/8"]}: may only',
      ],
      [
        { cidrs: ['10.0.0.1/8', '11.0.0.0/8'] },
        'spec.cidrs[0]: Invalid value: "10.0.0.1/8": must not have bits',
        'spec.cidrs: Invalid value: ["10.0.0.1/8","11.0.0.0/8"]: may specify no more',
      ],
    ],
    (spec) => ({ spec }),
  );
  const parentRef = { resource: 'services', namespace: 'default', name: 'a' };
  await refusesPatches(
    '/apis/networking.k8s.io/v1/ipaddresses',
    { metadata: { name: '192.0.2.17' }, spec: { parentRef } },
    [
      [
        { spec: { parentRef: { name: '', group: 'A' } } },
        'spec.parentRef: Invalid value: ',
        'spec.parentRef.group: Invalid value: "A": a lowercase',
        'spec.parentRef.name: Required value',
      ],
      [
        { spec: { parentRef: null } },
        'spec.parentRef: Required value',
        'spec.parentRef: Invalid value: ',
      ],
    ],
  );
});

test('the type of a Secret is immutable, and keys of data do not start with two dots', async () => {
  const space = await api.namespace();
  await refusesPatches(`/api/v1/namespaces/${space}/secrets`, { type: 'a' }, [
    [{ type: 'b<' }, 'type: Invalid value: "b\\u003c": field is immutable'],
  ]);
  await refuses(
    `/api/v1/namespaces/${space}/configmaps`,
    [
      [
        { '..a b': '' },
        'data[..a b]: Invalid value: "..a b": a valid config key',
        'data[..a b]: Invalid value: "..a b": must not start with',
      ],
    ],
    (data) => ({ data }),
  );
});

test('the capacity and the source of a PersistentVolume are validated', async () => {
  const path = '/api/v1/persistentvolumes';
  const mib = { storage: '1Mi' };
  const iscsi = { targetPortal: 'p'.repeat(60), iqn: 'iqn.2001-04.com.example:a', lun: 0 };
  await refuses(
    path,
    [
      [
        { capacity: null },
        'spec.capacity: Required value',
        'spec.capacity: Unsupported value: null',
      ],
      [
        { capacity: { cpu: '-1' } },
        'spec.capacity: Unsupported value: {"cpu":"-1"}',
        'spec.capacity[cpu]: Invalid value: -1: must be a valid resource quantity',
        'spec.capacity[cpu]: Invalid value: "-1": must be greater than zero',
      ],
      [
        { accessModes: ['ReadWriteOncePod', 'Other'] },
        'spec.accessModes: Unsupported value: "Other"',
      ],
      [{ hostPath: null, gcePersistentDisk: {} }, 'spec.persistentDisk.pdName: Required value'],
      [{ flexVolume: { driver: '' } }, 'spec.flexVolume.driver: Required value'],
      [
        { hostPath: null, iscsi: { ...iscsi, secretRef: {}, initiatorName: 'a' } },
        'spec.iscsi.initiatorname: Invalid value: "a": must be valid format',
        `spec.iscsi.targetportal: Invalid value: "${iscsi.targetPortal}": Total length`,
        'spec.iscsi.secretRef.name: Required value',
      ],
      [
        { hostPath: null, scaleIO: {} },
        ...['gateway', 'system', 'volumeName'].map(
          (field) => `spec.scaleIO.${field}: Required value`,
        ),
      ],
    ],
    (spec) => ({
      spec: {
        capacity: mib,
        accessModes: ['ReadWriteOnce'],
        hostPath: { path: '/a' },
        ...spec,
      },
    }),
  );
  const azureDisk = { diskName: 'a', diskURI: 'https://b' };
  const disk = await api.made(
    api.post(`${path}?dryRun=All`, {
      metadata: { name: 'refused' },
      spec: { capacity: mib, accessModes: ['ReadWriteOnce'], azureDisk },
    }),
  );
  assert.equal(disk.spec.azureDisk.readOnly, false);
  const annotation = 'volume.beta.kubernetes.io/mount-options';
  await refuses(
    path,
    [[{}, `metadata.annotations.${annotation}: Forbidden: may not specify mount options`]],
    () => ({
      metadata: { name: 'refused', annotations: { [annotation]: '' } },
      spec: { capacity: mib, accessModes: ['ReadWriteOnce'], hostPath: { path: '/a' } },
    }),
  );
  const time = '2001-02-03T04:05:06Z';
  const volume = {
    metadata: { name: 'core-rules' },
    spec: { capacity: mib, accessModes: ['ReadWriteOnce'], hostPath: { path: '/a' } },
  };
  const made = await api.made(api.post(path, volume));
  const moved = await api.patch(`${path}/core-rules?dryRun=All`, {
    spec: { hostPath: null, nfs: { server: 'a', path: '/b' } },
  });
  assert.ok(
    moved.body.message.endsWith(
      'spec.persistentvolumesource is immutable after creation\n@@ -1,12 +1,13 @@\n {\n  "GCEPersistentDisk": null,\n  "AWSElasticBlockStore": null,\n- "HostPath": {\n-  "Path": "/a",\n-  "Type": ""\n+ "HostPath": null,\n+ "Glusterfs": null,\n+ "NFS": {\n+  "Server": "a",\n+  "Path": "/b",\n+  "ReadOnly": false\n  },\n- "Glusterfs": null,\n- "NFS": null,\n  "RBD": null,\n  "ISCSI": null,\n  "Cinder": null,\n',
    ),
    moved.body.message,
  );
  const put = async (status: Json) => {
    const reply = api.put(`${path}/core-rules/status`, { ...volume, status });
    return (await api.made(reply)).status.lastPhaseTransitionTime;
  };
  assert.equal(await put({ phase: 'Pending' }), made.status.lastPhaseTransitionTime);
  assert.equal(await put({ phase: 'Available', lastPhaseTransitionTime: time }), time);
  assert.notEqual(await put({ phase: 'Failed', lastPhaseTransitionTime: time }), time);
  await api.delete(`${path}/core-rules`);
});

test('the source and the class of attributes of a claim are validated', async () => {
  const path = `/api/v1/namespaces/${await api.namespace()}/persistentvolumeclaims`;
  const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } };
  const source = { kind: 'PersistentVolumeClaim', name: 'a' };
  await refuses(
    path,
    [
      [
        { dataSource: source, dataSourceRef: { ...source, apiGroup: '' } },
        'spec: Invalid value: {}: must match dataSourceRef',
      ],
    ],
    (fields) => ({ spec: { ...spec, ...fields } }),
  );
  const made = await api.made(
    api.post(path, {
      metadata: { name: 'a' },
      spec: {
        ...spec,
        volumeAttributesClassName: 'b',
        dataSourceRef: { ...source, namespace: '' },
      },
    }),
  );
  assert.deepEqual(made.spec.dataSource, { apiGroup: null, ...source });
  const immutable =
    'spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n';
  for (const [change, diff] of [
    [
      { volumeMode: 'Block' },
      '@@ -11,7 +11,7 @@\n  },\n  "VolumeName": "",\n  "StorageClassName": null,\n- "VolumeMode": "Filesystem",\n+ "VolumeMode": "Block",\n',
    ],
    [
      { selector: { matchLabels: { b: '', a: '' } } },
      '@@ -2,7 +2,12 @@\n  "AccessModes": [\n   "ReadWriteOnce"\n  ],\n- "Selector": null,\n+ "Selector": {\n+  "matchLabels": {\n+   "a": "",\n+   "b": ""\n+  }\n+ },\n',
    ],
  ] as const) {
    const reply = await api.patch(`${path}/a?dryRun=All`, { spec: change });
    assert.ok(reply.body.message.includes(immutable + diff), reply.body.message);
  }
  const { status } = await api.made(
    api.patch(`${path}/a/status`, {
      status: {
        phase: 'Bound',
        currentVolumeAttributesClassName: 'b',
        healthStatus: { healthConditions: [] },
      },
    }),
  );
  assert.equal(status.healthStatus, undefined);
  const why = 'is forbidden when status.currentVolumeAttributesClassName is not nil';
  for (const [volumeAttributesClassName, ...causes] of [
    ['c'],
    ['', `spec.volumeAttributesClassName: Forbidden: update to empty string ${why}`],
    [null, `spec.volumeAttributesClassName: Forbidden: update to nil ${why}`],
  ] as const) {
    const change = { spec: { volumeAttributesClassName } };
    requireCauses(await api.patch(`${path}/a?dryRun=All`, change), causes, JSON.stringify(change));
  }
});

test('the names in errors of events.k8s.io are those of the group', async () => {
  const space = await api.namespace();
  const path = `/apis/events.k8s.io/v1/namespaces/${space}/events`;
  const event = {
    metadata: { name: 'a' },
    regarding: { namespace: space },
    eventTime: '2001-02-03T04:05:06.000000Z',
    type: 'Normal',
    action: 'b',
    reason: 'c',
    reportingController: 'd',
    reportingInstance: 'e',
  };
  await api.made(api.post(path, event));
  const again = await api.post(path, event);
  assert.equal(again.body.message, 'events.events.k8s.io "a" already exists');
  const stale = { metadata: { resourceVersion: '1' }, reportingController: '' };
  const { body } = await api.patch(`${path}/a`, stale);
  assert.deepEqual([body.reason, body.details.group], ['Conflict', 'events.k8s.io']);
  const changed = await api.put(`${path}/a`, { ...event, reportingController: 'f' });
  requireCauses(changed, ['reportingController: Invalid value: "f": field is immutable'], 'event');
  const moved = {
    ...event,
    regarding: { namespace: space, kind: '<' },
    deprecatedSource: { host: 'f' },
  };
  requireCauses(
    await api.put(`${path}/a`, moved),
    [
      `involvedObject: Invalid value: {"Kind":"\\u003c","Namespace":"${space}","Name":"","UID":"","APIVersion":"","ResourceVersion":"","FieldPath":""}: field`,
      'source: Invalid value: {"Component":"","Host":"f"}: field is immutable',
    ],
    'event',
  );
  const related = { ...event, metadata: { name: 'c' }, related: { kind: 'Pod' } };
  await api.made(api.post(path, related));
  requireCauses(
    await api.put(`${path}/c`, { ...related, related: undefined }),
    ['related: Invalid value: null: field is immutable'],
    'event',
  );
  const labeled = await api.patch(`${path}/a`, { metadata: { labels: { a: '-' } } });
  requireCauses(labeled, ['metadata.labels: Invalid value: "-"'], 'labels');
  const core = `/api/v1/namespaces/${space}/events`;
  await api.made(api.patch(`${core}/a`, { count: 2 }));
  const { metadata } = await api.made(api.get(`${core}/a`));
  // The managers of another group are dropped.
  assert.deepEqual(
    metadata.managedFields.map(({ apiVersion }: Json) => apiVersion),
    ['v1'],
  );
  const removal = { preconditions: { resourceVersion: '1' } };
  const removed = await api.delete(`${path}/a`, removal);
  assert.match(removed.body.message, /^Operation cannot be fulfilled on Event "a"/);
  const other = { metadata: { name: 'b' }, involvedObject: { namespace: space }, series: {} };
  await api.made(api.post(core, other));
  const { series, reportingController } = await api.made(api.get(`${path}/b`));
  assert.deepEqual([series.count, reportingController], [0, undefined]);
});

test('no manager owns the fields of a ServiceAccount with a Secret without a name', async () => {
  const path = `/api/v1/namespaces/${await api.namespace()}/serviceaccounts`;
  const made = await api.made(api.post(path, { metadata: { name: 'a' }, secrets: [{}] }));
  assert.equal(made.metadata.managedFields, undefined);
  const other = { metadata: { name: 'b' }, automountServiceAccountToken: true };
  const { metadata } = await api.made(api.post(path, other));
  const changed = await api.made(api.patch(`${path}/b`, { secrets: [{ kind: 'Secret' }] }));
  assert.deepEqual(changed.metadata.managedFields, metadata.managedFields);
});

test('limits of containers and quotas of scopes are validated', async () => {
  const space = await api.namespace();
  const pages = 'hugepages-2Mi';
  const at = 'spec.limits[0]';
  await refuses(
    `/api/v1/namespaces/${space}/limitranges`,
    [
      [
        { default: { [pages]: '4Mi' }, defaultRequest: { [pages]: '2Mi' } },
        `${at}.defaultRequest[${pages}]: Invalid value: "2Mi": default value 4Mi must equal`,
      ],
      [{ type: 'Pod', min: { cpu: '0' }, max: { cpu: '0' }, maxLimitRequestRatio: { cpu: '2' } }],
      [{ type: 'a<' }, `${at}.type: Invalid value: "a\\u003c": name part must consist`],
      [
        { default: { 'a/b<': '1' } },
        `${at}.default[a/b<]: Invalid value: "a/b\\u003c": name part must consist`,
        `${at}.defaultRequest[a/b<]: Invalid value: "a/b\\u003c": name part must consist`,
        ...['default', 'defaultRequest'].map(
          (field) => `${at}.${field}[a/b<]: Invalid value: "a/b\\u003c": doesn't follow`,
        ),
      ],
    ],
    (limit) => ({ spec: { limits: [{ type: 'Container', ...limit }] } }),
  );
  await refuses(
    `/api/v1/namespaces/${space}/resourcequotas`,
    [
      [
        [
          { scopeName: 'BestEffort', operator: 'Exists' },
          { scopeName: 'NotBestEffort', operator: 'Exists' },
        ],
        'spec.scopeSelector.matchExpressions: Invalid value: {"MatchExpressions":[{"ScopeName":"BestEffort","Operator":"Exists","Values":null},',
        'spec.scopeSelector.matchExpressions: Invalid value: null: conflicting scopes',
      ],
    ],
    (matchExpressions) => ({ spec: { hard: { cpu: '1' }, scopeSelector: { matchExpressions } } }),
  );
});

test('the conditions of an APIService have a status, and a local one is available', async () => {
  const path = '/apis/apiregistration.k8s.io/v1/apiservices';
  const spec = {
    group: 'core-rules.example.com',
    version: 'v1',
    groupPriorityMinimum: 1,
    versionPriority: 1,
  };
  const { status } = await api.made(
    api.post(`${path}?dryRun=All`, { metadata: { name: 'v1.core-rules.example.com' }, spec }),
  );
  assert.equal(status.conditions[0].reason, 'Local');
  const conditions = [{ type: 'Available', status: 'Maybe' }];
  requireCauses(
    await api.patch(`${path}/v1.apps/status?dryRun=All`, { status: { conditions } }),
    ['status.conditions[0].status: Unsupported value: "Maybe": supported values: "True", "False"'],
    'status',
  );
});

test('the text that is no base64 ends where its padding does', async () => {
  const path = `/api/v1/namespaces/${await api.namespace()}/secrets`;
  for (const [value, at] of [
    ['YQ=', 3],
    ['YQ==%', 4],
    ['YWI%', 3],
    ['Y===', 1],
    ['YWJjZ', 4],
    ['é', 0],
  ] as const) {
    const { body } = await api.post(path, { metadata: { name: 'a' }, data: { b: value } });
    assert.ok(body.message.endsWith(`illegal base64 data at input byte ${at}`), body.message);
  }
});

test('a converter names the JSON of a type that decodes itself', async () => {
  const space = await api.namespace();
  const leases = `/apis/coordination.k8s.io/v1/namespaces/${space}/leases`;
  await api.made(api.post(leases, { metadata: { name: 'a' } }));
  const policies = `/apis/networking.k8s.io/v1/namespaces/${space}/networkpolicies`;
  await api.made(api.post(policies, { metadata: { name: 'a' }, spec: {} }));
  const ports = [{ ports: [{ port: true }] }];
  for (const [path, spec, type] of [
    [leases, { renewTime: true }, 'string'],
    [policies, { ingress: ports }, 'int32'],
  ] as const) {
    const { body } = await api.patch(
      `${path}/a`,
      { spec },
      'application/strategic-merge-patch+json',
    );
    assert.ok(
      body.message.endsWith(`json: cannot unmarshal bool into Go value of type ${type}`),
      body.message,
    );
  }
});

test('an amount of another type than a scalar is not applied', async () => {
  const space = await api.namespace();
  const { body } = await api.apply(`/api/v1/namespaces/${space}/resourcequotas/a`, 'm', {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: 'a' },
    spec: { hard: { pods: [{}] } },
  });
  assert.match(body.message, /: \.spec\.hard\.pods: expected any scalar, got &{\[map\[\]\]}$/);
});

test('bytes are a text, also if stringData has them', async () => {
  const space = await api.namespace();
  const metadata = { name: 'a' };
  for (const [plural, object, field] of [
    ['configmaps', { binaryData: { a: true } }, 'ConfigMap.binaryData'],
    ['secrets', { data: { a: true }, stringData: { a: 'b' } }, 'Secret.data'],
  ] as const) {
    const { body } = await api.post(`/api/v1/namespaces/${space}/${plural}`, {
      metadata,
      ...object,
    });
    const why = `cannot unmarshal bool into Go struct field ${field} of type []uint8`;
    assert.ok(body.message.endsWith(why), body.message);
  }
});

test('an address outside the ranges of the cluster is refused', async () => {
  const path = `/api/v1/namespaces/${await api.namespace()}/services`;
  const service = {
    metadata: { name: 'a' },
    spec: { clusterIP: '192.0.2.1', ports: [{ port: 80 }] },
  };
  const at = 'spec.clusterIPs: Invalid value: ["192.0.2.1"]: failed to allocate IP 192.0.2.1:';
  requireCauses(
    await api.post(path, service),
    [`${at} the provided network does not match the current range`],
    'Service',
  );
  requireCauses(
    await api.post(`${path}?dryRun=All`, service),
    [`${at} the provided IP (192.0.2.1) is not in the valid range`],
    'dry run',
  );
});

test('a deprecated kind warns only of methods that it has', async () => {
  const path = `/api/v1/namespaces/${await api.namespace()}/endpoints`;
  for (const [reply, status, warns] of [
    [await api.get(path), 200, true],
    [await api.put(path, {}), 405, false],
    [await api.patch(`${path}/a`, {}, 'application/other'), 415, false],
  ] as const) {
    assert.deepEqual([reply.status, Boolean(reply.headers['warning'])], [status, warns]);
  }
});

test('the ports of a slice are unset if its only port has neither a number nor a name', async () => {
  const path = `/apis/discovery.k8s.io/v1/namespaces/${await api.namespace()}/endpointslices`;
  const slice = { metadata: { name: 'a' }, addressType: 'IPv4', endpoints: [], ports: [{}] };
  await api.made(api.post(path, slice));
  const { body } = await api.get(`${path}/a`, 'application/json;as=Table;g=meta.k8s.io;v=v1');
  assert.equal(body.rows[0].cells[2], '<unset>');
});
