import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Json } from './api.ts';
import { Api, assertRejected } from './api.ts';
import {
  deployment,
  deployments,
  GROUP,
  pod,
  pods,
  widget,
  widgetCrd,
  widgets,
} from './objects.ts';

let api: Api;
/** Path of Widget `a`. */
let path: string;

before(async () => {
  api = await Api.start();
  await api.install(widgetCrd());
  path = widgets(await api.namespace());
  await api.made(api.post(path, widget('a')));
});

after(() => api.close());

test('an update of the object ignores the status', async () => {
  const space = await api.namespace();
  const draft = { ...widget('b'), status: { phase: 'New' } };
  const created = await api.made(api.post(widgets(space), draft));
  assert.equal(created.status, undefined);
  const patched = await api.made(api.patch(`${widgets(space)}/b`, { status: { phase: 'New' } }));
  assert.equal(patched.status, undefined);
  assert.equal(patched.metadata.resourceVersion, created.metadata.resourceVersion);
});

test('the status subresource ignores all other fields', async () => {
  const { metadata, spec } = (await api.get(`${path}/a`)).body;
  const body = await api.made(
    api.patch(`${path}/a/status`, {
      metadata: { labels: { a: 'b' }, annotations: { a: 'b' }, finalizers: ['example.com/a'] },
      spec: { size: 9 },
      status: { phase: 'Running', size: 3, selector: 'app=a' },
    }),
  );
  assert.deepEqual(body.status, { phase: 'Running', size: 3, selector: 'app=a' });
  assert.deepEqual(body.spec, spec);
  const { labels, annotations, finalizers, generation } = body.metadata;
  assert.deepEqual(
    [labels, annotations, finalizers, generation],
    [undefined, undefined, undefined, metadata.generation],
  );
  const entry = body.metadata.managedFields.find(
    ({ subresource }: { subresource?: string }) => subresource === 'status',
  );
  // Servers before Kubernetes 1.36 own labels and annotations that they did not write.
  const owned = Object.keys(entry.fieldsV1).filter((field) => field !== 'f:metadata');
  assert.deepEqual(owned, ['f:status']);
});

test('a status is validated', async () => {
  const reply = await api.patch(`${path}/a/status`, { status: { phase: 5 } });
  assertRejected(reply, {
    code: 422,
    reason: 'Invalid',
    message:
      /"a" is invalid: status\.phase: Invalid value: "integer": .*phase in body must be of type string: "integer"$/,
  });
});

test('the status subresource supports get, update and patch only', async () => {
  const read = await api.get(`${path}/a/status`);
  assert.deepEqual([read.status, read.body.kind], [200, 'Widget']);
  for (const [reply, verb] of [
    [await api.post(`${path}/a/status`, widget('a')), 'create'],
    [await api.delete(`${path}/a/status`), 'delete'],
  ] as const) {
    assertRejected(reply, {
      code: 405,
      reason: 'MethodNotAllowed',
      message: `${verb} is not supported on resources of kind "widgets.${GROUP}"`,
      details: { group: GROUP, kind: 'widgets' },
    });
  }
  assertRejected(await api.get(`${path}/nope/status`), {
    code: 404,
    reason: 'NotFound',
    message: `widgets.${GROUP} "nope" not found`,
  });
});

test('the scale shows the replicas of spec and status, and the selector', async () => {
  await api.made(api.patch(`${path}/a/status`, { status: { size: 3, selector: 'app=a' } }));
  const { metadata } = (await api.get(`${path}/a`)).body;
  assert.deepEqual((await api.get(`${path}/a/scale`)).body, {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: {
      name: 'a',
      namespace: metadata.namespace,
      uid: metadata.uid,
      resourceVersion: metadata.resourceVersion,
      creationTimestamp: metadata.creationTimestamp,
    },
    spec: { replicas: 1 },
    status: { replicas: 3, selector: 'app=a' },
  });
});

test('scaling changes the replicas only', async () => {
  const before = (await api.get(`${path}/a`)).body;
  const scale = { apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name: 'a' } };
  const put = await api.made(api.put(`${path}/a/scale`, { ...scale, spec: { replicas: 4 } }));
  assert.deepEqual(put.spec, { replicas: 4 });
  const patched = await api.made(api.patch(`${path}/a/scale`, { spec: { replicas: 5 } }));
  assert.deepEqual(patched.spec, { replicas: 5 });
  const { spec, status, metadata } = (await api.get(`${path}/a`)).body;
  assert.deepEqual([spec, status], [{ ...before.spec, size: 5 }, before.status]);
  assert.equal(metadata.generation, before.metadata.generation + 2);
});

test('scaling validates the scaled object', async () => {
  assertRejected(await api.patch(`${path}/a/scale`, { spec: { replicas: 50 } }), {
    code: 422,
    reason: 'Invalid',
    message: `Widget.${GROUP} "a" is invalid: spec.size: Invalid value: 50: spec.size in body should be less than or equal to 10`,
  });
  assertRejected(
    await api.put(`${path}/a/scale`, {
      apiVersion: 'autoscaling/v1',
      kind: 'Scale',
      metadata: { name: 'b' },
      spec: { replicas: 5 },
    }),
    {
      code: 400,
      reason: 'BadRequest',
      message: 'the name of the object (b) does not match the name on the URL (a)',
    },
  );
});

test('the scale of a ReplicationController has its selector', async () => {
  const path = `/api/v1/namespaces/${await api.namespace()}/replicationcontrollers`;
  const { template } = deployment('d').spec;
  const spec = { selector: { app: 'd' }, template };
  const metadata = { name: 'd' };
  await api.made(
    api.post(path, { apiVersion: 'v1', kind: 'ReplicationController', metadata, spec }),
  );
  const { status } = (await api.get(`${path}/d/scale`)).body;
  assert.deepEqual(status, { replicas: 0, selector: 'app=d' });
});

test('the status of a CronJob is not validated: its finalizers need no domain', async () => {
  const path = `/apis/batch/v1/namespaces/${await api.namespace()}/cronjobs`;
  const { spec } = deployment('d').spec.template;
  const jobTemplate = { spec: { template: { spec: { ...spec, restartPolicy: 'Never' } } } };
  await api.made(
    api.post(path, {
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      metadata: { name: 'c' },
      spec: { schedule: '* * * * *', jobTemplate },
    }),
  );
  const body = { metadata: { finalizers: ['plain'] } };
  assert.equal((await api.patch(`${path}/c`, body)).status, 422);
  const { metadata } = await api.made(api.patch(`${path}/c/status`, body));
  assert.deepEqual(metadata.finalizers, ['plain']);
});

test('a Deployment scales in the same way', async () => {
  const space = await api.namespace();
  const at = `${deployments(space)}/d`;
  await api.made(api.post(deployments(space), deployment('d')));
  const { spec, status } = (await api.get(`${at}/scale`)).body;
  assert.deepEqual([spec, status], [{ replicas: 1 }, { replicas: 0, selector: 'app=d' }]);
  await api.made(api.patch(`${at}/scale`, { spec: { replicas: 4 } }));
  assert.equal((await api.get(at)).body.spec.replicas, 4);
  assertRejected(await api.patch(`${at}/scale`, { spec: { replicas: -4 } }), {
    code: 422,
    reason: 'Invalid',
    message:
      'Scale.autoscaling "d" is invalid: spec.replicas: Invalid value: -4: must be greater than or equal to 0',
  });
});

test('a scale of another uid is a conflict', async () => {
  const space = await api.namespace();
  const at = `${deployments(space)}/uid`;
  await api.made(api.post(deployments(space), deployment('uid')));
  const { body: scale } = await api.get(`${at}/scale`);
  scale.metadata.uid = 'x';
  assertRejected(await api.put(`${at}/scale`, scale), {
    code: 409,
    reason: 'Conflict',
    message:
      /AdditionalErrorMsg: Precondition failed: UID in precondition: x, UID in object meta: /,
  });
  assertRejected(await api.patch(`${at}/scale`, scale), {
    code: 409,
    reason: 'Conflict',
    message:
      /deployments\/scale\.apps "uid": Precondition failed: UID in precondition: x, UID in object meta: /,
  });
  const negative = await api.patch(`${at}/scale`, { ...scale, spec: { replicas: -1 } });
  assertRejected(negative, { code: 422, reason: 'Invalid', message: /spec\.replicas/ });
});

test('a patch of a scale sets replicas that are absent, without an owner', async () => {
  const group = 'unset.example.com';
  const change = (crd: Json) => {
    const { properties } = crd.spec.versions[0].schema.openAPIV3Schema.properties.spec;
    delete properties.size.default;
  };
  await api.install(widgetCrd(group, change));
  const at = widgets(await api.namespace(), group);
  await api.made(api.post(at, { ...widget('a'), apiVersion: `${group}/v1` }));
  assert.equal((await api.get(`${at}/a/scale`)).status, 500);
  const without = await api.patch(`${at}/a/scale`, { metadata: { labels: { a: 'b' } } });
  assertRejected(without, {
    code: 400,
    reason: 'BadRequest',
    message: 'the spec replicas field ".spec.size" cannot be empty',
  });
  const { spec } = await api.made(api.patch(`${at}/a/scale`, { spec: { replicas: 2 } }));
  assert.deepEqual(spec, { replicas: 2 });
  const { body } = await api.get(`${at}/a`);
  assert.equal(body.spec.size, 2);
  assert.equal(body.metadata.managedFields.length, 1);
});

test('an apply of a scale shares the owners of the replicas of its object', async () => {
  const space = await api.namespace();
  await api.made(api.post(deployments(space), deployment('applied')));
  const at = `${deployments(space)}/applied`;
  const scale = (replicas: number, rest = {}) => ({
    apiVersion: 'autoscaling/v1',
    kind: 'Scale',
    metadata: { name: 'applied' },
    spec: { replicas },
    ...rest,
  });
  const conflict = await api.apply(`${at}/scale`, 'one', scale(3));
  assert.equal(conflict.status, 409);
  assert.match(
    conflict.body.message,
    /conflict with "conformance" using autoscaling\/v1: \.spec\.replicas$/,
  );
  const forced = await api.made(api.apply(`${at}/scale`, 'one', scale(3), '&force=true'));
  assert.deepEqual([forced.kind, forced.spec.replicas], ['Scale', 3]);
  const { spec, metadata } = (await api.get(at)).body;
  assert.equal(spec.replicas, 3);
  const owners = metadata.managedFields.filter(
    ({ fieldsV1 }: Json) => fieldsV1['f:spec']?.['f:replicas'] !== undefined,
  );
  assert.deepEqual(
    owners.map(({ manager, operation, subresource, time }: Json) => [
      manager,
      operation,
      subresource,
      time,
    ]),
    [['one', 'Apply', 'scale', undefined]],
  );
  const other = await api.apply(`${at}/scale`, 'two', scale(4));
  assert.match(
    other.body.message,
    /conflict with "one" with subresource "scale": \.spec\.replicas$/,
  );
  const wrong = await api.apply(`${at}/scale`, 'one', scale(1, { apiVersion: 'apps/v1' }));
  assert.match(wrong.body.message, /^invalid object type: apps\/v1, Kind=Scale$/);
});

test('an apply of a scale conflicts with replicas without an owner', async () => {
  const space = await api.namespace();
  const at = `${deployments(space)}/unowned`;
  await api.made(api.apply(at, 'one', deployment('unowned')));
  const kind = { apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name: 'unowned' } };
  const { status, body } = await api.apply(`${at}/scale`, 'one', {
    ...kind,
    spec: { replicas: 3 },
  });
  assert.equal(status, 409);
  assert.match(
    body.message,
    /conflict with "before-first-apply" with subresource "scale" using autoscaling\/v1: \.spec\.replicas$/,
  );
});

test('a status of a Deployment has no say in its labels, and that of a Pod none in its owners', async () => {
  const space = await api.namespace();
  const owned = async (list: string, object: Json) => {
    const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'o', uid: 'u' }];
    const metadata = { ...object.metadata, labels: { a: 'b' }, ownerReferences };
    await api.made(api.post(list, { ...object, metadata }));
    return (await api.made(api.put(`${list}/${object.metadata.name}/status`, object))).metadata;
  };
  const { labels, ownerReferences } = await owned(deployments(space), deployment('a'));
  assert.deepEqual([labels, ownerReferences], [{ a: 'b' }, undefined]);
  const ofPod = await owned(pods(space), pod('a'));
  assert.deepEqual([ofPod.labels, ofPod.ownerReferences.length], [undefined, 1]);
});

test('the status of a Job is consistent, and a finished Job stays finished', async () => {
  const space = await api.namespace();
  const list = `/apis/batch/v1/namespaces/${space}/jobs`;
  const template = { spec: { ...pod('x').spec, restartPolicy: 'Never' } };
  const job = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'a' }, spec: { template } };
  await api.made(api.post(list, job));
  const refused = async (status: Json, causes: readonly string[]) => {
    const { status: code, body } = await api.patch(`${list}/a/status`, { status });
    assert.equal(code, 422, JSON.stringify(status));
    const texts = body.details.causes.map(({ field, message }: Json) => `${field}: ${message}`);
    assert.deepEqual(texts.sort(), causes);
  };
  const is = (...types: string[]) => types.map((type) => ({ type, status: 'True' }));
  const startTime = '2020-01-01T00:00:00Z';
  const completionTime = '2020-01-01T00:00:01Z';
  await refused({ conditions: is('Complete') }, [
    'status.completionTime: Required value: completionTime is required for Complete jobs',
    'status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition',
    'status.startTime: Required value: startTime is required for finished job',
  ]);
  await refused({ active: -1, startTime, conditions: is('Failed', 'SuccessCriteriaMet') }, [
    'status.active: Invalid value: -1: must be greater than or equal to 0',
    'status.conditions: Invalid value: cannot set Failed=True condition without the FailureTarget=true condition',
    'status.conditions: Invalid value: cannot set SuccessCriteriaMet=True and Failed=true conditions',
  ]);
  await refused({ ready: 1, completedIndexes: '0', completionTime }, [
    'status.completedIndexes: Invalid value: "0": cannot set non-empty completedIndexes when non-indexed completion mode',
    'status.completionTime: Invalid value: "2020-01-01T00:00:01Z": cannot set completionTime when there is no Complete=True condition',
    'status.ready: Invalid value: 1: cannot set more ready pods than active',
  ]);
  const done = {
    startTime,
    completionTime,
    succeeded: 1,
    conditions: is('SuccessCriteriaMet', 'Complete'),
  };
  await api.made(api.patch(`${list}/a/status`, { status: done }));
  await refused(
    { active: 1, succeeded: 0, startTime: completionTime, conditions: is('Complete') },
    [
      'status.active: Invalid value: 1: active>0 is invalid for finished job',
      'status.conditions: Invalid value: cannot disable the SuccessCriteriaMet=True condition',
      'status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition',
      'status.startTime: Invalid value: "2020-01-01T00:00:01Z": field is immutable for unsuspended job once set',
      'status.succeeded: Invalid value: 0: cannot decrease the succeeded counter',
    ],
  );
});

test('the template of a suspended Job changes where its Pods run, and nothing else', async () => {
  const space = await api.namespace();
  const list = `/apis/batch/v1/namespaces/${space}/jobs`;
  const template = { spec: { ...pod('x').spec, restartPolicy: 'Never' } };
  const spec = { suspend: true, template };
  await api.made(
    api.post(list, { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'a' }, spec }),
  );
  const change = (part: Json) => api.patch(`${list}/a`, { spec: { template: { spec: part } } });
  const key = [{ key: 'a', operator: 'Exists' }];
  await api.made(change({ nodeSelector: { a: 'b' }, tolerations: key }));
  const reply = await change({ restartPolicy: 'OnFailure' });
  assert.deepEqual(
    [reply.status, reply.body.details.causes.map(({ field }: Json) => field)],
    [422, ['spec.template.spec']],
  );
  await api.made(api.patch(`${list}/a`, { spec: { suspend: false } }));
  const started = await change({ nodeSelector: { a: 'c' } });
  assert.deepEqual(
    [started.status, started.body.details.causes.map(({ field }: Json) => field)],
    [422, ['spec.template']],
  );
});

test('an Indexed Job without completions lacks only them', async () => {
  const space = await api.namespace();
  const list = `/apis/batch/v1/namespaces/${space}/jobs`;
  const template = { spec: { ...pod('x').spec, restartPolicy: 'Never' } };
  const spec = { completionMode: 'Indexed', completions: 2, parallelism: 2, template };
  const job = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'a' }, spec };
  await api.made(api.post(list, job));
  assertRejected(await api.patch(`${list}/a`, { spec: { completions: null } }), {
    code: 422,
    reason: 'Invalid',
    message:
      'Job.batch "a" is invalid: spec.completions: Required value: when completion mode is Indexed',
  });
});

test('the template of a Job has the labels of its selector', async () => {
  const space = await api.namespace();
  const list = `/apis/batch/v1/namespaces/${space}/jobs`;
  const template = { spec: { ...pod('x').spec, restartPolicy: 'Never' } };
  const spec = { manualSelector: true, selector: { matchLabels: { a: 'b' } }, template };
  const job = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'a' }, spec };
  assertRejected(await api.post(list, job), {
    code: 422,
    reason: 'Invalid',
    message:
      /spec\.template\.metadata\.labels: Invalid value: .*`selector` does not match template `labels`$/,
  });
});

test('a scale of 0 replicas omits them', async () => {
  const space = await api.namespace();
  await api.made(api.post(deployments(space), deployment('none')));
  const scaled = await api.made(
    api.patch(`${deployments(space)}/none/scale`, { spec: { replicas: 0 } }),
  );
  assert.deepEqual(scaled.spec, {});
});
