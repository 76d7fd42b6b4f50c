import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BUILTIN_KINDS } from '../../../../src/apiserver/builtin/kinds.ts';
import type {
  ResourceDefinition,
  StoredObject,
} from '../../../../src/apiserver/objects/resource-definition.ts';
import { customColumns } from '../../../../src/apiserver/table/custom-columns.ts';
import { SCALE } from '../../../../src/apiserver/builtin/autoscaling/scale.ts';
import { renderTable } from '../../../../src/apiserver/table/table.ts';

const now = Date.UTC(2026, 0, 1, 1);
const at = (secondsAgo: number) =>
  new Date(now - secondsAgo * 1000).toISOString().slice(0, 19) + 'Z';

function kind(name: string): ResourceDefinition {
  const found = BUILTIN_KINDS.find((each) => each.kind === name);
  assert.ok(found);
  return found;
}

function object(fields: Record<string, unknown>, metadata: object = {}): StoredObject {
  return {
    apiVersion: 'v1',
    kind: 'Any',
    ...fields,
    metadata: {
      name: 'web',
      uid: 'u',
      resourceVersion: '7',
      creationTimestamp: at(130),
      ...metadata,
    },
  };
}

/** The cells that kubectl prints; all cells with `-o wide`. */
function cells(definition: ResourceDefinition, shown: StoredObject, wide = false): unknown[] {
  const table = renderTable(definition, [shown], { listMeta: {}, now });
  return (table.rows[0]?.cells ?? []).filter(
    (_, index) => wide || table.columnDefinitions?.[index]?.priority === 0,
  );
}

function headers(definition: Pick<ResourceDefinition, 'group' | 'kind' | 'columns'>): string {
  const { columnDefinitions } = renderTable(definition, [], { listMeta: {}, now });
  return (columnDefinitions ?? [])
    .map(({ name, priority }) => (priority > 0 ? `(${name})` : name).toUpperCase())
    .join(' ');
}

const expectedHeaders: Readonly<Record<string, string>> = {
  Pod: 'NAME READY STATUS RESTARTS AGE (IP) (NODE) (NOMINATED NODE) (READINESS GATES)',
  Event: 'LAST SEEN TYPE REASON OBJECT (SUBOBJECT) (SOURCE) MESSAGE (FIRST SEEN) (COUNT) (NAME)',
  Namespace: 'NAME STATUS AGE',
  Node: 'NAME STATUS ROLES AGE VERSION (INTERNAL-IP) (EXTERNAL-IP) (OS-IMAGE) (KERNEL-VERSION) (CONTAINER-RUNTIME)',
  Service: 'NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE (SELECTOR)',
  ConfigMap: 'NAME DATA AGE',
  Secret: 'NAME TYPE DATA AGE',
  ServiceAccount: 'NAME AGE',
  Deployment: 'NAME READY UP-TO-DATE AVAILABLE AGE (CONTAINERS) (IMAGES) (SELECTOR)',
  ReplicaSet: 'NAME DESIRED CURRENT READY AGE (CONTAINERS) (IMAGES) (SELECTOR)',
  Lease: 'NAME HOLDER AGE',
  CustomResourceDefinition:
    'NAME SCOPE VERSIONS CREATED AT (GROUP) (KIND) (SHORTNAMES) (ESTABLISHED)',
};

for (const [name, expected] of Object.entries(expectedHeaders)) {
  test(`${name} has the columns kubectl knows`, () => assert.equal(headers(kind(name)), expected));
}

test('a table has the list metadata and the metadata of each object', () => {
  const table = renderTable(kind('Namespace'), [object({ status: { phase: 'Active' } })], {
    listMeta: { resourceVersion: '9', continue: 'more', remainingItemCount: 2 },
    now,
  });
  assert.deepEqual(table, {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata: { resourceVersion: '9', continue: 'more', remainingItemCount: 2 },
    columnDefinitions: [
      {
        name: 'Name',
        type: 'string',
        format: 'name',
        description: 'Unique within the namespace, or within the cluster.',
        priority: 0,
      },
      {
        name: 'Status',
        type: 'string',
        format: '',
        description: 'Value of status.phase.',
        priority: 0,
      },
      {
        name: 'Age',
        type: 'string',
        format: '',
        description: 'Time since the object was created.',
        priority: 0,
      },
    ],
    rows: [
      {
        cells: ['web', 'Active', '2m10s'],
        object: {
          kind: 'PartialObjectMetadata',
          apiVersion: 'meta.k8s.io/v1',
          metadata: { name: 'web', uid: 'u', resourceVersion: '7', creationTimestamp: at(130) },
        },
      },
    ],
  });
});

test('includeObject selects the part of the object in each row', () => {
  const shown = object({ data: { a: 'b' } });
  const options = { listMeta: {}, now };
  const carried = (includeObject: 'None' | 'Object') =>
    renderTable(kind('ConfigMap'), [shown], { ...options, includeObject }).rows[0]?.object;
  assert.equal(carried('None'), null);
  assert.equal(carried('Object'), shown);
});

test('noHeaders omits the column definitions', () => {
  const table = renderTable(kind('Pod'), [], { listMeta: {}, now, noHeaders: true });
  assert.equal(table.columnDefinitions, null);
});

test('nodes show readiness, roles and versions', () => {
  const node = object(
    {
      spec: { unschedulable: true },
      status: {
        conditions: [{ type: 'Ready', status: 'True' }],
        addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
        nodeInfo: {
          kubeletVersion: 'v1.36.0',
          kernelVersion: '6.1',
          architecture: 'arm64',
          osImage: 'Linux',
        },
      },
    },
    { labels: { 'node-role.kubernetes.io/worker': '', 'kubernetes.io/role': 'edge' } },
  );
  assert.deepEqual(cells(kind('Node'), node, true), [
    'web',
    'Ready,SchedulingDisabled',
    'edge,worker',
    '2m10s',
    'v1.36.0',
    '10.0.0.1',
    '<none>',
    'Linux',
    '6.1 (arm64)',
    '<unknown>',
  ]);
  assert.deepEqual(cells(kind('Node'), object({})), ['web', 'Unknown', '<none>', '2m10s', '']);
});

test('services show addresses and ports', () => {
  const service = (spec: object, status: object = {}) => object({ spec, status });
  const shown = (of: StoredObject) => cells(kind('Service'), of).slice(1, 5);
  assert.deepEqual(
    shown(
      service({
        type: 'NodePort',
        clusterIPs: ['10.0.0.7'],
        ports: [
          { port: 80, nodePort: 30_080, protocol: 'TCP' },
          { port: 53, protocol: 'UDP' },
        ],
      }),
    ),
    ['NodePort', '10.0.0.7', '<none>', '80:30080/TCP,53/UDP'],
  );
  assert.deepEqual(shown(service({ type: 'LoadBalancer' })), [
    'LoadBalancer',
    '<none>',
    '<pending>',
    '<none>',
  ]);
  assert.deepEqual(
    shown(
      service(
        { type: 'LoadBalancer' },
        { loadBalancer: { ingress: [{ ip: '2.2.2.2' }, { ip: '1.1.1.1' }] } },
      ),
    )[2],
    '1.1.1.1,2.2.2.2',
  );
  assert.deepEqual(
    shown(service({ type: 'ExternalName', externalName: 'example.org' }))[2],
    'example.org',
  );
});

test('workloads show their counts, containers and selector', () => {
  const spec = {
    replicas: 3,
    selector: {
      matchLabels: { tier: 'front', app: 'web' },
      matchExpressions: [
        { key: 'env', operator: 'In', values: ['b', 'a'] },
        { key: 'old', operator: 'DoesNotExist' },
      ],
    },
    template: {
      spec: {
        containers: [
          { name: 'a', image: 'x' },
          { name: 'b', image: 'y' },
        ],
      },
    },
  };
  const deployment = object({ spec, status: { readyReplicas: 1, updatedReplicas: 2 } });
  const template = ['a,b', 'x,y', 'app=web,env in (a,b),!old,tier=front'];
  assert.deepEqual(cells(kind('Deployment'), deployment, true), [
    'web',
    '1/3',
    2,
    0,
    '2m10s',
    ...template,
  ]);
  const replicaSet = object({ spec, status: { replicas: 2, readyReplicas: 1 } });
  assert.deepEqual(cells(kind('ReplicaSet'), replicaSet, true), [
    'web',
    3,
    2,
    1,
    '2m10s',
    ...template,
  ]);
});

test('other kinds show their columns', () => {
  const data = { a: '1', b: '2' };
  assert.deepEqual(cells(kind('ConfigMap'), object({ data, binaryData: { c: '' } })), [
    'web',
    3,
    '2m10s',
  ]);
  assert.deepEqual(cells(kind('Secret'), object({ type: 'Opaque', data })), [
    'web',
    'Opaque',
    2,
    '2m10s',
  ]);
  assert.deepEqual(cells(kind('ServiceAccount'), object({})), ['web', '2m10s']);
  assert.deepEqual(cells(kind('Lease'), object({ spec: { holderIdentity: 'me' } })), [
    'web',
    'me',
    '2m10s',
  ]);
  const crd = { spec: { scope: 'Cluster', group: 'a', names: { kind: 'B' }, versions: [] } };
  const crdCells = ['web', 'Cluster', '', at(130)];
  assert.deepEqual(cells(kind('CustomResourceDefinition'), object(crd)), crdCells);
  const table = renderTable(SCALE, [object({ spec: { replicas: 5 }, status: { replicas: 3 } })], {
    listMeta: {},
    now,
  });
  assert.deepEqual(table.rows[0]?.cells, ['web', 5, 3, '2m10s']);
});

test('events show time, reason and object', () => {
  const event = object({
    involvedObject: { kind: 'Count', name: 'test-count', fieldPath: 'spec' },
    type: 'Normal',
    reason: 'Synced',
    message: ' Count synced successfully\n',
    source: { component: 'count-controller' },
    firstTimestamp: at(60),
    lastTimestamp: at(5),
    count: 4,
  });
  assert.deepEqual(cells(kind('Event'), event), [
    '5s',
    'Normal',
    'Synced',
    'count/test-count',
    'Count synced successfully',
  ]);
  assert.deepEqual(cells(kind('Event'), event, true), [
    '5s',
    'Normal',
    'Synced',
    'count/test-count',
    'spec',
    'count-controller',
    'Count synced successfully',
    '60s',
    4,
    'web',
  ]);
});

test('an events.k8s.io event has the time of its series or its eventTime', () => {
  const involvedObject = { kind: 'Pod' };
  const eventTime = `${at(30).slice(0, -1)}.000000Z`;
  const shown = (fields: object) => {
    const all = cells(kind('Event'), object({ involvedObject, eventTime, ...fields }), true);
    return [all[0], all[3], all[5], all[7], all[8]];
  };
  assert.deepEqual(shown({ reportingComponent: 'kubelet', reportingInstance: 'n1' }), [
    '30s',
    'pod',
    'kubelet, n1',
    '30s',
    1,
  ]);
  assert.deepEqual(shown({ series: { count: 9, lastObservedTime: at(3) } }), [
    '3s',
    'pod',
    '',
    '30s',
    9,
  ]);
});

const custom = (columns: Parameters<typeof customColumns>[0]) => ({
  ...kind('ConfigMap'),
  kind: 'Count',
  group: 'demo.mark8s.io',
  columns: customColumns(columns),
});

test('a custom kind without columns shows its name and age', () => {
  assert.equal(headers(custom(undefined)), 'NAME AGE');
  assert.deepEqual(cells(custom([]), object({})), ['web', '2m10s']);
});

test('a custom kind shows the columns of its CRD, with cells of the declared types', () => {
  const definition = custom([
    { name: 'Desired', type: 'integer', jsonPath: '.spec.count' },
    { name: 'Ratio', type: 'number', jsonPath: '.spec.ratio' },
    { name: 'Healthy', type: 'boolean', jsonPath: '.status.healthy' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Spec', type: 'string', jsonPath: '.spec', priority: 1 },
    { name: 'Count', type: 'string', jsonPath: '.spec.count' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ]);
  assert.equal(headers(definition), 'NAME DESIRED RATIO HEALTHY READY (SPEC) COUNT AGE');
  const shown = object({
    spec: { ratio: 0.5, count: 3 },
    status: { healthy: true, conditions: [{ type: 'Ready', status: 'True' }] },
  });
  assert.deepEqual(cells(definition, shown, true), [
    'web',
    3,
    0.5,
    true,
    'True',
    '{"count":3,"ratio":0.5}',
    '3',
    '2m10s',
  ]);
});

test('a cell with an absent value or another type is empty', () => {
  const definition = custom([
    { name: 'A', type: 'integer', jsonPath: '.spec.text' },
    { name: 'B', type: 'boolean', jsonPath: '.spec.text' },
    { name: 'C', type: 'date', jsonPath: '.spec.text' },
    { name: 'D', type: 'string', jsonPath: '.spec.missing' },
    { name: 'E', type: 'string', jsonPath: '.spec.list[3]' },
  ]);
  assert.deepEqual(cells(definition, object({ spec: { text: 'x', list: [] } })), [
    'web',
    null,
    null,
    '<invalid>',
    null,
    null,
  ]);
});

test('a malformed path drops its column and all later ones', () => {
  const definition = custom([
    { name: 'Good', type: 'string', jsonPath: '.spec.good' },
    { name: 'Bad', type: 'string', jsonPath: '.spec[' },
    { name: 'Lost', type: 'string', jsonPath: '.spec.lost' },
  ]);
  assert.equal(headers(definition), 'NAME GOOD');
});
