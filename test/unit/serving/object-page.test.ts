import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DEPLOYMENTS, PODS, REPLICA_SETS, SECRETS } from '../../../src/api/builtin.ts';
import { keyOf } from '../../../src/api/object-key.ts';
import type { KubernetesObject } from '../../../src/api/object.ts';
import type { Resource } from '../../../src/api/resource.ts';
import { groupResourceOf } from '../../../src/api/resource.ts';
import { maskSecret, objectPage } from '../../../src/serving/object-page.ts';
import type { ObjectNode, ObjectReport, ShownEvent } from '../../../src/serving/object-page.ts';

/** An object whose uid is its name. */
function object(resource: Resource, name: string, owner?: KubernetesObject, rest: object = {}) {
  const { kind, group, version } = resource;
  const apiVersion = group ? `${group}/${version}` : version;
  const reference = owner && {
    apiVersion: owner.apiVersion,
    kind: owner.kind,
    name: owner.metadata.name,
    uid: owner.metadata.uid,
    controller: true,
  };
  const metadata = {
    namespace: 'default',
    name,
    uid: name,
    resourceVersion: '1',
    creationTimestamp: '',
    ...(reference && { ownerReferences: [reference] }),
  };
  return { apiVersion, kind, metadata, ...rest } as KubernetesObject;
}

function informer(resource: Resource, ...objects: KubernetesObject[]) {
  const lister = {
    get: (key: string) => objects.find((one) => keyOf(one) === key),
    list: ({ namespace }: { namespace?: string | undefined } = {}) =>
      objects.filter((one) => namespace === undefined || one.metadata.namespace === namespace),
  };
  return { name: groupResourceOf(resource), resource, lister };
}

/** Names of a tree: `web(web-1(web-1-a,*web-1-b))`. */
function names({ key, isSelected, owned }: ObjectNode): string {
  const below = owned.length > 0 ? `(${owned.map(names).join(',')})` : '';
  return `${isSelected ? '*' : ''}${key.replace('default/', '')}${below}`;
}

describe('the object page', () => {
  const deployment = object(DEPLOYMENTS, 'web');
  const replicaSet = object(REPLICA_SETS, 'web-1', deployment);
  const conditions = [{ type: 'Ready', status: 'False', message: 'token=hunter2', extra: 1 }];
  const podA = object(PODS, 'a', replicaSet, { status: { phase: 'Running', conditions } });
  const podB = object(PODS, 'b', replicaSet);
  const deployments = informer(DEPLOYMENTS, deployment);
  const pods = informer(PODS, podB, podA);

  function get(
    key: string,
    informers = [deployments, informer(REPLICA_SETS, replicaSet), pods],
    events: readonly ShownEvent[] = [],
  ): { status: number; report: ObjectReport } {
    const page = objectPage({ informers: () => informers, events: () => events });
    const query = new URLSearchParams({ resource: 'pods', key });
    const { status, body } = page.get('/debug/object')?.(query) ?? assert.fail();
    return { status, report: JSON.parse(body) as ObjectReport };
  }

  it('shows an object among its owners and their owned, with conditions', () => {
    const { report } = get('default/a');
    assert.equal(names(report.tree), 'web(web-1(*a,b))');
    const pod = report.tree.owned[0]?.owned[0];
    assert.deepEqual([pod?.phase, pod?.resource], ['Running', 'pods']);
    assert.deepEqual(pod?.conditions, [
      { type: 'Ready', status: 'False', message: 'token=[redacted]' },
    ]);
    assert.equal(get('default/none').status, 404);
  });

  it('shows an owner that is not cached, and ends at owners that own each other', () => {
    assert.equal(names(get('default/a', [pods]).report.tree), 'web-1(*a,b)');
    const first = object(PODS, 'first');
    const second = object(PODS, 'second', first);
    const again = object(PODS, 'first', second);
    const { tree } = get('default/first', [informer(PODS, again, second)]).report;
    assert.match(names(tree), /first/);
  });

  it('says why owned objects are not ready, and counts equal reasons', () => {
    const web = (at: number, status: object) => object(PODS, `pod-${at}`, replicaSet, { status });
    const reporting = (type: string, status: string, message: string) => ({
      conditions: [{ type, status, message }],
    });
    const waiting = (reason: string) => ({
      ...reporting('Ready', 'False', 'containers with unready status'),
      containerStatuses: [
        { name: 'a', state: { running: {} } },
        { name: 'b', state: { waiting: { reason, message: 'token=x' } } },
      ],
    });
    const pending = reporting('PodScheduled', 'False', 'no node');
    const pods = [
      pending,
      pending,
      waiting('ErrImagePull'),
      waiting('ContainerCreating'),
      reporting('Ready', 'True', ''),
    ];
    const failing = object(REPLICA_SETS, 'web-2', deployment, {
      status: {
        conditions: [
          ...reporting('Available', 'False', 'too few').conditions,
          ...reporting('ReplicaFailure', 'True', 'exceeded quota').conditions,
        ],
      },
    });
    const informers = [
      deployments,
      informer(REPLICA_SETS, replicaSet, failing),
      informer(PODS, ...pods.map((status, at) => web(at, status))),
    ];
    const query = new URLSearchParams({ resource: 'deployments.apps', key: 'default/web' });
    const page = objectPage({ informers: () => informers, events: () => [] });
    const { body = '' } = page.get('/debug/object')?.(query) ?? {};
    const report = JSON.parse(body) as ObjectReport;
    assert.deepEqual(report.ownedProblems, [
      'Pod default/pod-0 and 1 more: PodScheduled is False: no node',
      'Pod default/pod-2: container b: ErrImagePull: token=[redacted]',
      'Pod default/pod-3: containers with unready status',
      'ReplicaSet default/web-2: ReplicaFailure is True: exceeded quota',
    ]);
    assert.equal(report.tree.owned[0]?.owned[0]?.problem, 'PodScheduled is False: no node');
  });

  it('shows at most 200 objects, among them the selected one', () => {
    const many = Array.from({ length: 500 }, (_, at) =>
      object(PODS, `pod-${1000 + at}`, replicaSet),
    );
    const { report } = get('default/pod-1499', [informer(PODS, ...many)]);
    const { owned } = report.tree;
    assert.ok(owned.length <= 201 && owned.some(({ isSelected }) => isSelected));
    assert.equal(owned.length + report.omitted, 500);
  });

  it('shows the events of the objects in the tree, newest first', () => {
    const event = (uid: string, message: string) => ({ involvedObject: { uid }, message });
    const events = [event('b', 'old'), event('other', 'no'), event('web', 'password=hunter2')];
    assert.deepEqual(
      get('default/a', undefined, events).report.events.map(({ message }) => message),
      ['password=[redacted]', 'old'],
    );
  });

  it('masks the content of Secrets, credentials and environment variables', () => {
    const data = { data: { a: 'hunter2' }, stringData: { b: 'hunter2' }, type: 'Opaque' };
    const env = [
      { name: 'DB_PASSWORD', value: 'hunter2' },
      { name: 'HOME', value: '/' },
    ];
    const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': 'hunter2' };
    const secret = object(SECRETS, 'one', undefined, data);
    const pod = object(PODS, 'two', undefined, { spec: { apiKey: 'hunter2', env } });
    Object.assign(pod.metadata, { annotations, managedFields: [{ manager: 'hunter2' }] });
    const text = JSON.stringify([maskSecret(secret), maskSecret(pod)]);
    assert.ok(!text.includes('hunter2'), text);
    assert.match(text, /"type":"Opaque".*"name":"HOME","value":"\/"/);
  });
});
