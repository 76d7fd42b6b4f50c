import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { skipBefore } from '../support/skip.ts';
import type { Json, Reply } from './api.ts';
import { Api } from './api.ts';
import { CRDS, pod, pods } from './objects.ts';

let api: Api;
let space: string;

before(async () => {
  api = await Api.start();
  space = await api.namespace();
});

after(() => api.close());

const CONTAINER = { name: 'c', image: 'i' };
const UNFORMATTED = 'should be in RFC 5952 canonical format ("2001:db8::1")';
const NO_SELECTOR = 'labelSelector: a null labelSelector results in matching no pod';
const OS = 'deprecated since v1.14; use "kubernetes.io/os" instead';

/** Parts of a Pod with their warnings, without the path of the Pod. */
const PODS: readonly (readonly [fields: Json, ...warnings: string[]])[] = [
  [
    { spec: { imagePullSecrets: [{ name: 'a' }, {}] } },
    'spec.imagePullSecrets[1].name: invalid empty name ""',
  ],
  [
    {
      metadata: {
        annotations: {
          'seccomp.security.alpha.kubernetes.io/pod': 'runtime/default',
          'container.seccomp.security.alpha.kubernetes.io/c': 'runtime/default',
        },
      },
    },
    'metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: non-functional in v1.27+; use the "seccompProfile" field instead',
    'metadata.annotations[container.seccomp.security.alpha.kubernetes.io/c]: non-functional in v1.27+; use the "seccompProfile" field instead',
  ],
  [
    {
      metadata: {
        annotations: { 'container.apparmor.security.beta.kubernetes.io/c': 'runtime/default' },
      },
    },
    'metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: deprecated since v1.30; use the "appArmorProfile" field instead',
  ],
  [
    { spec: { containers: [{ ...CONTAINER, ports: [{ containerPort: 80, hostIP: '1.2.3.4' }] }] } },
    'spec.containers[0].ports[0]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:80 Protocol:TCP HostIP:1.2.3.4}',
  ],
  [
    {
      spec: {
        affinity: {
          podAntiAffinity: {
            preferredDuringSchedulingIgnoredDuringExecution: [
              { weight: 1, podAffinityTerm: { topologyKey: 'a' } },
            ],
          },
        },
      },
    },
    `spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.${NO_SELECTOR}`,
  ],
  [
    {
      spec: {
        volumes: [
          {
            name: 'v',
            projected: {
              sources: [
                {},
                { configMap: { name: 'm', items: [{ key: 'a', path: 'x' }] } },
                { secret: { name: 's', items: [{ key: 'a', path: 'x/y' }] } },
              ],
            },
          },
        ],
      },
    },
    'volume "v" (Projected) has no sources provided',
    'volume "v" (Projected): overlapping paths: "x/y" (Secret "s") with "x" (ConfigMap "m")',
  ],
  [
    {
      spec: {
        dnsConfig: { nameservers: ['2001:DB8::1'] },
        hostAliases: [{ ip: '2001:db8:0::1' }],
      },
    },
    `spec.dnsConfig.nameservers[0]: IPv6 address "2001:DB8::1" ${UNFORMATTED}`,
    `spec.hostAliases[0].ip: IPv6 address "2001:db8:0::1" ${UNFORMATTED}`,
  ],
];

/** Objects of other kinds with their warnings. */
const OBJECTS: readonly (readonly [
  apiVersion: string,
  kind: string,
  plural: string,
  fields: Json,
  ...warnings: string[],
])[] = [
  [
    'discovery.k8s.io/v1',
    'EndpointSlice',
    'endpointslices',
    { addressType: 'FQDN', endpoints: [{ addresses: ['a.b'] }] },
    'spec.addressType: FQDN endpoints are deprecated',
  ],
  [
    'networking.k8s.io/v1',
    'NetworkPolicy',
    'networkpolicies',
    { spec: { podSelector: {}, egress: [{ to: [{ ipBlock: { cidr: '2001:DB8::/32' } }] }] } },
    'spec.egress[0].to[0].ipBlock.cidr: IPv6 CIDR value "2001:DB8::/32" should be in RFC 5952 canonical format ("2001:db8::/32")',
  ],
  [
    'storage.k8s.io/v1',
    'CSIStorageCapacity',
    'csistoragecapacities',
    { storageClassName: 'x', nodeTopology: { matchLabels: { 'beta.kubernetes.io/os': 'a' } } },
    `nodeTopology.matchLabels.beta.kubernetes.io/os: ${OS}`,
  ],
  [
    'batch/v1',
    'Job',
    'jobs',
    {
      spec: {
        completionMode: 'Indexed',
        completions: 100_001,
        parallelism: 10_001,
        template: { spec: { restartPolicy: 'Never', containers: [CONTAINER] } },
      },
    },
    'spec: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail',
  ],
  [
    'v1',
    'ResourceQuota',
    'resourcequotas',
    { spec: { hard: { cpu: '2', 'limits.cpu': '1' } } },
    'ResourceQuota cpu (2) should be less than limits.cpu (1)',
  ],
];

function warningsOf({ status, headers, text }: Reply): string[] {
  assert.ok(status < 300, text);
  const texts = headers['warning']?.split(/, (?=299 - )/) ?? [];
  return texts.map((each) => each.replace(/^299 - "|"$/g, '').replaceAll('\\"', '"')).sort();
}

test('a Pod and the template of a Deployment have the same warnings', skipBefore(37), async () => {
  for (const [{ metadata = {}, spec = {} }, ...warnings] of PODS) {
    const draft = pod('w', metadata);
    Object.assign(draft.spec, { containers: [CONTAINER], ...spec });
    const ofPod = await api.post(`${pods(space)}?dryRun=All`, draft);
    assert.deepEqual(warningsOf(ofPod), warnings.toSorted());
    const labels = { app: 'w' };
    const ofTemplate = await api.post(`/apis/apps/v1/namespaces/${space}/deployments?dryRun=All`, {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'w' },
      spec: {
        selector: { matchLabels: labels },
        template: { metadata: { labels, ...metadata }, spec: draft.spec },
      },
    });
    const below = warnings.map((text) => text.replace(/^(?=spec|metadata)/, 'spec.template.'));
    assert.deepEqual(warningsOf(ofTemplate), below.toSorted());
  }
});

test('objects of other kinds have warnings', skipBefore(37), async () => {
  for (const [apiVersion, kind, plural, fields, ...warnings] of OBJECTS) {
    const prefix = apiVersion.includes('/') ? 'apis' : 'api';
    const path = `/${prefix}/${apiVersion}/namespaces/${space}/${plural}?dryRun=All`;
    const reply = await api.post(path, { apiVersion, kind, metadata: { name: 'w' }, ...fields });
    assert.deepEqual(warningsOf(reply), warnings.toSorted(), plural);
  }
});

test('addresses in a status have warnings, and are validated', skipBefore(37), async () => {
  await api.made(api.post(pods(space), pod('addressed')));
  const path = `${pods(space)}/addressed/status`;
  const send = (ip: string) => api.patch(path, { status: { podIP: ip, podIPs: [{ ip }] } });
  assert.deepEqual(warningsOf(await send('2001:DB8::1')), [
    `status.podIPs[0].ip: IPv6 address "2001:DB8::1" ${UNFORMATTED}`,
  ]);
  for (const [ip, problem] of [
    ['01.2.3.4', 'must not have leading 0s'],
    ['::ffff:1.2.3.4', 'must not be an IPv4-mapped IPv6 address'],
    ['a', 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'],
  ] as const) {
    const { status, body } = await send(ip);
    assert.deepEqual(
      [status, body.details?.causes?.[0]],
      [
        422,
        {
          reason: 'FieldValueInvalid',
          message: `Invalid value: "${ip}": ${problem}`,
          field: 'status.podIPs[0]',
        },
      ],
    );
  }
});

test('networks are in the form that Go writes', skipBefore(37), async () => {
  const path = `/apis/networking.k8s.io/v1/namespaces/${space}/networkpolicies?dryRun=All`;
  for (const [cidr, problem] of [
    ['10.1.0.0/8', 'must not have bits set beyond the prefix length'],
    ['010.0.0.0/8', 'must not have leading 0s in IP or prefix length'],
    ['10.0.0.0/08', 'must not have leading 0s in IP or prefix length'],
    ['::ffff:10.0.0.0/104', 'must not have an IPv4-mapped IPv6 address'],
  ] as const) {
    const { status, body } = await api.post(path, {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name: 'w' },
      spec: { podSelector: {}, ingress: [{ from: [{ ipBlock: { cidr } }] }] },
    });
    assert.equal(status, 422, cidr);
    assert.ok(body.message.endsWith(`: Invalid value: "${cidr}": ${problem}`), body.message);
  }
});

test(
  'a webhook has warnings for resources that are never sent, and no reserved name',
  skipBefore(37),
  async () => {
    const path = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations?dryRun=All';
    const configuration = (name: string) => ({
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name },
      webhooks: [
        {
          name: 'a.b.c',
          sideEffects: 'None',
          admissionReviewVersions: ['v1'],
          clientConfig: { url: 'https://localhost' },
          rules: [
            {
              operations: ['*'],
              apiGroups: ['', 'authentication.k8s.io'],
              apiVersions: ['*'],
              resources: ['tokenreviews', 'pods'],
            },
          ],
        },
      ],
    });
    assert.deepEqual(warningsOf(await api.post(path, configuration('w'))), [
      'webhooks[0].rules[0]: tokenreviews.authentication.k8s.io is excluded from admission webhooks; this rule will have no effect',
    ]);
    const { status, body } = await api.post(path, configuration('w.static.k8s.io'));
    assert.equal(status, 422);
    assert.match(body.message, /names ending with "\.static\.k8s\.io" are reserved/);
  },
);

test(
  'a CRD has warnings for unknown formats and sets of objects, an update for new ones',
  skipBefore(37),
  async () => {
    const crd = (properties: Json) => ({
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'warned.warnings.example.com' },
      spec: {
        group: 'warnings.example.com',
        scope: 'Cluster',
        names: { plural: 'warned', kind: 'Warned' },
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            schema: { openAPIV3Schema: { type: 'object', properties } },
          },
        ],
      },
    });
    const old = {
      text: { type: 'string', format: 'zz' },
      number: { type: 'number', format: 'int32' },
      set: {
        type: 'array',
        items: { type: 'object', 'x-kubernetes-map-type': 'atomic' },
        'x-kubernetes-list-type': 'set',
      },
      known: { type: 'string', format: 'k8s-short-name' },
    };
    const created = await api.post(CRDS, crd(old));
    assert.deepEqual(warningsOf(created), [
      'unrecognized format "int32"',
      'unrecognized format "zz"',
      'x-kubernetes-list-type: set for items of type "object" is not supported by server-side apply or CEL validation rules',
    ]);
    const updated = await api.patch(`${CRDS}/${created.body.metadata.name}`, {
      spec: crd({ ...old, more: { type: 'boolean', format: 'byte' } }).spec,
    });
    assert.deepEqual(warningsOf(updated), ['unrecognized format "byte"']);
  },
);

test('an apply of the status that creates an object has the warnings of a new one', async () => {
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'by-status' },
    spec: { ports: [{ port: 80 }], externalName: 'a.example.com' },
  };
  const path = `/api/v1/namespaces/${space}/services/by-status/status`;
  const { status, headers } = await api.apply(path, 'm', service);
  assert.equal(status, 201);
  assert.match(headers['warning'] ?? '', /spec\.externalName is ignored/);
  const again = await api.apply(path, 'm', service);
  assert.deepEqual([again.status, again.headers['warning']], [200, undefined]);
});
