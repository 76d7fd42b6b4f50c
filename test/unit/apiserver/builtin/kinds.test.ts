import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BUILTIN_KINDS } from '../../../../src/apiserver/builtin/kinds.ts';
import { publishedSchema } from '../../../../src/apiserver/schema/builtin-schemas.ts';
import { SCHEMAS } from '../../../../src/apiserver/generated/schemas.ts';
import { messageOfKind } from '../../../../src/apiserver/protobuf/protobuf-body.ts';
import { applyDefaults } from '../../../../src/apiserver/schema/defaulting.ts';
import { validateStructure } from '../../../../src/apiserver/schema/validate.ts';
import { context, created, draft, kind, problems, updateProblems, updated } from './admitted.ts';

test('every kind has a schema and a protobuf message', () => {
  for (const each of BUILTIN_KINDS) {
    const { group, version, kind: name, schema } = each;
    assert.ok(schema?.properties?.['metadata'], `${group}/${version} ${name}`);
    assert.ok(messageOfKind(each), `${group}/${version} ${name}`);
  }
});

test('each group version has the kinds of Kubernetes', () => {
  const count = (group: string, version = 'v1') =>
    BUILTIN_KINDS.filter((each) => each.group === group && each.version === version).length;
  assert.ok(BUILTIN_KINDS.length > 65);
  assert.equal(count(''), 17);
  assert.equal(count('apps'), 5);
  assert.equal(count('autoscaling', 'v2'), 1);
  assert.equal(kind('Deployment').shortNames.join(), 'deploy');
  assert.deepEqual(kind('Namespace').verbs?.includes('deletecollection'), false);
});

const template = {
  metadata: { labels: { app: 'web' } },
  spec: { containers: [{ name: 'web', image: 'nginx' }] },
};
const workload = { selector: { matchLabels: { app: 'web' } }, template };

const sound: Readonly<Record<string, object>> = {
  ConfigMap: { data: { 'a.txt': 'x' } },
  Event: { involvedObject: { kind: 'Pod', name: 'web', namespace: 'default' } },
  Namespace: {},
  Node: {},
  Pod: { spec: template.spec },
  Secret: { stringData: { password: 'x' } },
  Service: { spec: { ports: [{ port: 80 }], selector: { app: 'web' } } },
  ServiceAccount: {},
  Deployment: { spec: workload },
  ReplicaSet: { spec: workload },
  Lease: { spec: { holderIdentity: 'me', leaseDurationSeconds: 15 } },
};

for (const [name, fields] of Object.entries(sound)) {
  test(`a valid ${name} fits its schema and rules after defaulting`, () => {
    const { schema } = kind(name);
    assert.ok(schema);
    const stored = applyDefaults(created(name, fields), schema);
    assert.deepEqual(validateStructure(stored, schema, ''), []);
    assert.deepEqual(problems(name, fields), []);
  });

  test(`hooks of ${name} survive any shape`, () => {
    const { hooks } = kind(name);
    const fields = ['spec', 'status', 'data', 'stringData', 'involvedObject'];
    for (const shape of [null, 1, 'x', [null, 1], { ports: [null], template: 'x', taints: [1] }]) {
      const object = draft(name, Object.fromEntries(fields.map((field) => [field, shape])));
      const previous = created(name, sound[name] ?? {});
      hooks?.applyDefaults?.(object);
      hooks?.prepareForCreate?.(object, context);
      hooks?.prepareForUpdate?.(object, previous, context);
      hooks?.validate?.(object, previous);
      hooks?.validateUpdate?.(object, previous);
    }
  });
}

test('a new namespace is active, and has its label and finalizer', () => {
  const namespace = created('Namespace', {});
  assert.deepEqual(namespace.metadata.labels, { 'kubernetes.io/metadata.name': 'web' });
  assert.deepEqual(namespace['spec'], { finalizers: ['kubernetes'] });
  assert.deepEqual(namespace['status'], { phase: 'Active' });
  const { hooks } = kind('Namespace');
  assert.equal(hooks?.blocksRemoval?.(namespace), true);
  hooks?.markDeleted?.(namespace);
  assert.deepEqual(namespace['status'], { phase: 'Terminating' });
});

test('only finalize removes the finalizer of a namespace', () => {
  const before = created('Namespace', {});
  assert.deepEqual(updated(before, { spec: {} })['spec'], { finalizers: ['kubernetes'] });
  const finalized = updated(before, { spec: { finalizers: [] } }, 'finalize');
  assert.equal(kind('Namespace').hooks?.blocksRemoval?.(finalized), false);
});

test('an event must be in the namespace of its object', () => {
  const about = (namespace?: string) => ({ involvedObject: { kind: 'Pod', namespace } });
  const refused = 'does not match event.namespace';
  assert.deepEqual(problems('Event', about('other')), [
    `involvedObject.namespace: Invalid value: "other": ${refused}`,
  ]);
  assert.deepEqual(problems('Event', about(), { namespace: 'other' }), [
    `involvedObject.namespace: Invalid value: "": ${refused}`,
  ]);
  assert.deepEqual(problems('Event', about()), []);
});

test('an event of events.k8s.io needs a reporting controller and an action', () => {
  const eventTime = '2026-01-01T00:00:00.000000Z';
  const involvedObject = { kind: 'Pod', namespace: 'elsewhere' };
  assert.deepEqual(problems('Event', { involvedObject, eventTime }), [
    'reportingComponent: Required value',
    'reportingComponent: Invalid value: "": name part must be non-empty',
    `reportingComponent: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
    'reportingInstance: Required value',
    'action: Required value',
    'reason: Required value',
  ]);
  const complete = { reportingComponent: 'c', reportingInstance: 'i', action: 'a', reason: 'r' };
  const long = { ...complete, involvedObject, eventTime, message: 'x'.repeat(1025) };
  assert.deepEqual(problems('Event', long), [
    'message: Invalid value: "": can have at most 1024 characters',
  ]);
});

test('events can be selected by the fields that kubectl describe uses', () => {
  const event = draft('Event', {
    involvedObject: { kind: 'Count', name: 'c', namespace: 'default', uid: 'u' },
    reason: 'Synced',
    source: { component: 'count-controller' },
  });
  const select = kind('Event').selectableFields ?? {};
  const values = Object.entries(select).map(([field, read]) => `${field}=${read(event)}`);
  assert.deepEqual(values, [
    'involvedObject.kind=Count',
    'involvedObject.namespace=default',
    'involvedObject.name=c',
    'involvedObject.uid=u',
    'involvedObject.apiVersion=',
    'involvedObject.resourceVersion=',
    'involvedObject.fieldPath=',
    'reason=Synced',
    'reportingComponent=',
    'type=',
    'source=count-controller',
  ]);
});

test('a new deployment has a rolling update of 25 %', () => {
  const deployment = created('Deployment', { spec: workload });
  const { template: _, selector: __, ...spec } = deployment['spec'] as Record<string, unknown>;
  assert.deepEqual(spec, {
    replicas: 1,
    strategy: {
      type: 'RollingUpdate',
      rollingUpdate: { maxUnavailable: '25%', maxSurge: '25%' },
    },
    revisionHistoryLimit: 10,
    progressDeadlineSeconds: 600,
  });
});

for (const name of ['Deployment', 'ReplicaSet']) {
  test(`the selector of a ${name} fits its template and stays`, () => {
    const other = { ...workload, selector: { matchLabels: { app: 'other' } } };
    assert.deepEqual(problems(name, { spec: other }), [
      'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`',
    ]);
    assert.match(
      problems(name, { spec: { ...workload, selector: {} } })[0] ?? '',
      /^spec.selector: Invalid value: .*: empty selector is invalid for deployment$/,
    );
    const before = created(name, { spec: workload });
    const after = created(name, { spec: other });
    assert.deepEqual(updateProblems(before, after), [
      'spec.selector: Invalid value: {"matchLabels":{"app":"other"}}: field is immutable',
    ]);
  });

  test(`the template of a ${name} is validated as a pod with restartPolicy Always`, () => {
    const wrong = {
      metadata: { labels: { app: 'web', long: 'x'.repeat(64) } },
      spec: { containers: [{ name: 'web' }], restartPolicy: 'Never' },
    };
    const found = problems(name, { spec: { ...workload, template: wrong } });
    assert.match(
      found[0] ?? '',
      /^spec.template.labels: Invalid value: "x+": must be no more than 63/,
    );
    assert.deepEqual(found.slice(1), [
      'spec.template.spec.containers[0].image: Required value',
      'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
    ]);
  });

  test(`the status of a ${name} counts no more ready pods than there are`, () => {
    const object = created(name, { spec: workload });
    const status = { replicas: 1, readyReplicas: 2, availableReplicas: 1 };
    const found = kind(name).hooks?.validate?.({ ...object, status }, object) ?? [];
    assert.deepEqual(
      found.map(({ field, detail }) => `${field}: ${detail}`),
      ['status.readyReplicas: cannot be greater than status.replicas'],
    );
  });
}

test('selector and strategy are validated', () => {
  const expression = { key: 'a', operator: 'Near' };
  const selector = { matchLabels: { app: 'web' }, matchExpressions: [expression] };
  assert.deepEqual(problems('Deployment', { spec: { ...workload, selector } }), [
    'spec.selector.matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator',
    'spec.selector: Invalid value: {"matchLabels":{"app":"web"},"matchExpressions":[{"key":"a","operator":"Near"}]}: invalid label selector',
  ]);
  const strategy = { type: 'Sudden' };
  assert.deepEqual(problems('Deployment', { spec: { ...workload, strategy } }), [
    'spec.strategy: Unsupported value: {"Type":"Sudden","RollingUpdate":null}: supported values: "Recreate", "RollingUpdate"',
  ]);
});

test('a changed annotation increments the generation of a deployment', () => {
  const before = created('Deployment', { spec: workload }, { generation: 4 });
  const metadata = { ...before.metadata, annotations: { a: 'b' } };
  assert.equal(updated(before, { metadata }).metadata.generation, 5);
  assert.equal(updated(before, { metadata }, 'status').metadata.generation, 4);
  assert.equal(updated(before, {}).metadata.generation, 4);
});

test('a service gets a unique address that does not change', () => {
  const spec = { ports: [{ port: 80 }] };
  const service = created('Service', { spec });
  const { clusterIP } = service['spec'] as Record<string, unknown>;
  assert.match(String(clusterIP), /^10\.(\d|1[0-5])\.\d+\.\d+$/);
  assert.deepEqual(service['spec'], {
    ports: [{ port: 80, protocol: 'TCP', targetPort: 80 }],
    type: 'ClusterIP',
    sessionAffinity: 'None',
    internalTrafficPolicy: 'Cluster',
    clusterIP,
    clusterIPs: [clusterIP],
    ipFamilies: ['IPv4'],
    ipFamilyPolicy: 'SingleStack',
  });
  assert.deepEqual(created('Service', { spec })['spec'], service['spec']);
  assert.deepEqual(updated(service, { spec })['spec'], service['spec']);
  const moved = updated(service, { spec: { ...spec, clusterIP: '10.0.9.9' } });
  assert.match(updateProblems(service, moved)[0] ?? '', /may not change once set$/);
});

test('headless services have no address, NodePort services have node ports', () => {
  const headless = created('Service', { spec: { clusterIP: 'None' } });
  assert.deepEqual((headless['spec'] as Record<string, unknown>)['clusterIPs'], ['None']);
  assert.deepEqual(problems('Service', { spec: { clusterIP: 'None' } }), []);
  assert.deepEqual(problems('Service', { spec: {} }), ['spec.ports: Required value']);
  const nodePort = created('Service', { spec: { type: 'NodePort', ports: [{ port: 80 }] } });
  const [port] = (nodePort['spec'] as { ports: { nodePort: number }[] }).ports;
  assert.ok(port && port.nodePort >= 30_000 && port.nodePort < 32_768);
});

test('the ports of a service need unique names', () => {
  const ports = [{ port: 80 }, { name: 'b', port: 80 }, { name: 'b', port: 0 }];
  assert.deepEqual(problems('Service', { spec: { ports } }), [
    'spec.ports[0].name: Required value',
    'spec.ports[1]: Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,"TargetPort":0,"NodePort":0}',
    'spec.ports[2].name: Duplicate value: "b"',
    'spec.ports[2].port: Invalid value: 0: must be between 1 and 65535, inclusive',
    'spec.ports[2].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive',
  ]);
});

test('stringData of a secret is stored in base64', () => {
  const secret = created('Secret', {
    data: { a: 'eA==' },
    stringData: { b: 'y', __proto__x: 'z' },
  });
  assert.equal(secret['type'], 'Opaque');
  assert.deepEqual(secret['data'], { a: 'eA==', b: 'eQ==', __proto__x: 'eg==' });
  assert.equal(secret['stringData'], undefined);
});

test('keys, sizes and types of secrets and config maps are checked', () => {
  assert.match(
    problems('ConfigMap', { data: { 'a/b': '' } })[0] ?? '',
    /^data\[a\/b\]: Invalid value: "a\/b": a valid config key must consist of/,
  );
  assert.deepEqual(problems('ConfigMap', { data: { a: '' }, binaryData: { a: '' } }), [
    'data[a]: Invalid value: "a": duplicate of key present in binaryData',
  ]);
  assert.match(
    problems('ConfigMap', { data: { a: 'x'.repeat(2 ** 20 + 1) } })[0] ?? '',
    /Too long/,
  );
  assert.deepEqual(problems('Secret', { type: 'kubernetes.io/tls' }), [
    'data[tls.crt]: Required value',
    'data[tls.key]: Required value',
  ]);
});

test('immutable fields cannot change, others can', () => {
  const before = created('ConfigMap', { data: { a: '1' }, immutable: true });
  const why = 'Forbidden: field is immutable when `immutable` is set';
  assert.deepEqual(updateProblems(before, updated(before, { data: {}, immutable: false })), [
    `immutable: ${why}`,
    `data: ${why}`,
  ]);
  const free = created('ConfigMap', { data: { a: '1' } });
  assert.deepEqual(updateProblems(free, updated(free, { data: {} })), []);
  const secret = created('Secret', {});
  assert.deepEqual(updateProblems(secret, updated(secret, { type: 'other' })), [
    'type: Invalid value: "other": field is immutable',
  ]);
});

test('a new node has a taint until it is ready', () => {
  const node = created('Node', { status: { capacity: { cpu: '4', memory: '8Gi' } } });
  assert.deepEqual(node['spec'], {
    taints: [{ key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }],
  });
  const { allocatable } = node['status'] as Record<string, unknown>;
  assert.deepEqual(allocatable, { cpu: '4', memory: '8Gi' });
});

test('the duration of a lease must be positive', () => {
  assert.deepEqual(problems('Lease', { spec: { leaseDurationSeconds: 0, leaseTransitions: -1 } }), [
    'spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0',
    'spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0',
  ]);
});

test('a CRD has default names and a storage version', () => {
  const crd = created('CustomResourceDefinition', {
    spec: {
      names: { kind: 'Count', plural: 'counts' },
      versions: [{ name: 'v1', served: true, storage: true }],
    },
  });
  assert.deepEqual(crd['spec'], {
    group: '',
    scope: '',
    names: { kind: 'Count', plural: 'counts', singular: 'count', listKind: 'CountList' },
    conversion: { strategy: 'None' },
    versions: [{ name: 'v1', served: true, storage: true }],
  });
  assert.deepEqual((crd['status'] as Record<string, unknown>)['storedVersions'], ['v1']);
});

test('zero values of Go are added to a status before it is validated', () => {
  const { schema } = kind('Pod');
  assert.ok(schema);
  const pod = created('Pod', sound['Pod'] ?? {});
  pod['status'] = {
    containerStatuses: [{ name: 'web' }],
    conditions: [{ type: 'Ready', status: 'True' }],
  };
  const defaulted = applyDefaults(pod, schema);
  assert.deepEqual(defaulted['status'], {
    containerStatuses: [
      {
        name: 'web',
        image: '',
        imageID: '',
        ready: false,
        restartCount: 0,
        state: {},
        lastState: {},
      },
    ],
    conditions: [{ type: 'Ready', status: 'True', lastProbeTime: null, lastTransitionTime: null }],
  });
  assert.deepEqual(validateStructure(defaulted, schema, ''), []);
});

test('the generated schemas are complete and carry no descriptions', () => {
  const names = Object.entries(SCHEMAS).flatMap(([prefix, json]) =>
    Object.keys(JSON.parse(json) as object).map((name) => `${prefix}${name}`),
  );
  for (const name of names) {
    const schema = publishedSchema(name);
    assert.equal(schema?.description, undefined, name);
    const text = JSON.stringify(schema);
    for (const [, target = ''] of text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
      assert.ok(publishedSchema(target), target);
    }
  }
  assert.ok(publishedSchema('io.k8s.api.core.v1.PodSpec')?.properties?.['containers']);
});

test('a CronJob keeps a zone, a schedule and a name that a new one cannot have', () => {
  const { hooks } = kind('CronJob');
  const jobTemplate = {
    spec: { template: { spec: { ...template.spec, restartPolicy: 'Never' } } },
  };
  const cronJob = (timeZone?: string) => {
    // A schedule has no zone if there is another one.
    const schedule = `${timeZone === undefined ? 'TZ=UTC ' : ''}* * * * *`;
    return created(
      'CronJob',
      { spec: { schedule, ...(timeZone !== undefined && { timeZone }), jobTemplate } },
      { name: 'x'.repeat(53) },
    );
  };
  const problemsOf = (next?: string, ...previous: readonly (string | undefined)[]) => {
    const before = previous.length > 0 ? cronJob(previous[0]) : undefined;
    return (hooks?.validate?.(cronJob(next), before) ?? []).map(({ field }) => field);
  };
  assert.deepEqual(problemsOf(undefined, undefined), []);
  assert.deepEqual(problemsOf('Nowhere/Else', 'Nowhere/Else'), []);
  assert.deepEqual(problemsOf('Nowhere/Else', 'UTC'), ['spec.timeZone']);
  assert.ok(problemsOf('UTC').includes('metadata.name'));
  assert.ok(problemsOf('Nowhere/Else').includes('spec.timeZone'));
});
