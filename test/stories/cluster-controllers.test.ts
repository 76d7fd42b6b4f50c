import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import {
  CLUSTER_ROLES,
  CONFIG_MAPS,
  CONTROLLER_REVISIONS,
  DAEMON_SETS,
  DEPLOYMENTS,
  ENDPOINTS,
  ENDPOINT_SLICES,
  EVENTS,
  JOBS,
  NAMESPACES,
  PERSISTENT_VOLUME_CLAIMS,
  PODS,
  POD_DISRUPTION_BUDGETS,
  REPLICA_SETS,
  RESOURCE_QUOTAS,
  SERVICES,
  SERVICE_ACCOUNTS,
  STATEFUL_SETS,
} from '../../src/api/builtin.ts';
import type { ReplicaSet } from '../../src/api/builtin.ts';
import { controllerOf } from '../../src/api/metadata.ts';
import type { Draft, KubernetesObject } from '../../src/api/object.ts';
import { objectPath } from '../../src/api/resource.ts';
import type { Resource } from '../../src/api/resource.ts';
import type { TestCluster } from '../support/test-cluster.ts';
import { inTestClusters } from '../support/test-clusters.ts';

const LABELS = { app: 'web' };
const REPLICATION_CONTROLLERS: Resource<ReplicaSet> = {
  ...REPLICA_SETS,
  group: '',
  plural: 'replicationcontrollers',
  kind: 'ReplicationController',
};

inTestClusters((where, createCluster) => {
  describe(`${where}: the controllers of a cluster`, () => {
    let cluster: TestCluster;
    beforeEach(async () => {
      cluster = await createCluster();
    });
    afterEach(() => cluster.end());

    const at = (name: string) => ({ namespace: cluster.namespace, name });
    const create = <T extends KubernetesObject>(
      resource: Resource<T>,
      name: string,
      rest: object = {},
      metadata: object = {},
    ) =>
      cluster.client.create(resource, {
        apiVersion: resource.group ? `${resource.group}/${resource.version}` : resource.version,
        kind: resource.kind,
        metadata: { ...at(name), ...metadata },
        ...rest,
      } as Draft<T>);
    const container = { name: 'app', image: 'nginx' };
    const workload = (replicas: number) => ({
      spec: {
        replicas,
        selector: { matchLabels: LABELS },
        template: { metadata: { labels: LABELS }, spec: { containers: [container] } },
      },
    });
    const isGone = async (resource: Resource, name: string) => {
      const { items } = await cluster.client.list(resource, { namespace: cluster.namespace });
      return !items.some(({ metadata }) => metadata.name === name);
    };
    const eventsAbout = async (kind: string) => {
      const { items } = await cluster.client.list(EVENTS, { namespace: cluster.namespace });
      return items
        .filter(({ involvedObject }) => involvedObject.kind === kind)
        .map(({ reason, message }) => `${reason} ${message}`);
    };

    it('delete a circle of owners in the foreground', async () => {
      const first = await create(CONFIG_MAPS, 'first');
      const owner = ({ metadata }: KubernetesObject) => ({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        name: metadata.name,
        uid: metadata.uid,
        blockOwnerDeletion: true,
      });
      const ownerReferences = [owner(first)];
      const second = await create(CONFIG_MAPS, 'second', {}, { ownerReferences });
      const body = { metadata: { ownerReferences: [owner(second)] } };
      await cluster.client.patch(CONFIG_MAPS, at('first'), { type: 'merge', body });
      await cluster.pass(1000);
      await cluster.client.delete(CONFIG_MAPS, at('first'), { propagationPolicy: 'Foreground' });
      await cluster.until('both are gone', async () => {
        return (await isGone(CONFIG_MAPS, 'first')) && (await isGone(CONFIG_MAPS, 'second'));
      });
    });

    it('delete an object whose owner reference does not have the kind, namespace, name and uid of the owner', async () => {
      const owner = await create(CONFIG_MAPS, 'owner');
      const elsewhere = await cluster.client.create(CONFIG_MAPS, {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { namespace: 'kube-system', name: `owner-${cluster.namespace}` },
      });
      const replaced = await create(CONFIG_MAPS, 'replaced');
      await cluster.pass(1000);
      await cluster.client.delete(CONFIG_MAPS, at('replaced'));
      await create(CONFIG_MAPS, 'replaced');
      await cluster.pass(1000);
      const to = ({ metadata: { name, uid } }: KubernetesObject, other: object = {}) => ({
        ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name, uid, ...other }],
      });
      const rows: Record<string, { metadata: object; isKept: boolean }> = {
        right: { metadata: to(owner), isKept: true },
        'other-namespace': { metadata: to(elsewhere), isKept: false },
        'other-kind': { metadata: to(owner, { kind: 'Secret' }), isKept: false },
        'other-name': { metadata: to(owner, { name: 'other' }), isKept: false },
        'other-uid': { metadata: to(owner, { uid: 'none' }), isKept: false },
        'unknown-kind': { metadata: to(owner, { kind: 'Unknown' }), isKept: true },
        'other-version': { metadata: to(owner, { apiVersion: 'v9' }), isKept: true },
        'replaced-owner': { metadata: to(replaced), isKept: false },
      };
      for (const [name, { metadata }] of Object.entries(rows)) {
        await create(SERVICE_ACCOUNTS, name, {}, metadata);
      }
      const role = `owned-${cluster.namespace}`;
      await cluster.client.create(CLUSTER_ROLES, {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRole',
        metadata: { name: role, ...to(elsewhere) },
        rules: [],
      });
      const kept = Object.keys(rows).filter((name) => rows[name]?.isKept);
      const present = async () => {
        const list = await cluster.client.list(SERVICE_ACCOUNTS, { namespace: cluster.namespace });
        return list.items.map(({ metadata }) => metadata.name).filter((name) => rows[name]);
      };
      await cluster.until('the others are deleted', async () => {
        return (await present()).length === kept.length;
      });
      await cluster.client.delete(CONFIG_MAPS, elsewhere.metadata);
      const reported = async (namespace: string, name: string) => {
        const { items } = await cluster.client.list(EVENTS, { namespace });
        return items.find(({ involvedObject }) => involvedObject.name === name);
      };
      for (const [namespace, about, name] of [
        [cluster.namespace, cluster.namespace, 'other-namespace'],
        ['default', '', role],
      ] as const) {
        await cluster.until(
          `an event about ${name}`,
          async () => !!(await reported(namespace, name)),
        );
        const event = await reported(namespace, name);
        const { name: owner, uid } = elsewhere.metadata;
        const identity = `[v1/ConfigMap, namespace: ${about}, name: ${owner}, uid: ${uid}]`;
        assert.equal(event?.message, `ownerRef ${identity} does not exist in namespace "${about}"`);
        assert.equal(event.reason, 'OwnerRefInvalidNamespace');
        assert.equal(event.source?.component, 'garbage-collector-controller');
      }
      await cluster.pass(3000);
      assert.deepEqual((await present()).sort(), kept.sort());
      await cluster.client.delete(CLUSTER_ROLES, { name: role });
    });

    it('let a ReplicaSet adopt a Pod, and release it when its labels change', async () => {
      await create(PODS, 'orphan', { spec: { containers: [container] } }, { labels: LABELS });
      const { metadata } = await create(REPLICA_SETS, 'web', workload(1));
      const orphan = () => cluster.client.get(PODS, at('orphan'));
      await cluster.until('the Pod is adopted', async () => {
        return controllerOf(await orphan())?.uid === metadata.uid;
      });
      const body = { metadata: { labels: { app: 'debug' } } };
      await cluster.client.patch(PODS, at('orphan'), { type: 'merge', body });
      // A controller whose cache was late has one more Pod for a while.
      await cluster.until('the Pod is released and replaced', async () => {
        return controllerOf(await orphan()) === undefined && (await cluster.pods()).length === 2;
      });
      assert.ok(
        (await eventsAbout('ReplicaSet')).some((text) => text.startsWith('SuccessfulCreate')),
      );
    });

    it('keep the progress of a Deployment that is scaled after its rollout', async () => {
      await create(DEPLOYMENTS, 'web', workload(1));
      const progress = async () => {
        const { status } = await cluster.client.get(DEPLOYMENTS, at('web'));
        return status?.conditions?.find(({ type }) => type === 'Progressing');
      };
      await cluster.until('the rollout is complete', async () => {
        return (await progress())?.reason === 'NewReplicaSetAvailable';
      });
      const before = await progress();
      await cluster.pass(2000);
      const body = { spec: { replicas: 3 } };
      await cluster.client.patch(DEPLOYMENTS, at('web'), { type: 'merge', body });
      await cluster.until('all Pods are available', async () => {
        const { status } = await cluster.client.get(DEPLOYMENTS, at('web'));
        return status?.availableReplicas === 3;
      });
      assert.deepEqual(await progress(), before);
      const { status } = await cluster.client.get(DEPLOYMENTS, at('web'));
      // A condition that changes becomes the last one.
      const types = status?.conditions?.map(({ type }) => type);
      assert.deepEqual(types, ['Progressing', 'Available']);
    });

    it('protect the Pods of a Deployment by a budget, and record events', async () => {
      await create(DEPLOYMENTS, 'web', workload(2));
      await create(POD_DISRUPTION_BUDGETS, 'web', {
        spec: { maxUnavailable: 1, selector: { matchLabels: LABELS } },
      });
      await cluster.until('the budget has a status', async () => {
        const { status } = await cluster.client.get(POD_DISRUPTION_BUDGETS, at('web'));
        return status?.disruptionsAllowed === 1 && status.expectedPods === 2;
      });
      const { status } = await cluster.client.get(POD_DISRUPTION_BUDGETS, at('web'));
      assert.deepEqual(
        status?.conditions?.map(({ type, status, reason }) => [type, status, reason]),
        [['DisruptionAllowed', 'True', 'SufficientPods']],
      );
      const evict = (name: string) =>
        cluster.client.raw({
          method: 'POST',
          path: objectPath(PODS, at(name), 'eviction'),
          body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: at(name) },
        });
      const [first, second] = await cluster.podNames();
      await evict(first!);
      const body = { spec: { maxUnavailable: 0 } };
      await cluster.client.patch(POD_DISRUPTION_BUDGETS, at('web'), { type: 'merge', body });
      await cluster.until('the budget allows no disruption', async () => {
        const { metadata, status } = await cluster.client.get(POD_DISRUPTION_BUDGETS, at('web'));
        return (
          status?.observedGeneration === metadata.generation && status?.disruptionsAllowed === 0
        );
      });
      await assert.rejects(evict(second!), { kind: 'tooManyRequests' });
      // Controllers record events asynchronously.
      await cluster.until('the event of the Deployment', async () =>
        (await eventsAbout('Deployment')).some((text) =>
          /^ScalingReplicaSet Scaled up replica set web-\w+ from 0 to 2$/.test(text),
        ),
      );
      await cluster.until('the event of the scheduler', async () =>
        (await eventsAbout('Pod')).some((text) => text.startsWith('Scheduled Successfully')),
      );
    });

    it('write to a Deployment and its objects what kubectl and other clients read', async () => {
      // Its Pods are not scheduled, so that one that is deleted waits for its finalizer alone.
      const { spec } = workload(2);
      const podSpec = { ...spec.template.spec, schedulerName: 'none' };
      const template = { ...spec.template, spec: podSpec };
      await create(DEPLOYMENTS, 'web', { spec: { ...spec, template } });
      const { client, namespace } = cluster;
      const replicaSet = async () => (await client.list(REPLICA_SETS, { namespace })).items[0];
      const sizes = async () => {
        const { annotations = {} } = (await replicaSet())?.metadata ?? {};
        return ['desired', 'max'].map(
          (name) => annotations[`deployment.kubernetes.io/${name}-replicas`],
        );
      };
      const areTerminating = (count: number) =>
        cluster.until(`${count} Pods are terminating`, async () => {
          const { status } = await client.get(DEPLOYMENTS, at('web'));
          const { terminatingReplicas } = (await replicaSet())?.status ?? {};
          return status?.terminatingReplicas === count && terminatingReplicas === count;
        });
      await areTerminating(0);
      assert.deepEqual(await sizes(), ['2', '3']);
      const merge = (body: object) => ({ type: 'merge', body }) as const;
      await client.patch(DEPLOYMENTS, at('web'), merge({ spec: { replicas: 4 } }));
      await cluster.until('the sizes are annotated', async () => (await sizes())[1] === '5');
      assert.deepEqual(await sizes(), ['4', '5']);
      const [name = ''] = await cluster.podNames();
      await client.patch(PODS, at(name), merge({ metadata: { finalizers: ['example.com/hold'] } }));
      await client.delete(PODS, at(name));
      await areTerminating(1);
      await client.patch(PODS, at(name), merge({ metadata: { finalizers: null } }));
      await areTerminating(0);
      const [pod = ''] = await cluster.podNames();
      const { metadata = at('') } = (await replicaSet()) ?? {};
      for (const path of [
        objectPath(DEPLOYMENTS, at('web')),
        objectPath(REPLICA_SETS, metadata),
        objectPath(PODS, at(pod)),
      ]) {
        const text = JSON.stringify(await client.raw({ path }));
        assert.match(text, /"manager":"kube-controller-manager"/, path);
      }
    });

    it('leave a Pod pending that fits on no node', async () => {
      const spec = { containers: [container], nodeSelector: { disk: 'ssd' } };
      await create(PODS, 'web', { spec });
      const condition = async () => {
        const { status } = await cluster.client.get(PODS, at('web'));
        return status?.conditions?.find(({ type }) => type === 'PodScheduled');
      };
      await cluster.until('an attempt', async () =>
        ((await condition())?.message ?? '').startsWith('0/1'),
      );
      assert.equal((await condition())?.reason, 'Unschedulable');
      const message =
        /^0\/1 nodes are available: 1 node\(s\) didn't match Pod's node affinity\/selector\. .*preemption: 0\/1 nodes are available: 1 Preemption is not helpful for scheduling\.$/;
      assert.match((await condition())?.message ?? '', message);
      await cluster.until('the event', async () => {
        return (await eventsAbout('Pod')).some((text) => text.startsWith('FailedScheduling 0/1'));
      });
    });

    it('publish the endpoints of a Service until it is deleted', async () => {
      const ports = [{ name: 'http', containerPort: 8080 }];
      const template = {
        metadata: { labels: LABELS },
        spec: { containers: [{ ...container, ports }] },
      };
      const selector = { matchLabels: LABELS };
      await create(DEPLOYMENTS, 'web', { spec: { replicas: 2, selector, template } });
      const servicePorts = [{ name: 'web', port: 80, targetPort: 'http' }];
      const { metadata } = await create(SERVICES, 'web', {
        spec: { selector: LABELS, ports: servicePorts },
      });
      const slices = async () => {
        const { items } = await cluster.client.list(ENDPOINT_SLICES, {
          namespace: cluster.namespace,
          labelSelector: 'kubernetes.io/service-name=web',
        });
        return items;
      };
      await cluster.until('two Pods are ready', async () => {
        const all = (await slices()).flatMap(({ endpoints }) => endpoints ?? []);
        return all.filter(({ conditions }) => conditions?.ready).length === 2;
      });
      const [slice, ...others] = await slices();
      assert.equal(others.length, 0);
      assert.deepEqual(slice?.ports, [{ name: 'web', port: 8080, protocol: 'TCP' }]);
      assert.deepEqual(
        slice.metadata.ownerReferences?.map(({ uid, kind }) => [uid, kind]),
        [[metadata.uid, 'Service']],
      );
      const addresses = slice.endpoints?.flatMap((endpoint) => endpoint.addresses).toSorted();
      assert.equal(new Set(addresses).size, 2);
      await cluster.until('the Endpoints have the same addresses', async () => {
        const { items } = await cluster.client.list(ENDPOINTS, { namespace: cluster.namespace });
        const ips = items.flatMap(({ subsets = [] }) => subsets[0]?.addresses ?? []);
        return (
          ips
            .map(({ ip }) => ip)
            .toSorted()
            .join() === addresses?.join()
        );
      });
      await cluster.client.delete(SERVICES, at('web'));
      await cluster.until('the endpoints are gone', async () => {
        return (await slices()).length === 0 && (await isGone(ENDPOINTS, 'web'));
      });
    });

    it('copy the Endpoints of a Service without a selector to slices', async () => {
      const first = { ip: '10.1.0.1', hostname: 'a', nodeName: 'node-1' };
      const other = { ip: '10.1.0.2' };
      const ports = [{ name: 'http', port: 80, protocol: 'TCP' }];
      const annotations = {
        note: 'kept',
        'kubectl.kubernetes.io/last-applied-configuration': '{}',
      };
      const subsets = [
        { addresses: [first], notReadyAddresses: [other], ports },
        { addresses: [{ ip: '2001:db8::1' }], ports },
      ];
      await create(SERVICES, 'web', { spec: { ports: [{ port: 80 }] } });
      const of = { labels: { team: 'one' }, annotations };
      const made = await create(ENDPOINTS, 'web', { subsets }, of);
      const slices = async () => {
        const { items } = await cluster.client.list(ENDPOINT_SLICES, {
          namespace: cluster.namespace,
        });
        return items.toSorted((a, b) => (a.addressType < b.addressType ? -1 : 1));
      };
      await cluster.until('there are two slices', async () => (await slices()).length === 2);
      const [four = assert.fail(), six = assert.fail()] = await slices();
      assert.deepEqual([four.addressType, six.addressType], ['IPv4', 'IPv6']);
      const managedBy = 'endpointslicemirroring-controller.k8s.io';
      assert.deepEqual(four.metadata.labels, {
        team: 'one',
        'kubernetes.io/service-name': 'web',
        'endpointslice.kubernetes.io/managed-by': managedBy,
      });
      assert.deepEqual(four.metadata.annotations, { note: 'kept' });
      assert.equal(controllerOf(four)?.uid, made.metadata.uid);
      assert.deepEqual(four.ports, ports);
      assert.deepEqual(
        four.endpoints?.toSorted((a, b) => (String(a.addresses) < String(b.addresses) ? -1 : 1)),
        [
          {
            addresses: ['10.1.0.1'],
            conditions: { ready: true },
            hostname: 'a',
            nodeName: 'node-1',
          },
          { addresses: ['10.1.0.2'], conditions: { ready: false } },
        ],
      );
      const change = (body: object) =>
        cluster.client.patch(ENDPOINTS, at('web'), { type: 'merge', body });
      await change({
        metadata: { annotations: { note: 'new' } },
        subsets: [{ addresses: [other], ports }],
      });
      await cluster.until('the slice has the new address', async () => {
        const [slice, ...more] = await slices();
        const isNew = slice?.metadata.annotations?.['note'] === 'new' && more.length === 0;
        return isNew && slice.metadata.uid === four.metadata.uid && slice.endpoints?.length === 1;
      });
      const skip = { 'endpointslice.kubernetes.io/skip-mirror': 'true' }; // words-ok
      await change({ metadata: { labels: skip } });
      await cluster.until('the slices are gone', async () => (await slices()).length === 0);
    });

    it('limit the Pods of a namespace by a quota', async () => {
      await create(RESOURCE_QUOTAS, 'few', { spec: { hard: { pods: '1' } } });
      const used = async () => {
        const { status } = await cluster.client.get(RESOURCE_QUOTAS, at('few'));
        return status?.used?.['pods'];
      };
      await cluster.until('the usage is known', async () => (await used()) === '0');
      // A kube-apiserver reads quotas from a cache.
      await cluster.pass(500);
      await create(PODS, 'one', { spec: { containers: [container] } });
      await assert.rejects(create(PODS, 'two', { spec: { containers: [container] } }), {
        kind: 'forbidden',
        message:
          /pods "two" is forbidden: exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1$/,
      });
      await cluster.client.delete(PODS, at('one'));
      await cluster.until('the Pod is not counted', async () => (await used()) === '0');
    });

    it('give each namespace a ServiceAccount and the CA certificate', async () => {
      const { client } = cluster;
      const uid = async () => {
        const { items } = await client.list(SERVICE_ACCOUNTS, { namespace: cluster.namespace });
        return items.find(({ metadata }) => metadata.name === 'default')?.metadata.uid;
      };
      await cluster.until('the ServiceAccount', async () => (await uid()) !== undefined);
      const before = await uid();
      await client.delete(SERVICE_ACCOUNTS, at('default'));
      await cluster.until('another ServiceAccount', async () => {
        return ![before, undefined].includes(await uid());
      });
      const certificate = async () => {
        const { items } = await client.list(CONFIG_MAPS, { namespace: cluster.namespace });
        return items.find(({ metadata }) => metadata.name === 'kube-root-ca.crt')?.data?.['ca.crt'];
      };
      await cluster.until('the certificate', async () => (await certificate()) !== undefined);
      const expected = await certificate();
      const body = { data: { 'ca.crt': 'changed' } };
      await client.patch(CONFIG_MAPS, at('kube-root-ca.crt'), { type: 'merge', body });
      await cluster.until('it is restored', async () => (await certificate()) === expected);
    });

    it('suspend a Job without counting its Pods as failed, and resume it', async () => {
      const template = { spec: { restartPolicy: 'Never', containers: [container] } };
      await create(JOBS, 'held', { spec: { backoffLimit: 0, template } });
      const status = async () => (await cluster.client.get(JOBS, at('held'))).status;
      const suspend = (is: boolean) =>
        cluster.client.patch(JOBS, at('held'), { type: 'merge', body: { spec: { suspend: is } } });
      await cluster.until('the Job has a Pod', async () => (await status())?.ready === 1);
      await suspend(true);
      await cluster.until('its Pod is gone', async () => (await cluster.pods()).length === 0);
      await suspend(false);
      await cluster.until('the Job has a Pod again', async () => (await status())?.ready === 1);
      const { failed, conditions } = (await status()) ?? {};
      assert.equal(failed, undefined);
      assert.deepEqual(
        conditions?.map(({ type, status, reason }) => [type, status, reason]),
        [['Suspended', 'False', 'JobResumed']],
      );
    });

    it('suspend an Indexed Job without counting a Pod that succeeds while it is deleted', async () => {
      const template = { spec: { restartPolicy: 'Never', containers: [container] } };
      const spec = { completionMode: 'Indexed', completions: 1, parallelism: 1, template };
      await create(JOBS, 'indexed', { spec });
      const job = () => cluster.client.get(JOBS, at('indexed'));
      await cluster.until('the Job has a Pod', async () => (await job()).status?.ready === 1);
      const [pod] = await cluster.pods();
      assert.ok(pod);
      const finalizers = [...(pod.metadata.finalizers ?? []), 'example.com/kept'];
      await cluster.client.patch(PODS, pod.metadata, {
        type: 'merge',
        body: { metadata: { finalizers } },
      });
      await cluster.client.patch(JOBS, at('indexed'), {
        type: 'merge',
        body: { spec: { suspend: true } },
      });
      await cluster.until('its Pod is deleted', async () => {
        const [kept] = await cluster.pods();
        return kept?.metadata.deletionTimestamp !== undefined;
      });
      await cluster.client.patch(
        PODS,
        pod.metadata,
        { type: 'merge', body: { status: { phase: 'Succeeded' } } },
        { subresource: 'status' },
      );
      await cluster.pass(1000);
      const reasons = new Set((await eventsAbout('Job')).map((text) => text.split(' ')[0]));
      assert.deepEqual(reasons, new Set(['SuccessfulCreate', 'SuccessfulDelete', 'Suspended']));
    });

    it('complete a Job', async () => {
      const template = {
        spec: { restartPolicy: 'Never', containers: [{ ...container, command: ['echo', 'YAY'] }] },
      };
      await create(JOBS, 'job', { spec: { completions: 2, template } });
      await cluster.until('the Job is complete', async () => {
        const { status } = await cluster.client.get(JOBS, at('job'));
        return status?.conditions?.some(({ type }) => type === 'Complete') ?? false;
      });
      const { status } = await cluster.client.get(JOBS, at('job'));
      assert.equal(status?.succeeded, 2);
      assert.deepEqual(
        status.conditions?.map(({ type, status, reason, message }) => [
          type,
          status,
          reason,
          message,
        ]),
        ['SuccessCriteriaMet', 'Complete'].map((type) => [
          type,
          'True',
          'CompletionsReached',
          'Reached expected number of succeeded pods',
        ]),
      );
    });

    it('replace the Pods of a StatefulSet from the highest ordinal to the partition', async () => {
      const { spec } = workload(2);
      await create(STATEFUL_SETS, 'web', { spec: { ...spec, serviceName: 'web' } });
      const set = () => cluster.client.get(STATEFUL_SETS, at('web'));
      await cluster.until('all Pods are available', async () => {
        return (await set()).status?.availableReplicas === 2;
      });
      const first = (await set()).status?.currentRevision;
      const { metadata, spec: podSpec } = await cluster.client.get(PODS, at('web-1'));
      assert.deepEqual(metadata.labels, {
        ...LABELS,
        'statefulset.kubernetes.io/pod-name': 'web-1',
        'apps.kubernetes.io/pod-index': '1',
        'controller-revision-hash': first,
      });
      assert.deepEqual([podSpec?.hostname, podSpec?.subdomain], ['web-1', 'web']);
      const body = {
        spec: {
          template: { metadata: { annotations: { version: '2' } } },
          updateStrategy: { rollingUpdate: { partition: 1 } },
        },
      };
      await cluster.client.patch(STATEFUL_SETS, at('web'), { type: 'merge', body });
      await cluster.until('the Pod above the partition is replaced', async () => {
        const { status } = await set();
        return status?.updatedReplicas === 1 && status.availableReplicas === 2;
      });
      const { updateRevision, ...status } = (await set()).status!;
      assert.deepEqual(status, {
        observedGeneration: 2,
        replicas: 2,
        readyReplicas: 2,
        availableReplicas: 2,
        currentReplicas: 1,
        updatedReplicas: 1,
        currentRevision: first,
        collisionCount: 0,
      });
      const { items } = await cluster.client.list(CONTROLLER_REVISIONS, {
        namespace: cluster.namespace,
      });
      assert.deepEqual(
        items
          .toSorted((a, b) => a.revision - b.revision)
          .map((revision) => [revision.metadata.name, revision.revision]),
        [
          [first, 1],
          [updateRevision, 2],
        ],
      );
      // kubectl compares the text with that of Go, whose members are sorted.
      const text = JSON.stringify(items[0]?.data);
      assert.match(text, /^\{"spec":\{"template":\{"\$patch":"replace","metadata":/);
      await cluster.until('the events', async () => {
        const events = await eventsAbout('StatefulSet');
        return ['Create', 'Delete'].every((verb) =>
          events.includes(`Successful${verb} ${verb} Pod web-1 in StatefulSet web successful`),
        );
      });
    });

    it('own the claims of a StatefulSet as its retention policy says', async () => {
      const { spec } = workload(2);
      await create(STATEFUL_SETS, 'web', {
        spec: {
          ...spec,
          podManagementPolicy: 'Parallel',
          persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Delete', whenScaled: 'Delete' },
          volumeClaimTemplates: [
            {
              metadata: { name: 'data' },
              spec: {
                accessModes: ['ReadWriteOnce'],
                resources: { requests: { storage: '1Mi' } },
              },
            },
          ],
        },
      });
      const owners = async () => {
        const { items } = await cluster.client.list(PERSISTENT_VOLUME_CLAIMS, {
          namespace: cluster.namespace,
        });
        return items.map(({ metadata }) => [metadata.name, controllerOf({ metadata })?.kind]);
      };
      await cluster.until('the set owns both claims', async () => {
        return (await owners()).filter(([, kind]) => kind === 'StatefulSet').length === 2;
      });
    });

    it('run a Pod of a DaemonSet on the node, and replace it', async () => {
      const { selector, template } = workload(1).spec;
      await create(DAEMON_SETS, 'web', { spec: { selector, template } });
      const status = async () => (await cluster.client.get(DAEMON_SETS, at('web'))).status;
      await cluster.until('the Pod is available', async () => {
        return (await status())?.numberAvailable === 1;
      });
      assert.deepEqual(await status(), {
        observedGeneration: 1,
        desiredNumberScheduled: 1,
        currentNumberScheduled: 1,
        updatedNumberScheduled: 1,
        numberMisscheduled: 0,
        numberReady: 1,
        numberAvailable: 1,
      });
      const [pod] = await cluster.pods();
      const keys = pod?.spec?.tolerations?.map(({ key, effect }) => `${key} ${effect}`);
      assert.deepEqual(keys?.toSorted(), [
        'node.kubernetes.io/disk-pressure NoSchedule',
        'node.kubernetes.io/memory-pressure NoSchedule',
        'node.kubernetes.io/not-ready NoExecute',
        'node.kubernetes.io/pid-pressure NoSchedule',
        'node.kubernetes.io/unreachable NoExecute',
        'node.kubernetes.io/unschedulable NoSchedule',
      ]);
      const body = { spec: { template: { metadata: { annotations: { version: '2' } } } } };
      await cluster.client.patch(DAEMON_SETS, at('web'), { type: 'merge', body });
      await cluster.until('the Pod is replaced', async () => {
        const [after] = await cluster.pods();
        const { updatedNumberScheduled, numberAvailable } = (await status()) ?? {};
        return (
          after?.metadata.uid !== pod?.metadata.uid &&
          updatedNumberScheduled === 1 &&
          numberAvailable === 1
        );
      });
      const events = await eventsAbout('DaemonSet');
      assert.match(events.join(), /SuccessfulCreate Created pod: web-\w+/);
    });

    it('let a ReplicationController maintain its Pods', async () => {
      const { template } = workload(1).spec;
      await create(REPLICATION_CONTROLLERS, 'web', { spec: { replicas: 2, template } });
      await cluster.until('the Pods are available', async () => {
        const { status } = await cluster.client.get(REPLICATION_CONTROLLERS, at('web'));
        return status?.availableReplicas === 2 && status.fullyLabeledReplicas === 2;
      });
      const [pod] = await cluster.pods();
      assert.equal(controllerOf(pod!)?.kind, 'ReplicationController');
    });

    it('keep a claim that is being deleted until no Pod uses it', async () => {
      const claim = await create(PERSISTENT_VOLUME_CLAIMS, 'data', {
        spec: {
          accessModes: ['ReadWriteOnce'],
          resources: { requests: { storage: '1Gi' } },
          storageClassName: '',
        },
      });
      assert.deepEqual(claim.metadata.finalizers, ['kubernetes.io/pvc-protection']);
      const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }];
      // Without a kubelet, the Pod does not start.
      await create(PODS, 'user', {
        spec: { nodeName: 'node-2', containers: [container], volumes },
      });
      await cluster.client.delete(PERSISTENT_VOLUME_CLAIMS, at('data'));
      await cluster.settle();
      const kept = await cluster.client.get(PERSISTENT_VOLUME_CLAIMS, at('data'));
      assert.ok(kept.metadata.deletionTimestamp);
      await cluster.client.delete(PODS, at('user'), { gracePeriodSeconds: 0 });
      await cluster.until('the claim is deleted', async () => {
        const { items } = await cluster.client.list(PERSISTENT_VOLUME_CLAIMS);
        return items.length === 0;
      });
    });

    it('report why a namespace is not deleted', async () => {
      const { metadata } = await cluster.client.create(NAMESPACES, {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { generateName: 'held-' },
      });
      const { name } = metadata;
      const held = { namespace: name, name: 'held', finalizers: ['example.com/keep'] };
      await create(CONFIG_MAPS, 'held', {}, held);
      await cluster.client.delete(NAMESPACES, { name });
      const problems = async () => {
        const { status } = await cluster.client.get(NAMESPACES, { name });
        return (status?.conditions ?? [])
          .filter((condition) => condition.status === 'True')
          .map(({ type, message }) => `${type}: ${message}`);
      };
      await cluster.until('it is reported', async () => (await problems()).length > 0);
      assert.deepEqual((await problems()).toSorted(), [
        'NamespaceContentRemaining: Some resources are remaining: configmaps. has 1 resource instances',
        'NamespaceFinalizersRemaining: Some content in the namespace has finalizers remaining: example.com/keep in 1 resource instances',
      ]);
      const patch = { type: 'merge', body: { metadata: { finalizers: null } } } as const;
      await cluster.client.patch(CONFIG_MAPS, held, patch);
    });
  });
});
