import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { ENDPOINT_SLICES, ENDPOINTS, PODS, SERVICES } from '../../../../src/api/builtin.ts';
import type { EndpointSlice } from '../../../../src/api/builtin.ts';
import { controllerOf } from '../../../../src/api/metadata.ts';
import { planSlices } from '../../../../src/cluster/services/endpoint-slice.ts';
import { ClusterBench } from '../cluster-bench.ts';

const LABELS = { app: 'web' };

describe('The endpoint controllers', () => {
  let bench: ClusterBench;
  beforeEach(async () => {
    bench = new ClusterBench();
    await bench.start({ controllers: ['endpoints', 'endpointslice', 'endpointslice-mirroring'] });
    await bench.createNode('node-1', {
      metadata: { labels: { 'topology.kubernetes.io/zone': 'a' } },
    });
  });
  afterEach(() => bench.end());

  const createService = (spec: object = {}) =>
    bench.create(SERVICES, 'web', {
      metadata: { labels: { team: 'one' } },
      spec: { selector: LABELS, ports: [{ port: 80 }], ...spec },
    });
  /** Creates a Pod that runs; without a kubelet, tests set its status. */
  const createPod = async (name: string, ip: string, isReady: boolean, spec: object = {}) => {
    await bench.createPod(name, { nodeName: 'node-1', ...spec }, { labels: LABELS });
    const conditions = [{ type: 'Ready', status: isReady ? 'True' : 'False' }];
    const status = { phase: 'Running', podIP: ip, podIPs: [{ ip }], conditions };
    await bench.merge(PODS, name, { status }, 'status');
  };
  const slices = async () =>
    (await bench.list(ENDPOINT_SLICES)).toSorted((a, b) =>
      a.addressType < b.addressType ? -1 : 1,
    );
  const subsets = async () => (await bench.get(ENDPOINTS, 'web')).subsets ?? [];
  const endpoints = async () =>
    (await slices()).flatMap((slice) =>
      (slice.endpoints ?? []).map(({ addresses, conditions, hostname }) => ({
        address: addresses.join(),
        conditions,
        hostname,
      })),
    );

  const state = (address: string, conditions: object) => ({
    address,
    conditions,
    hostname: undefined,
  });

  it('report whether a Pod is ready, serving and terminating', async () => {
    await createService();
    await createPod('ready', '10.0.0.1', true);
    await createPod('starting', '10.0.0.2', false);
    await createPod('ending', '10.0.0.3', true, { terminationGracePeriodSeconds: 30 });
    await bench.client.delete(PODS, { namespace: 'default', name: 'ending' });
    await bench.pass(1000);
    const byAddress = (await endpoints()).toSorted((a, b) => (a.address < b.address ? -1 : 1));
    assert.deepEqual(byAddress, [
      state('10.0.0.1', { ready: true, serving: true, terminating: false }),
      state('10.0.0.2', { ready: false, serving: false, terminating: false }),
      state('10.0.0.3', { ready: false, serving: true, terminating: true }),
    ]);
    const [slice] = await slices();
    assert.deepEqual(slice?.metadata.labels, {
      team: 'one',
      'kubernetes.io/service-name': 'web',
      'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
    });
    assert.equal(slice.endpoints?.[0]?.zone, 'a');
    const [subset, ...others] = await subsets();
    assert.deepEqual(others, []);
    assert.deepEqual(
      [subset?.addresses, subset?.notReadyAddresses].map((all) => all?.map(({ ip }) => ip)),
      [['10.0.0.1'], ['10.0.0.2']],
    );
  });

  it('have no Pod that has ended, also if it was not ready', async () => {
    await createService();
    await createPod('web', '10.0.0.1', false);
    await bench.pass(1000);
    assert.equal((await endpoints()).length, 1);
    await bench.merge(PODS, 'web', { status: { phase: 'Failed' } }, 'status');
    await bench.pass(1000);
    assert.deepEqual([await endpoints(), await subsets()], [[], []]);
  });

  it('publish Pods that are not ready if the Service wants them', async () => {
    await createService({ publishNotReadyAddresses: true });
    await createPod('starting', '10.0.0.2', false);
    await bench.pass(1000);
    assert.deepEqual(await endpoints(), [
      state('10.0.0.2', { ready: true, serving: false, terminating: false }),
    ]);
    assert.equal((await subsets())[0]?.addresses?.length, 1);
  });

  it('publish hostnames for a headless Service without ports', async () => {
    await createService({ clusterIP: 'None', ports: [] });
    await createPod('web-0', '10.0.0.1', true, { hostname: 'web-0', subdomain: 'web' });
    await createPod('web-1', '10.0.0.2', true, { hostname: 'web-1', subdomain: 'other' });
    await bench.pass(1000);
    const hostnames = (await endpoints()).map(({ address, hostname }) => `${address} ${hostname}`);
    assert.deepEqual(hostnames.toSorted(), ['10.0.0.1 web-0', '10.0.0.2 undefined']);
    const [slice] = await slices();
    assert.equal(slice?.metadata.labels?.['service.kubernetes.io/headless'], '');
    assert.deepEqual(slice.ports ?? [], []);
    assert.equal((await subsets())[0]?.ports, undefined);
  });

  it('group Pods by the number of a named port', async () => {
    await createService({ ports: [{ name: 'http', port: 80, targetPort: 'web' }] });
    for (const [index, containerPort] of [8080, 9090, 8080].entries()) {
      const ports = [{ name: 'web', containerPort }];
      // The first port of a name counts.
      const more = { name: 'more', image: 'nginx', ports: [{ name: 'web', containerPort: 1 }] };
      const containers = [{ name: 'app', image: 'nginx', ports }, more];
      await createPod(`web-${index}`, `10.0.0.${index}`, true, { containers });
    }
    await bench.pass(1000);
    const grouped = (await slices()).map((slice) => [
      slice.ports?.[0]?.port,
      slice.endpoints?.length,
    ]);
    assert.deepEqual(
      grouped.toSorted(([a = 0], [b = 0]) => a - b),
      [
        [8080, 2],
        [9090, 1],
      ],
    );
    assert.equal((await subsets()).length, 2);
  });

  it('keep one empty slice without Pods, and follow the labels of the Service', async () => {
    await createService();
    await bench.pass(1000);
    const [empty] = await slices();
    assert.ok(empty);
    assert.deepEqual(empty.endpoints ?? [], []);
    await createPod('web', '10.0.0.1', true);
    await bench.pass(1000);
    await bench.merge(SERVICES, 'web', { metadata: { labels: { team: 'two' } } });
    await bench.pass(1000);
    assert.equal((await bench.get(ENDPOINTS, 'web')).metadata.labels?.['team'], 'two');
    const [slice, ...others] = await slices();
    assert.equal(slice?.metadata.name, empty.metadata.name);
    assert.equal(slice.metadata.labels?.['team'], 'two');
    assert.deepEqual(others, []);
  });

  it('restore a deleted slice, and leave Services without a selector alone', async () => {
    await createService();
    await bench.create(SERVICES, 'manual', { spec: { ports: [{ port: 80 }] } });
    await bench.pass(1000);
    const [slice] = await slices();
    await bench.client.delete(ENDPOINT_SLICES, slice!.metadata);
    await bench.client.delete(ENDPOINTS, { namespace: 'default', name: 'web' });
    await bench.pass(1000);
    const names = (await slices()).map(({ metadata }) => metadata.generateName);
    assert.deepEqual(names, ['web-']);
    const all = (await bench.list(ENDPOINTS)).map(({ metadata }) => metadata.name);
    assert.deepEqual(all, ['web']);
  });

  it('replace a slice of an earlier Service, and create none for one that is being deleted', async () => {
    const labels = {
      'kubernetes.io/service-name': 'web',
      'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
    };
    const owner = { apiVersion: 'v1', kind: 'Service', name: 'web', uid: 'former' };
    const metadata = { labels, ownerReferences: [owner] };
    await bench.create(ENDPOINT_SLICES, 'former', { metadata, addressType: 'IPv4', endpoints: [] });
    const service = await createService();
    await bench.pass(1000);
    const [slice, ...others] = await slices();
    assert.deepEqual(others, []);
    assert.equal(controllerOf(slice!)?.uid, service.metadata.uid);
    await bench.merge(SERVICES, 'web', { metadata: { finalizers: ['example.com/hold'] } });
    await bench.client.delete(SERVICES, service.metadata);
    await bench.client.delete(ENDPOINT_SLICES, slice!.metadata);
    await bench.pass(1000);
    assert.deepEqual(await slices(), []);
  });

  it('publish terminating Pods if the Service wants those that are not ready, and end with the Service', async () => {
    const service = await createService({ publishNotReadyAddresses: true });
    await createPod('ending', '10.0.0.3', true, { terminationGracePeriodSeconds: 30 });
    await bench.client.delete(PODS, { namespace: 'default', name: 'ending' });
    await bench.pass(1000);
    assert.deepEqual(
      (await subsets()).map(({ addresses }) => addresses?.map(({ ip }) => ip)),
      [['10.0.0.3']],
    );
    await bench.client.delete(SERVICES, service.metadata);
    await bench.pass(1000);
    assert.deepEqual(await bench.list(ENDPOINTS), []);
  });

  it('copy Endpoints without their own annotations, at most 1000 addresses of a subset', async () => {
    await createService({ selector: null });
    const addresses = Array.from({ length: 600 }, (_, index) => ({
      ip: `10.0.${index >> 8}.${index & 255}`,
    }));
    const notReadyAddresses = addresses.map(({ ip }) => ({ ip: ip.replace('10.', '11.') }));
    const annotations = {
      'endpoints.kubernetes.io/last-change-trigger-time': '2026-01-01T00:00:00Z',
      'kubectl.kubernetes.io/last-applied-configuration': '{}',
      kept: 'yes',
    };
    await bench.create(ENDPOINTS, 'web', {
      metadata: { annotations },
      subsets: [{ addresses, notReadyAddresses, ports: [{ port: 80 }] }],
    });
    await bench.pass(1000);
    const [slice, ...others] = await slices();
    assert.deepEqual(others, []);
    assert.deepEqual(slice?.metadata.annotations, { kept: 'yes' });
    const ready = slice?.endpoints?.filter(({ conditions }) => conditions?.ready).length;
    assert.deepEqual([slice?.endpoints?.length, ready], [1000, 600]);
  });
});

describe('planSlices', () => {
  const ports = [{ name: '', port: 80, protocol: 'TCP' as const }];
  const served = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, index) => {
      const uid = String(from + index);
      return { ports, endpoint: { addresses: [uid], targetRef: { uid } } };
    });
  const sliceOf = (name: string, from: number, to: number) =>
    ({
      metadata: { name },
      ports,
      addressType: 'IPv4',
      endpoints: served(from, to).map(({ endpoint }) => endpoint),
    }) as unknown as EndpointSlice;
  const sizes = (from: number, to: number, existing: readonly EndpointSlice[]) =>
    planSlices(served(from, to), existing).map(({ slice, endpoints }) => [
      slice?.metadata.name,
      endpoints.length,
    ]);

  it('creates slices of at most 100 endpoints', () => {
    assert.deepEqual(sizes(0, 250, []), [
      [undefined, 100],
      [undefined, 100],
      [undefined, 50],
    ]);
  });

  it('keeps endpoints in their slices and fills a slice that changes anyway', () => {
    const existing = [sliceOf('full', 0, 100), sliceOf('changed', 100, 160)];
    assert.deepEqual(sizes(20, 170, existing), [
      ['full', 90],
      ['changed', 60],
    ]);
  });

  it('fills an unchanged slice only if it has room for all new endpoints', () => {
    const existing = [sliceOf('large', 0, 95), sliceOf('small', 100, 150)];
    assert.deepEqual(sizes(0, 95, existing).length, 1);
    const desired = [...served(0, 95), ...served(100, 160)];
    assert.deepEqual(
      planSlices(desired, existing).map(({ endpoints }) => endpoints.length),
      [95, 60],
    );
  });

  it('reuses a slice that would be deleted', () => {
    assert.deepEqual(sizes(200, 210, [sliceOf('old', 0, 10)]), [['old', 10]]);
    assert.deepEqual(sizes(0, 0, [sliceOf('old', 0, 10), sliceOf('older', 10, 20)]), [
      ['older', 0],
    ]);
  });
});
