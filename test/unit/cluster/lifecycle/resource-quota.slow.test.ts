import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import {
  CONFIG_MAPS,
  PERSISTENT_VOLUME_CLAIMS,
  PODS,
  RESOURCE_CLAIMS,
  RESOURCE_QUOTAS,
  SERVICES,
} from '../../../../src/api/builtin.ts';
import { isApiError } from '../../../../src/api/api-error.ts';
import { ClusterBench, NAMESPACE } from '../cluster-bench.ts';

describe('ResourceQuotas', () => {
  let bench: ClusterBench;
  beforeEach(async () => {
    bench = new ClusterBench();
    await bench.start({ controllers: ['resourcequota', 'scheduler', 'kubelet'] });
  });
  afterEach(() => bench.end());

  const createQuota = async (hard: object, rest: object = {}, name = 'quota') => {
    await bench.create(RESOURCE_QUOTAS, name, { spec: { hard, ...rest } });
    await bench.pass(1000);
  };
  const used = async (name = 'quota') => (await bench.get(RESOURCE_QUOTAS, name)).status?.used;
  const createPod = (name: string, resources: object = {}, spec: object = {}) =>
    bench.createPod(name, { containers: [{ name: 'app', image: 'nginx', resources }], ...spec });
  const deletePod = async (name: string) => {
    const at = { namespace: NAMESPACE, name };
    await bench.client.delete(PODS, at, { gracePeriodSeconds: 0 });
    await bench.pass(1000);
  };
  const refused = (why: string) => (error: unknown) =>
    isApiError(error, 'forbidden') && error.message.endsWith(`is forbidden: ${why}`);

  it('limit the claims of volume attributes classes', async () => {
    const quotas = { gold: ['In', ['gold']], others: ['NotIn', ['gold']], any: ['Exists', []] };
    for (const [name, [operator, values]] of Object.entries(quotas)) {
      const scope = { scopeName: 'VolumeAttributesClass', operator, values };
      const scopeSelector = { matchExpressions: [scope] };
      await createQuota({ persistentvolumeclaims: '9' }, { scopeSelector }, name);
    }
    for (const volumeAttributesClassName of ['gold', 'silver', undefined]) {
      await bench.create(PERSISTENT_VOLUME_CLAIMS, `${volumeAttributesClassName}`, {
        spec: {
          accessModes: ['ReadWriteOnce'],
          resources: { requests: { storage: '1Gi' } },
          ...(volumeAttributesClassName && { volumeAttributesClassName }),
        },
      });
    }
    await bench.pass(1000);
    const counts = { gold: '1', others: '2', any: '2' };
    for (const [name, count] of Object.entries(counts)) {
      assert.deepEqual(await used(name), { persistentvolumeclaims: count });
    }
  });

  it('limit ResourceClaims and the devices of their classes', async () => {
    const [small, large] = ['small', 'large'].map(
      (name) => `${name}.deviceclass.resource.k8s.io/devices`,
    ) as [string, string];
    const count = 'count/resourceclaims.resource.k8s.io';
    await createQuota({ [count]: '2', [small]: '5', [large]: '40' });
    assert.deepEqual(await used(), { [count]: '0', [small]: '0', [large]: '0' });
    const claim = (name: string, requests: object[]) =>
      bench.create(RESOURCE_CLAIMS, name, { spec: { devices: { requests } } });
    await claim('a', [
      { name: 'one', exactly: { deviceClassName: 'small' } },
      { name: 'all', exactly: { deviceClassName: 'large', allocationMode: 'All' } },
      {
        name: 'either',
        firstAvailable: [
          { name: 'two', deviceClassName: 'small', count: 2 },
          { name: 'three', deviceClassName: 'small', count: 3 },
        ],
      },
    ]);
    assert.deepEqual(await used(), { [count]: '1', [small]: '4', [large]: '32' });
    await assert.rejects(
      claim('b', [{ name: 'two', exactly: { deviceClassName: 'small', count: 2 } }]),
      refused(
        `exceeded quota: quota, requested: ${small}=2, used: ${small}=4, limited: ${small}=5`,
      ),
    );
    await bench.client.delete(RESOURCE_CLAIMS, { namespace: NAMESPACE, name: 'a' });
    await bench.pass(1000);
    assert.deepEqual(await used(), { [count]: '0', [small]: '0', [large]: '0' });
  });

  it('limit requests and limits, and count the next Pod at once', async () => {
    await createQuota({ pods: '2', 'requests.cpu': '1', 'limits.memory': '1Gi', cpu: '1' });
    assert.deepEqual(await used(), {
      pods: '0',
      'requests.cpu': '0',
      'limits.memory': '0',
      cpu: '0',
    });
    const resources = (cpu: string) => ({ requests: { cpu }, limits: { memory: '512Mi' } });
    await createPod('a', resources('600m'));
    assert.deepEqual(await used(), {
      pods: '1',
      'requests.cpu': '600m',
      'limits.memory': '512Mi',
      cpu: '600m',
    });
    await assert.rejects(
      createPod('b', resources('500m')),
      refused(
        'exceeded quota: quota, requested: cpu=500m,requests.cpu=500m, used: cpu=600m,requests.cpu=600m, limited: cpu=1,requests.cpu=1',
      ),
    );
    await assert.rejects(
      createPod('b'),
      refused(
        'failed quota: quota: must specify cpu for: app; limits.memory for: app; requests.cpu for: app',
      ),
    );
    await deletePod('a');
    assert.equal((await used())?.['pods'], '0');
    await createPod('b', resources('500m'));
  });

  it('are not counted again when admission counts a new Pod, because a list could miss it', async () => {
    await createQuota({ pods: '2' });
    const { requests } = bench.server;
    const lists = () => requests.count({ verb: 'list', resource: 'pods' });
    const before = lists();
    await createPod('web');
    await bench.pass(60_000);
    assert.deepEqual([await used(), lists() - before], [{ pods: '1' }, 0]);
  });

  it('ignore dry runs, and count no compute resources of Pods that have ended', async () => {
    await createQuota({ pods: '1', 'count/pods': '5' });
    const draft = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { namespace: NAMESPACE, name: 'tried' },
      spec: { containers: [{ name: 'app', image: 'nginx' }] },
    };
    await bench.client.create(PODS, draft, { dryRun: true });
    assert.equal((await used())?.['pods'], '0');
    const command = ['true'];
    const containers = [{ name: 'app', image: 'nginx', command }];
    await createPod('short', {}, { restartPolicy: 'Never', containers });
    assert.equal((await used())?.['pods'], '1');
    await bench.pass(2000);
    assert.deepEqual(await used(), { pods: '0', 'count/pods': '1' });
  });

  it('limit the Pods in their scope', async () => {
    await createQuota({ pods: '0' }, { scopes: ['BestEffort'] }, 'best-effort');
    await createQuota({ pods: '0' }, { scopes: ['Terminating'] }, 'terminating');
    const matchExpressions = [
      { scopeName: 'PriorityClass', operator: 'In', values: ['system-node-critical'] },
    ];
    await createQuota({ pods: '0' }, { scopeSelector: { matchExpressions } }, 'critical');
    const exceeded = (name: string) =>
      refused(`exceeded quota: ${name}, requested: pods=1, used: pods=0, limited: pods=0`);
    const resources = { requests: { cpu: '1m' } };
    await assert.rejects(createPod('a'), exceeded('best-effort'));
    await assert.rejects(
      createPod('a', resources, { activeDeadlineSeconds: 60 }),
      exceeded('terminating'),
    );
    await assert.rejects(
      createPod('a', resources, { priorityClassName: 'system-node-critical' }),
      exceeded('critical'),
    );
    await createPod('a', resources);
  });

  it('count objects of all kinds and node ports, also when a Service changes', async () => {
    await createQuota({
      'count/configmaps': '1',
      configmaps: '5',
      services: '5',
      'services.nodeports': '1',
    });
    await bench.create(CONFIG_MAPS, 'a');
    await bench.create(CONFIG_MAPS, 'a', { metadata: { namespace: 'kube-public' } });
    await assert.rejects(
      bench.create(CONFIG_MAPS, 'b'),
      refused(
        'exceeded quota: quota, requested: count/configmaps=1, used: count/configmaps=1, limited: count/configmaps=1',
      ),
    );
    const ports = [
      { name: 'a', port: 1 },
      { name: 'b', port: 2 },
    ];
    await bench.create(SERVICES, 'web', { spec: { ports } });
    await assert.rejects(
      bench.merge(SERVICES, 'web', { spec: { type: 'NodePort' } }),
      refused(
        'exceeded quota: quota, requested: services.nodeports=2, used: services.nodeports=0, limited: services.nodeports=1',
      ),
    );
    await bench.merge(SERVICES, 'web', { spec: { type: 'NodePort', ports: [{ port: 1 }] } });
    assert.equal((await used())?.['services.nodeports'], '1');
    await bench.merge(SERVICES, 'web', { spec: { type: 'ClusterIP' } });
    await bench.pass(1000);
    assert.equal((await used())?.['services.nodeports'], '0');
    await bench.client.delete(CONFIG_MAPS, { namespace: NAMESPACE, name: 'a' });
    await bench.pass(1000);
    assert.deepEqual(await used(), {
      'count/configmaps': '0',
      configmaps: '0',
      // Also the Service of the API server.
      services: '2',
      'services.nodeports': '0',
    });
  });

  it('reject objects until the usage is known, after a limit was added', async () => {
    await createQuota({ pods: '1' });
    const status = { hard: { pods: '1', secrets: '1' }, used: { secrets: '0', pods: null } };
    await bench.merge(RESOURCE_QUOTAS, 'quota', { status }, 'status');
    await assert.rejects(
      createPod('a'),
      refused('status unknown for quota: quota, resources: pods'),
    );
    await bench.pass(300_000);
    assert.deepEqual(await used(), { pods: '0' });
    await bench.merge(RESOURCE_QUOTAS, 'quota', { spec: { hard: { pods: '3' } } });
    await bench.pass(1000);
    assert.equal((await bench.get(RESOURCE_QUOTAS, 'quota')).status?.hard?.['pods'], '3');
  });
});
