import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Json } from './api.ts';
import { Api, MERGE } from './api.ts';

let api: Api;

before(async () => {
  api = await Api.start();
});

after(() => api.close());

/** The causes of a refusal as `field Reason`. */
function causesOf({ body }: { readonly body: Json }): string[] {
  const causes: Json[] = body.details?.causes ?? [];
  return causes.map(({ field, reason }) => `${field} ${reason.replace('FieldValue', '')}`).sort();
}

type Case = readonly [change: Json, ...causes: readonly string[]];

/** Sends each object as a dry run, and compares the causes of the refusal. */
async function creates(path: string, merge: (change: Json) => Json, cases: readonly Case[]) {
  for (const [change, ...expected] of cases) {
    const reply = await api.post(`${path}?dryRun=All`, merge(change));
    assert.deepEqual(causesOf(reply), expected.toSorted(), JSON.stringify(change));
    assert.equal(reply.status, expected.length > 0 ? 422 : 201, reply.text);
  }
}

/** Merges each change into an object as a dry run, and compares the causes of the refusal. */
async function patches(path: string, cases: readonly Case[]) {
  for (const [change, ...expected] of cases) {
    const reply = await api.send('PATCH', `${path}?dryRun=All`, change, { 'content-type': MERGE });
    assert.deepEqual(causesOf(reply), expected.toSorted(), JSON.stringify(change));
    assert.equal(reply.status, expected.length > 0 ? 422 : 200, reply.text);
  }
}

async function create(path: string, object: Json): Promise<Json> {
  const { status, body, text } = await api.post(path, object);
  assert.equal(status, 201, text);
  return body;
}

const PODS = '/api/v1/namespaces/default/pods';
const APPS = '/apis/apps/v1/namespaces/default';
const BATCH = '/apis/batch/v1/namespaces/default';

function podOf(spec: Json, metadata: Json = {}): Json {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'w', ...metadata },
    spec: { containers: [{ name: 'c', image: 'i' }], ...spec },
  };
}

function template(spec: Json = {}, metadata: Json = {}): Json {
  return { ...podOf(spec), metadata: { labels: { a: 'b' }, ...metadata } };
}

function workload(kind: string, spec: Json = {}): Json {
  const { metadata, spec: podSpec } = template();
  return {
    apiVersion: 'apps/v1',
    kind,
    metadata: { name: 'w' },
    spec: {
      selector: { matchLabels: { a: 'b' } },
      template: { metadata, spec: podSpec },
      ...spec,
    },
  };
}

const container = (fields: Json) => ({ containers: [{ name: 'c', image: 'i', ...fields }] });

test('fields whose feature gates are off are not stored', async () => {
  const off = {
    evictionResponders: [{ name: 'a.b/c' }],
    volumes: [
      { name: 'v', emptyDir: { mode: 5 } },
      { name: 'w', secret: { secretName: 's', defaultUser: 5 } },
    ],
    ...container({
      lifecycle: { stopSignal: 'SIGKILL' },
      livenessProbe: { grpc: { port: 1, mode: 'TLS' } },
      volumeMounts: [{ name: 'v', mountPath: '/v', bindMountOptions: ['noexec'] }],
    }),
  };
  const metadata = { annotations: { 'pod.beta.kubernetes.io/init-containers': '[]' } };
  const { body: pod } = await api.post(`${PODS}?dryRun=All`, podOf(off, metadata));
  const { body: set } = await api.post(
    `${APPS}/deployments?dryRun=All`,
    workload('Deployment', { template: template(off) }),
  );
  assert.equal(pod.metadata.annotations, undefined);
  for (const { evictionResponders, volumes, containers } of [pod.spec, set.spec.template.spec]) {
    assert.equal(evictionResponders, undefined);
    assert.deepEqual(volumes[0].emptyDir, {});
    assert.equal(volumes[1].secret.defaultUser, undefined);
    assert.equal(containers[0].lifecycle, undefined);
    assert.equal(containers[0].livenessProbe.grpc.mode, undefined);
    assert.equal(containers[0].volumeMounts[0].bindMountOptions, undefined);
  }
  // Their managers own them, because managed fields are determined before.
  const [{ fieldsV1 }] = pod.metadata.managedFields;
  assert.ok(fieldsV1['f:spec']['f:evictionResponders']);
});

test('a new Pod selects by its own labels, and has the profiles of older annotations', async () => {
  const selector = { labelSelector: { matchLabels: { a: 'b' } }, matchLabelKeys: ['x', 'other'] };
  const term = { topologyKey: 'zone', ...selector, mismatchLabelKeys: ['y'] };
  const reply = await api.post(
    `${PODS}?dryRun=All`,
    podOf(
      {
        affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } },
        topologySpreadConstraints: [
          { maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule', ...selector },
        ],
      },
      {
        labels: { x: '1', y: '2' },
        annotations: { 'container.apparmor.security.beta.kubernetes.io/c': 'runtime/default' },
      },
    ),
  );
  const { spec } = reply.body;
  const added = [{ key: 'x', operator: 'In', values: ['1'] }];
  const [affine] = spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution;
  assert.deepEqual(spec.topologySpreadConstraints[0].labelSelector.matchExpressions, added);
  assert.deepEqual(affine.labelSelector.matchExpressions, [
    ...added,
    { key: 'y', operator: 'NotIn', values: ['2'] },
  ]);
  assert.deepEqual(spec.containers[0].securityContext.appArmorProfile, { type: 'RuntimeDefault' });
  assert.match(String(reply.headers['warning']), /container\.apparmor/);
});

test('resources of a Pod as a whole are completed, and determine its QoS class', async () => {
  const limits = { cpu: '1', memory: '1Gi' };
  const { body } = await api.post(
    `${PODS}?dryRun=All`,
    podOf({ resources: { requests: { cpu: '2' } }, ...container({ resources: { limits } }) }),
  );
  const all = { cpu: '2', memory: '1Gi' };
  assert.deepEqual(body.spec.resources, { limits: all, requests: all });
  assert.equal(body.status.qosClass, 'Guaranteed');
});

test('rules of Pods that depend on several fields', async () => {
  const env = (valueFrom: Json) => container({ env: [{ name: 'a', valueFrom }] });
  const at = 'spec.containers[0].env[0].valueFrom.fieldRef.fieldPath';
  const volume = (source: Json) => ({ volumes: [{ name: 'v', ...source }] });
  const sysctl = (name: string) => ({ securityContext: { sysctls: [{ name, value: '1' }] } });
  await creates(PODS, podOf, [
    [env({ fieldRef: { fieldPath: 'spec.host' } })],
    [env({ fieldRef: { apiVersion: 'v2', fieldPath: 'spec.nodeName' } }), `${at} Invalid`],
    [env({ fieldRef: { fieldPath: "foo['x']" } }), `${at} Invalid`],
    [
      { ...sysctl('net.ipv4.x'), hostNetwork: true },
      'spec.securityContext.sysctls[0].name Invalid',
    ],
    [{ ...sysctl('kernel/sem'), hostIPC: true }, 'spec.securityContext.sysctls[0].name Invalid'],
    [{ ...sysctl('kernel/sem'), hostNetwork: true }],
    [
      volume({ gcePersistentDisk: { pdName: '' } }),
      'spec.volumes[0].persistentDisk.pdName Required',
    ],
    [
      volume({ emptyDir: {}, cephfs: { monitors: ['a'] }, downwardAPI: {} }),
      'spec.volumes[0].cephFS Forbidden',
      'spec.volumes[0].downwarAPI Forbidden',
    ],
    [
      volume({
        iscsi: {
          targetPortal: 'x'.repeat(70),
          iqn: 'iqn.2020-01.com:a',
          lun: 0,
          initiatorName: 'iqn.2020-01.com:a',
        },
      }),
      'spec.volumes[0].name Invalid',
    ],
    [
      {
        initContainers: [
          { name: 'd', image: 'i', restartPolicyRules: [{ action: 'X', exitCodes: {} }] },
        ],
      },
      'spec.initContainers[0].restartPolicy Required',
    ],
    [
      { resources: { claims: [{ name: 'x' }] } },
      'spec.resources.claims Forbidden',
      'spec.resources.claims[0] NotFound',
    ],
  ]);
  const cost = 'controller.kubernetes.io/pod-deletion-cost';
  await creates(PODS, (annotations) => podOf({}, { annotations }), [
    [{ [cost]: '-07' }],
    [{ [cost]: '08' }, `metadata.annotations[${cost}] Invalid`],
  ]);
});

test('ephemeral containers stay as they are', async () => {
  await create(PODS, podOf({}, { name: 'debugged' }));
  const path = `${PODS}/debugged/ephemeralcontainers`;
  const containers = (...list: Json[]) => ({ spec: { ephemeralContainers: list } });
  const own = { name: 'e', image: 'i' };
  const headers = { 'content-type': 'application/strategic-merge-patch+json' };
  const { status } = await api.send('PATCH', path, containers(own), headers);
  assert.equal(status, 200);
  const whole = {
    ...own,
    imagePullPolicy: 'Always',
    terminationMessagePath: '/dev/termination-log',
  };
  const at = 'spec.ephemeralContainers';
  await patches(path, [
    [containers(whole, { name: 'f', image: 'i' })],
    [containers(), `${at} Forbidden`],
    [containers({ ...own, image: 'j' }), `${at} Forbidden`],
    [containers(whole, { name: 'f', image: 'i', lifecycle: {} }), `${at}[1].lifecycle Forbidden`],
  ]);
  await api.send('DELETE', `${PODS}/debugged?gracePeriodSeconds=0`);
});

test('a resize changes CPU and memory, and nothing else', async () => {
  const resources = {
    limits: { cpu: '1', memory: '1Gi' },
    requests: { cpu: '500m', memory: '1Gi' },
  };
  await create(PODS, podOf(container({ resources }), { name: 'resized' }));
  const resize = (fields: Json) => ({
    spec: container({ resources: { ...resources, ...fields } }),
  });
  const at = 'spec.containers[0].resources';
  await patches(`${PODS}/resized/resize`, [
    [resize({ limits: { cpu: '2', memory: '1Gi' } })],
    [{ spec: { hostname: 'ignored' } }],
    [
      { spec: container({ resources: {} }) },
      'spec Invalid',
      `${at}.limits Forbidden`,
      `${at}.requests Forbidden`,
    ],
    [
      { spec: { containers: [] } },
      'spec.containers Forbidden',
      'spec.containers Required',
      'spec Invalid',
    ],
    [resize({ limits: { cpu: '1', memory: '1Gi', 'ephemeral-storage': '1' } }), 'spec Forbidden'],
    [resize({ requests: { cpu: '1', memory: '1Gi' } }), 'spec Invalid'],
    [{ spec: { ...container({ name: 'z', resources }) } }, 'spec.containers[0].name Forbidden'],
  ]);
  await api.send('DELETE', `${PODS}/resized?gracePeriodSeconds=0`);
});

test('the status of a Pod', async () => {
  await create(PODS, podOf({}, { name: 'observed' }));
  const path = `${PODS}/observed/status`;
  const condition = { type: 'Ready', status: 'True', observedGeneration: 2 };
  const headers = { 'content-type': MERGE };
  await api.send(
    'PATCH',
    path,
    { status: { observedGeneration: 3, conditions: [condition] } },
    headers,
  );
  const cleared = { observedGeneration: null, conditions: [{ type: 'Ready', status: 'False' }] };
  const { body } = await api.send('PATCH', path, { status: cleared }, headers);
  assert.equal(body.status.observedGeneration, 3);
  assert.equal(body.status.conditions[0].observedGeneration, 2);
  const of = (fields: Json) => ({
    name: 'c',
    image: '',
    imageID: '',
    ready: true,
    restartCount: 0,
    ...fields,
  });
  const health = [{ name: 'cpu', resources: [{ resourceID: 'a', health: 'x' }] }];
  const at = 'status.containerStatuses[0].allocatedResourcesStatus[0]';
  await patches(path, [
    [
      { status: { containerStatuses: [of({ allocatedResourcesStatus: health })] } },
      `${at}.name Invalid`,
      `${at}.resources[0].health NotSupported`,
    ],
    [
      { status: { ephemeralContainerStatuses: [of({ allocatedResourcesStatus: health })] } },
      'status.ephemeralContainerStatuses[0].allocatedResourcesStatus Forbidden',
    ],
    [
      { status: { podIPs: [{ ip: 'a' }, { ip: '::1' }] } },
      'status.podIPs InternalError',
      'status.podIPs Invalid',
      'status.podIPs[0] Invalid',
    ],
  ]);
  await api.send('DELETE', `${PODS}/observed?gracePeriodSeconds=0`);
});

test('templates and strategies of workloads', async () => {
  const cost = 'controller.kubernetes.io/pod-deletion-cost';
  const annotated = { template: template({}, { annotations: { [cost]: 'x' } }) };
  const overhead = { template: template({ overhead: { foo: '1' } }) };
  const never = { template: template({ restartPolicy: 'Never', activeDeadlineSeconds: 5 }) };
  const bad = { selector: { matchLabels: { 'a b': 'c' } }, ...never };
  const at = 'spec.template.spec';
  const ofNever = [`${at}.activeDeadlineSeconds Forbidden`, `${at}.restartPolicy NotSupported`];
  const rolling = (rollingUpdate: Json) => ({ type: 'RollingUpdate', rollingUpdate });
  for (const kind of ['Deployment', 'ReplicaSet', 'StatefulSet', 'DaemonSet']) {
    const path = `${APPS}/${kind.toLowerCase()}s`;
    const isStrict = kind === 'StatefulSet' || kind === 'DaemonSet';
    await creates(path, (spec) => workload(kind, spec), [
      [annotated, `spec.template.annotations[${cost}] Invalid`],
      [overhead, `${at}.overhead.limits[foo] Invalid`, `${at}.overhead.limits[foo] Invalid`],
      [{ template: template({ preemptionPolicy: '' }) }, `${at}.preemptionPolicy Required`],
      [never, ...ofNever],
      [
        bad,
        'spec.selector.matchLabels Invalid',
        ...(kind === 'DaemonSet' ? [] : ['spec.selector Invalid']),
        ...(isStrict ? ofNever : []),
      ],
    ]);
  }
  const update = 'spec.updateStrategy.rollingUpdate';
  await creates(
    `${APPS}/daemonsets`,
    (updateStrategy) => workload('DaemonSet', { updateStrategy }),
    [
      [rolling({ maxUnavailable: '200%' }), `${update}.maxUnavailable Invalid`],
      [
        rolling({ maxUnavailable: '3', maxSurge: 'x' }),
        `${update}.maxUnavailable Invalid`,
        `${update}.maxSurge Invalid`,
      ],
      [rolling({ maxUnavailable: '00%' }), `${update}.maxUnavailable Required`],
      [{ type: 'OnDelete', rollingUpdate: { maxUnavailable: 'x' } }],
    ],
  );
  await creates(
    `${APPS}/statefulsets`,
    (updateStrategy) => workload('StatefulSet', { updateStrategy }),
    [
      [
        rolling({ maxUnavailable: 'x' }),
        `${update}.maxUnavailable Invalid`,
        `${update}.maxUnavailable Invalid`,
      ],
      [rolling({ maxUnavailable: '3' }), `${update}.maxUnavailable Invalid`],
    ],
  );
});

test('an update of a StatefulSet does not validate its service name again', async () => {
  const path = `${APPS}/statefulsets`;
  await create(path, workload('StatefulSet', { serviceName: 'svc' }));
  await patches(`${path}/w`, [
    [{ spec: { serviceName: 'A' } }, 'spec.serviceName Invalid'],
    [{ spec: { serviceName: null } }, 'spec.serviceName Invalid'],
    [
      { spec: { volumeClaimTemplates: [{ metadata: { name: 'v' } }] } },
      'spec.volumeClaimTemplates Invalid',
    ],
  ]);
  await api.send('DELETE', `${path}/w`);
});

function job(spec: Json, name: string = 'j'): Json {
  const { spec: podSpec } = template({ restartPolicy: 'Never' });
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name },
    spec: { template: { spec: podSpec }, ...spec },
  };
}

test('Jobs and CronJobs', async () => {
  const indexed = { completionMode: 'Indexed', completions: 5 };
  const success = (...rules: Json[]) => ({ ...indexed, successPolicy: { rules } });
  const rules = 'spec.successPolicy.rules';
  await creates(`${BATCH}/jobs`, (spec) => job(spec, spec.name), [
    [{ ...indexed, name: 'a'.repeat(62) }, 'metadata.name Invalid'],
    [
      { completionMode: 'x', backoffLimitPerIndex: 1, successPolicy: { rules: [] } },
      'spec.completionMode NotSupported',
      'spec.successPolicy Invalid',
    ],
    [success({ succeededIndexes: '+1,2' })],
    [success({ succeededIndexes: '1-' }), `${rules}[0].succeededIndexes Invalid`],
    [success({ succeededIndexes: '0-1', succeededCount: 3 }), `${rules}[0].succeededCount Invalid`],
  ]);
  const cron = (jobSpec: Json, spec: Json = {}) => ({
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: { name: 'c' },
    spec: {
      schedule: '* * * * *',
      jobTemplate: { spec: { ...job({}).spec, ...jobSpec } },
      ...spec,
    },
  });
  await creates(`${BATCH}/cronjobs`, (spec) => cron({}, spec), [
    [{ timeZone: 'Europe/Berlin' }],
    [{ timeZone: 'a/../b' }, 'spec.timeZone Invalid'],
  ]);
  const rule = { action: 'Ignore', onPodConditions: [{ type: 'A' }] };
  const { body } = await api.post(
    `${BATCH}/cronjobs?dryRun=All`,
    cron({ podFailurePolicy: { rules: [rule] } }),
  );
  const [{ onPodConditions }] = body.spec.jobTemplate.spec.podFailurePolicy.rules;
  assert.deepEqual(onPodConditions, [{ type: 'A', status: 'True' }]);
});

test('labels of a Job are not validated again at an update', async () => {
  await create(`${BATCH}/jobs`, job({ suspend: true }, 'suspended'));
  const labels = (value: Json) => ({ spec: { template: { metadata: { labels: value } } } });
  await patches(`${BATCH}/jobs/suspended`, [
    [labels({ 'job-name': 'q' })],
    [
      labels({ 'batch.kubernetes.io/controller-uid': 'q' }),
      'spec.template.metadata.labels Invalid',
    ],
    [{ spec: { template: { spec: { hostname: 'z' } } } }, 'spec.template.spec Invalid'],
  ]);
  await api.send('DELETE', `${BATCH}/jobs/suspended?propagationPolicy=Background`);
});

test('an autoscaler has policies', async () => {
  const path = '/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers';
  const scaler = (behavior: Json) => ({
    apiVersion: 'autoscaling/v2',
    kind: 'HorizontalPodAutoscaler',
    metadata: { name: 'h' },
    spec: {
      maxReplicas: 3,
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'x' },
      behavior,
    },
  });
  await creates(path, scaler, [
    [{ scaleUp: { policies: null } }],
    [{ scaleUp: { policies: [] } }, 'spec.behavior.scaleUp.policies Required'],
  ]);
});

test('an autoscaler of v1 has the rules of the other version', async () => {
  const path = '/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers';
  const metadata = { name: 'old' };
  await creates(path, (spec) => ({ metadata, spec }), [
    [
      { maxReplicas: 3 },
      'spec.scaleTargetRef.apiVersion Invalid',
      'spec.scaleTargetRef.kind Required',
      'spec.scaleTargetRef.name Required',
    ],
  ]);
  const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'x' };
  const status = { currentCPUUtilizationPercentage: 5 };
  const { body } = await api.post(`${path}?dryRun=All`, {
    metadata,
    spec: { maxReplicas: 3, scaleTargetRef },
    status,
  });
  assert.equal(body.metadata.annotations, undefined);
  // The status of a new object is dropped after its conversion.
  const { 'f:metadata': owned, 'f:status': none } = body.metadata.managedFields[0].fieldsV1;
  const annotation = 'f:autoscaling.alpha.kubernetes.io/current-metrics';
  assert.deepEqual(owned, { 'f:annotations': { '.': {}, [annotation]: {} } });
  assert.equal(none, undefined);
});

test('the metadata of a PodDisruptionBudget is only validated if its fields are valid', async () => {
  const path = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';
  const selector = { matchExpressions: [{ key: 'a' }] };
  const budget = (spec: Json) => ({ metadata: { name: '' }, spec: { minAvailable: 1, ...spec } });
  await creates(path, budget, [
    [{}, 'metadata.name Required'],
    [{ selector }, 'spec.selector.matchExpressions[0].operator Invalid'],
  ]);
});

test('messages show a selector as the struct of Go', async () => {
  const selector = { matchExpressions: [{ values: ['x'], operator: 'In', key: 'a b' }] };
  const { body } = await api.post(`${APPS}/deployments?dryRun=All`, {
    metadata: { name: 'd' },
    spec: { selector, template: template() },
  });
  assert.match(
    body.message,
    /\{"matchExpressions":\[\{"key":"a b","operator":"In","values":\["x"\]\}\]\}/,
  );
});

test('the volumes of claims precede those of the template', async () => {
  const claim = { metadata: { name: 'data' }, spec: { accessModes: ['ReadWriteOnce'] } };
  const volumes = [{ name: 'v' }, { name: 'a b', emptyDir: {} }];
  const spec = { containers: [{ name: 'c', image: 'i' }], volumes };
  const set = (fields: Json) => ({
    metadata: { name: 's' },
    spec: { selector: { matchLabels: { a: 'b' } }, ...fields },
  });
  const fields = {
    template: { metadata: { labels: { a: 'b' } }, spec },
    volumeClaimTemplates: [
      { ...claim, spec: { ...claim.spec, resources: { requests: { storage: '1Gi' } } } },
    ],
  };
  await creates(`${APPS}/statefulsets`, set, [
    [fields, 'spec.template.spec.volumes[2].name Invalid'],
  ]);
});

test('an update of a DaemonSet without its annotation changes it, and keeps its number', async () => {
  const path = `${APPS}/daemonsets`;
  const annotation = 'deprecated.daemonset.template.generation';
  const set = { ...workload('DaemonSet'), metadata: { name: 'annotated' } };
  const created = await create(path, set);
  assert.equal(created.metadata.annotations[annotation], '1');
  const { body } = await api.send('PUT', `${path}/annotated?fieldManager=other`, set, {
    'content-type': 'application/json',
  });
  assert.equal(body.metadata.annotations[annotation], '1');
  const { fieldsV1 } = body.metadata.managedFields.find(({ manager }: Json) => manager === 'other');
  assert.deepEqual(fieldsV1, { 'f:metadata': { 'f:annotations': { [`f:${annotation}`]: {} } } });
});

test('a ReplicationController has Pods that are restarted', async () => {
  const path = '/api/v1/namespaces/default/replicationcontrollers';
  const { metadata, spec } = template({ activeDeadlineSeconds: 5 });
  const controller = (fields: Json) => ({
    apiVersion: 'v1',
    kind: 'ReplicationController',
    metadata: { name: 'rc' },
    spec: { template: { metadata, spec }, ...fields },
  });
  await creates(path, controller, [[{}, 'spec.template.spec.activeDeadlineSeconds Forbidden']]);
});

test('a refused change of a Pod shows the lines of upstream that differ', async () => {
  const path = `${PODS}/shown`;
  await create(PODS, podOf({}, { name: 'shown' }));
  const change = async (at: string, spec: Json) => {
    const { body } = await api.send('PATCH', at, { spec }, { 'content-type': MERGE });
    return body.details.causes[0].message.replace(/^.*\n/, '');
  };
  assert.equal(
    await change(path, { hostname: 'h' }),
    `@@ -64,7 +64,7 @@
   "SELinuxChangePolicy": null
  },
  "ImagePullSecrets": null,
- "Hostname": "",
+ "Hostname": "h",
  "Subdomain": "",
  "Affinity": null,
  "SchedulerName": "default-scheduler",
`,
  );
  const debug = { name: 'd', image: 'i' };
  const containers = `${path}/ephemeralcontainers`;
  await api.send(
    'PATCH',
    containers,
    { spec: { ephemeralContainers: [debug] } },
    { 'content-type': MERGE },
  );
  assert.equal(
    await change(containers, { ephemeralContainers: [{ ...debug, image: 'j' }] }),
    `@@ -1,6 +1,6 @@
 {
  "Name": "d",
- "Image": "i",
+ "Image": "j",
  "Command": null,
  "Args": null,
  "WorkingDir": "",
`,
  );
  await api.send('DELETE', `${path}?gracePeriodSeconds=0`);
});

test('the decoder ends at a value whose type decodes itself', async () => {
  const decoded = async (container: Json) => {
    const { body } = await api.post(
      PODS,
      podOf({ containers: [{ name: 'c', image: 5, ...container }] }),
    );
    return body.message.replace(/^.* as a Pod: /, '');
  };
  assert.match(await decoded({}), /field Container.spec.containers.image of type string$/);
  assert.match(await decoded({ resources: { limits: { cpu: [] } } }), /^quantities must match /);
  for (const port of [{}, [1], true]) {
    const probe = { livenessProbe: { httpGet: { port } } };
    assert.match(await decoded(probe), /ProbeHandler.httpGet.port of type int32$/);
  }
  const { body } = await api.post(`${BATCH}/cronjobs`, {
    metadata: { name: 'c' },
    spec: { schedule: 1 },
    status: { lastSuccessfulTime: [] },
  });
  assert.match(body.message, /CronJobStatus.status.lastSuccessfulTime of type string$/);
});
