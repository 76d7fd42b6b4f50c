import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Api } from './api.ts';
import type { Case } from './refusals.ts';
import { refusals, refusedUpdates } from './refusals.ts';

let api: Api;

before(async () => {
  api = await Api.start();
});

after(() => api.close());

const STORAGE = '/apis/storage.k8s.io/v1';
const DEVICES = '/apis/resource.k8s.io/v1';

test('classes and drivers of storage are validated again when they are updated', async () => {
  const updates: readonly [path: string, object: object, cases: readonly Case[]][] = [
    [
      `${STORAGE}/storageclasses`,
      { provisioner: 'a/b' },
      [
        [{ provisioner: '' }, 'provisioner Invalid', 'provisioner Required'],
        [{ provisioner: 'a b' }, 'provisioner Invalid', 'provisioner Invalid'],
        [{ parameters: { '': 'a' } }, 'parameters Invalid', 'parameters Invalid'],
        [
          { allowedTopologies: [{ matchLabelExpressions: [{ key: 'a' }] }] },
          'allowedTopologies[0].matchLabelExpressions[0].values Required',
        ],
      ],
    ],
    [
      `${STORAGE}/volumeattributesclasses`,
      { driverName: 'a', parameters: { a: 'b' } },
      [
        [{ driverName: 'b c' }, 'driverName Forbidden', 'driverName Invalid'],
        [{ parameters: {} }, 'parameters Forbidden', 'parameters Required'],
      ],
    ],
    [
      `${STORAGE}/csidrivers`,
      { spec: {} },
      [
        [{ spec: { attachRequired: false } }, 'spec.attachedRequired Invalid'],
        [{ spec: { volumeLifecycleModes: ['Ephemeral'] } }, 'spec.volumeLifecycleModes Invalid'],
      ],
    ],
    [
      `${STORAGE}/volumeattachments`,
      { spec: { attacher: 'a', nodeName: 'b', source: { persistentVolumeName: 'c' } } },
      [
        [
          { spec: { attacher: 'a_', nodeName: 'b', source: { persistentVolumeName: 'c' } } },
          'spec Invalid',
          'spec.attacher Invalid',
        ],
      ],
    ],
    [
      '/apis/node.k8s.io/v1/runtimeclasses',
      { handler: 'a' },
      [
        [{ overhead: { podFixed: { cpu: '-1' } } }, 'overhead.limits[cpu] Invalid'],
        [
          { scheduling: { nodeSelector: { 'a b': 'c' }, tolerations: [{ effect: 'x' }] } },
          'scheduling.nodeSelector Invalid',
          'scheduling.tolerations[0].effect NotSupported',
          'scheduling.tolerations[0].operator Invalid',
        ],
      ],
    ],
  ];
  for (const [path, object, cases] of updates) {
    await refusedUpdates(api, path, { metadata: { name: 'refused' }, ...object }, cases);
  }
});

test('a volume in an attachment is one of a CSI driver, without what only a PersistentVolume has', async () => {
  const csi = { driver: 'a', volumeHandle: 'b' };
  const path = 'spec.source.inlineVolumeSpec';
  await refusals(
    api,
    `${STORAGE}/volumeattachments`,
    [
      [{ accessModes: ['ReadWriteOnce'], csi, persistentVolumeReclaimPolicy: 'Retain' }],
      [{}, `${path} Required`, `${path}.accessModes Required`, `${path}.csi Required`],
      [
        { accessModes: ['ReadWriteOnce'], csi: { driver: 'a' } },
        `${path}.csi.volumeHandle Required`,
      ],
      [
        {
          accessModes: ['ReadWriteOnce'],
          csi,
          capacity: { storage: '1' },
          claimRef: { name: 'a' },
          persistentVolumeReclaimPolicy: 'Delete',
          storageClassName: 'a',
          volumeMode: 'Block',
        },
        `${path}.capacity Forbidden`,
        `${path}.claimRef Forbidden`,
        `${path}.persistentVolumeReclaimPolicy Forbidden`,
        `${path}.storageClassName Forbidden`,
        `${path}.volumeMode Forbidden`,
      ],
    ],
    (inlineVolumeSpec) => ({
      metadata: { name: 'refused' },
      spec: { attacher: 'a', nodeName: 'b', source: { inlineVolumeSpec } },
    }),
  );
});

test('priority levels and bindings of policies are validated by declared rules', async () => {
  const levels = '/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations';
  const limitResponse = 'spec.limited.limitResponse';
  const queuing = { queues: 0, handSize: 0, queueLengthLimit: 0 };
  await refusals(
    api,
    levels,
    [
      [{ limited: { limitResponse: { type: 'Queue', queuing } } }],
      [{ limited: { limitResponse: { type: 'Queue' } } }, `${limitResponse}.queuing Required`],
      [
        { limited: { limitResponse: { type: 'Reject', queuing } } },
        `${limitResponse}.queuing Forbidden`,
      ],
      [
        { type: 'Other', limited: { limitResponse: { queuing } } },
        'spec.limited Forbidden',
        `${limitResponse}.queuing Forbidden`,
        `${limitResponse}.type Required`,
        'spec.type NotSupported',
      ],
    ],
    (spec) => ({ metadata: { name: 'refused' }, spec: { type: 'Limited', ...spec } }),
  );
  await refusals(
    api,
    '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings',
    [
      [{ policyName: 'a', validationActions: ['Deny'] }],
      [{}, 'spec.policyName Required', 'spec.validationActions Required'],
      [{ policyName: 'a', validationActions: [] }, 'spec.validationActions Required'],
    ],
    (spec) => ({ metadata: { name: 'refused' }, spec }),
  );
});

test('an update of a template of claims is validated, one of a priority class only for changes', async () => {
  const claim = { devices: { requests: [{ name: 'a', exactly: { deviceClassName: 'b' } }] } };
  await refusedUpdates(
    api,
    `${DEVICES}/namespaces/default/resourceclaimtemplates`,
    { metadata: { name: 'refused' }, spec: { spec: claim } },
    [
      [
        { spec: { metadata: { name: 'c' }, spec: claim } },
        'spec Invalid',
        'spec.metadata.name Forbidden',
      ],
    ],
  );
  await refusedUpdates(
    api,
    '/apis/scheduling.k8s.io/v1/priorityclasses',
    { metadata: { name: 'refused' }, value: 1 },
    [
      [{ value: 2_000_000_000 }, 'value Forbidden'],
      [{ preemptionPolicy: 'x' }, 'preemptionPolicy Invalid'],
    ],
  );
});

test('a size limit of a capacity may have any sign', async () => {
  await refusals(
    api,
    `${STORAGE}/namespaces/default/csistoragecapacities`,
    [[{ maximumVolumeSize: '-1' }], [{ capacity: '-1' }, 'capacity Invalid']],
    (change) => ({ metadata: { name: 'a' }, storageClassName: 'b', ...change }),
  );
});

test('the generation of a CSIDriver counts the changes after its creation', async () => {
  const path = `${STORAGE}/csidrivers`;
  const driver = await api.made(api.post(path, { metadata: { name: 'counted' }, spec: {} }));
  const labelled = await api.patch(`${path}/counted`, { metadata: { labels: { a: 'b' } } });
  const changed = await api.patch(`${path}/counted`, { spec: { podInfoOnMount: true } });
  const generations = [driver, labelled.body, changed.body].map(
    ({ metadata }) => metadata.generation,
  );
  assert.deepEqual(generations, [undefined, undefined, 1]);
  await api.delete(`${path}/counted`);
});

test('names of drivers, pools and attributes of devices are validated', async () => {
  const request = { name: 'a', exactly: { deviceClassName: 'b' } };
  const constraint = 'spec.devices.constraints[0]';
  await refusals(
    api,
    `${DEVICES}/namespaces/default/resourceclaims`,
    [
      [{ constraints: [{ matchAttribute: 'a.b/c' }] }],
      [{ constraints: [{ matchAttribute: 'A.b/c' }] }, `${constraint}.matchAttribute Invalid`],
      [{ constraints: [{ matchAttribute: '/c' }] }, `${constraint}.matchAttribute Invalid`],
      [{ constraints: [{ distinctAttribute: 'a/' }] }, `${constraint}.distinctAttribute Invalid`],
      [{ constraints: [{ matchAttribute: 'c' }] }, `${constraint}.matchAttribute Invalid`],
      [{ config: [{ opaque: { driver: 'A.b', parameters: {} } }] }],
      [
        { config: [{ opaque: { driver: 'a_b', parameters: { a: 'x'.repeat(10_240) } } }] },
        'spec.devices.config[0].opaque.driver Invalid',
        'spec.devices.config[0].opaque.parameters TooLong',
      ],
    ],
    (devices) => ({
      metadata: { name: 'a' },
      spec: { devices: { requests: [request], ...devices } },
    }),
  );
  await refusals(
    api,
    `${DEVICES}/deviceclasses`,
    [
      [{ extendedResourceName: 'a/b' }],
      [{ extendedResourceName: 'kubernetes.io/b' }, 'spec.extendedResourceName Invalid'],
      [{ extendedResourceName: 'requests.a/b' }, 'spec.extendedResourceName Invalid'],
    ],
    (spec) => ({ metadata: { name: 'a' }, spec }),
  );
  await refusals(
    api,
    `${DEVICES}/namespaces/default/resourceclaimtemplates`,
    [
      [{ labels: { a: 'b' } }],
      [
        { name: 'a', uid: 'b', finalizers: ['c'] },
        'spec.metadata.finalizers Forbidden',
        'spec.metadata.name Forbidden',
        'spec.metadata.uID Forbidden',
      ],
    ],
    (metadata) => ({ metadata: { name: 'a' }, spec: { metadata, spec: {} } }),
  );
});

test('the status of devices is dropped when they are no longer allocated', async () => {
  const path = `${DEVICES}/namespaces/default/resourceclaims`;
  const spec = { devices: { requests: [{ name: 'a', exactly: { deviceClassName: 'b' } }] } };
  await api.made(api.post(path, { metadata: { name: 'allocated' }, spec }));
  const device = { driver: 'c', pool: 'd', device: 'e' };
  const results = [{ ...device, request: 'a' }];
  const allocated = { allocation: { devices: { results } }, devices: [device] };
  const status = `${path}/allocated/status`;
  const { body } = await api.patch(status, { status: allocated });
  assert.equal(body.status.devices.length, 1);
  const after = await api.patch(status, { status: { allocation: null } });
  assert.deepEqual(after.body.status, {});
  await api.delete(`${path}/allocated`);
});

test('fields that feature gates turn off by default are dropped', async () => {
  const container = { name: 'a', image: 'b', lifecycle: { stopSignal: 'SIGTERM' } };
  const probe = { httpGet: { port: 1, protocol: 'H2C' } };
  const podSpec = {
    schedulingGroup: { podGroupName: 'a' },
    containers: [{ ...container, readinessProbe: probe }],
    volumes: [{ name: 'v', emptyDir: { mode: 0o777 } }],
  };
  const pod = await api.made(
    api.post('/api/v1/namespaces/default/pods?dryRun=All', {
      metadata: { name: 'a' },
      spec: podSpec,
    }),
  );
  const labels = { a: 'b' };
  const deployment = await api.made(
    api.post('/apis/apps/v1/namespaces/default/deployments?dryRun=All', {
      metadata: { name: 'a' },
      spec: {
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: podSpec },
      },
    }),
  );
  for (const spec of [pod.spec, deployment.spec.template.spec]) {
    const [{ lifecycle, readinessProbe }] = spec.containers;
    assert.deepEqual(
      [spec.schedulingGroup, lifecycle, readinessProbe.httpGet.protocol, spec.volumes[0].emptyDir],
      [undefined, undefined, undefined, {}],
    );
  }
  const slice = await api.made(
    api.post(`${DEVICES}/resourceslices?dryRun=All`, {
      metadata: { name: 'a' },
      spec: {
        driver: 'a',
        pool: { name: 'a', resourceSliceCount: 1 },
        allNodes: true,
        skipNodeOperations: ['*'],
        devices: [{ name: 'a', attributes: { b: { string: 'c', ints: [1] } } }],
      },
    }),
  );
  assert.equal(slice.spec.skipNodeOperations, undefined);
  assert.deepEqual(slice.spec.devices[0].attributes, { b: { string: 'c' } });
});
