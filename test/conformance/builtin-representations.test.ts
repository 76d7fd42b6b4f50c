import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { KINDS } from '../../src/apiserver/generated/kinds.ts';
import { createCertificateAuthority } from '../../src/util/x509.ts';
import { skipBefore } from '../support/skip.ts';
import type { Json } from './api.ts';
import { Api } from './api.ts';
import { pod, pods } from './objects.ts';

let api: Api;
let space: string;

before(async () => {
  api = await Api.start();
  space = await api.namespace();
});

after(() => api.close());

const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';

test('every built-in resource is discovered with its subresources', skipBefore(37), async () => {
  const found = new Map<string, Json>();
  for (const root of ['/api', '/apis']) {
    const { body } = await api.get(root, AGGREGATED);
    for (const { metadata, versions } of body.items) {
      for (const { version, resources } of versions) {
        const groupVersion = metadata?.name ? `${metadata.name}/${version}` : version;
        for (const one of resources) found.set(`${groupVersion} ${one.resource}`, one);
      }
    }
  }
  for (const section of KINDS.trim().split('\n\n')) {
    const [groupVersion, ...lines] = section.split('\n');
    for (const line of lines) {
      const [plural, singular, kind, scope, ...options] = line.split(' ');
      const resource = found.get(`${groupVersion} ${plural}`);
      assert.ok(resource, line);
      const { singularResource, responseKind, shortNames, categories, subresources } = resource;
      assert.deepEqual(
        [singularResource, responseKind.kind, resource.scope.toLowerCase()],
        [singular, kind, scope],
      );
      const listed = (values: string[] | undefined, name: string) =>
        values ? [`${name}=${values.join(',')}`] : [];
      const names = subresources?.map(({ subresource }: Json) => subresource).toSorted();
      assert.deepEqual(
        [
          ...listed(shortNames, 'short'),
          ...listed(categories, 'categories'),
          ...listed(names, 'subresources'),
        ],
        options.filter((option) => !option.startsWith('verbs=')),
        line,
      );
    }
  }
});

test('an event is the same object in both of its API groups', async () => {
  const core = `/api/v1/namespaces/${space}/events`;
  const newer = `/apis/events.k8s.io/v1/namespaces/${space}/events`;
  const { metadata } = await api.made(
    api.post(newer, {
      metadata: { name: 'both' },
      eventTime: '2026-01-02T03:04:05.000006Z',
      type: 'Warning',
      reason: 'Tested',
      action: 'Test',
      note: 'said',
      regarding: { kind: 'Pod', name: 'p', namespace: space },
      reportingController: 'example.com/test',
      reportingInstance: 'test-1',
    }),
  );
  const old = (await api.get(`${core}/both`)).body;
  assert.deepEqual(
    [old.apiVersion, old.message, old.involvedObject.name, old.reportingComponent],
    ['v1', 'said', 'p', 'example.com/test'],
  );
  assert.equal(old.metadata.resourceVersion, metadata.resourceVersion);
  await api.made(api.patch(`${core}/both`, { message: 'said again' }));
  assert.equal((await api.get(`${newer}/both`)).body.note, 'said again');
  const selected = await api.get(`${newer}?fieldSelector=regarding.name=p`);
  assert.deepEqual(
    selected.body.items.map(({ metadata: { name }, note }: Json) => [name, note]),
    [['both', 'said again']],
  );
  const watch = await api.watch(`${newer}?resourceVersion=${metadata.resourceVersion}`);
  const { type, object } = await watch.next();
  assert.deepEqual(
    [type, object.apiVersion, object.note],
    ['MODIFIED', 'events.k8s.io/v1', 'said again'],
  );
});

test('a HorizontalPodAutoscaler is the same object in both of its versions', async () => {
  const path = (version: string) =>
    `/apis/autoscaling/${version}/namespaces/${space}/horizontalpodautoscalers`;
  const memory = {
    type: 'Resource',
    resource: { name: 'memory', target: { type: 'Utilization', averageUtilization: 70 } },
  };
  await api.made(
    api.post(path('v1'), {
      metadata: { name: 'hpa' },
      spec: {
        scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'x' },
        maxReplicas: 3,
        targetCPUUtilizationPercentage: 50,
      },
    }),
  );
  const { spec } = (await api.get(`${path('v2')}/hpa`)).body;
  assert.equal(spec.metrics[0].resource.target.averageUtilization, 50);
  // A write of v1 moves the CPU to the end.
  const metrics = [memory, ...spec.metrics];
  await api.made(api.patch(`${path('v2')}/hpa`, { spec: { metrics } }));
  const old = (await api.get(`${path('v1')}/hpa`)).body;
  assert.equal(old.spec.targetCPUUtilizationPercentage, 50);
  assert.deepEqual(old.metadata.annotations, {
    'autoscaling.alpha.kubernetes.io/metrics':
      '[{"type":"Resource","resource":{"name":"memory","targetAverageUtilization":70}}]',
  });
  await api.made(api.patch(`${path('v1')}/hpa`, { spec: { maxReplicas: 5 } }));
  assert.deepEqual((await api.get(`${path('v2')}/hpa`)).body.spec.metrics, metrics);
});

test('a HorizontalPodAutoscaler of v1 has what only v2 knows in annotations', async () => {
  const path = (version: string) =>
    `/apis/autoscaling/${version}/namespaces/${space}/horizontalpodautoscalers`;
  const target = { type: 'AverageValue', averageValue: '1' };
  const metric = { name: 'm', selector: { matchLabels: { a: 'b' } } };
  const described = { kind: 'A', name: 'b', apiVersion: 'v1' };
  const value = { type: 'Value', value: '5' };
  const metrics = [
    { type: 'Pods', pods: { metric, target } },
    {
      type: 'Object',
      object: { describedObject: described, metric: { name: 'm' }, target: value },
    },
    { type: 'External', external: { metric: { name: 'm' }, target: value } },
  ];
  const policies = [{ type: 'Pods', value: 1, periodSeconds: 5 }];
  await api.made(
    api.post(path('v2'), {
      metadata: { name: 'annotated' },
      spec: {
        scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'x' },
        maxReplicas: 3,
        metrics,
        behavior: { scaleUp: { policies } },
      },
    }),
  );
  const { annotations } = (await api.get(`${path('v1')}/annotated`)).body.metadata;
  const of = (name: string) => JSON.parse(annotations[`autoscaling.alpha.kubernetes.io/${name}`]);
  const { selector } = metric;
  assert.deepEqual(of('metrics'), [
    { type: 'Pods', pods: { metricName: 'm', targetAverageValue: '1', selector } },
    { type: 'Object', object: { target: described, metricName: 'm', targetValue: '5' } },
    { type: 'External', external: { metricName: 'm', targetValue: '5' } },
  ]);
  assert.deepEqual(of('behavior').ScaleUp, {
    StabilizationWindowSeconds: 0,
    SelectPolicy: 'Max',
    Policies: [{ Type: 'Pods', Value: 1, PeriodSeconds: 5 }],
    Tolerance: null,
  });
  await api.made(api.patch(`${path('v1')}/annotated`, { spec: { maxReplicas: 4 } }));
  const { spec } = (await api.get(`${path('v2')}/annotated`)).body;
  assert.deepEqual(spec.metrics, metrics);
  assert.deepEqual(spec.behavior.scaleUp.policies, policies);
});

test(
  'a HorizontalPodAutoscaler scales a ReplicationController, and to zero by metrics of objects',
  skipBefore(37),
  async () => {
    const path = `/apis/autoscaling/v2/namespaces/${space}/horizontalpodautoscalers`;
    const scaled = (kind: string, spec: object) =>
      api.post(`${path}?dryRun=All`, {
        metadata: { name: 'scaled' },
        spec: { scaleTargetRef: { apiVersion: 'v1', kind, name: 'x' }, maxReplicas: 3, ...spec },
      });
    await api.made(scaled('ReplicationController', {}));
    assert.match(
      (await scaled('Other', {})).body.message,
      /spec.scaleTargetRef.apiVersion: Invalid value: "v1": apiVersion must specify API group$/,
    );
    const none = await scaled('ReplicationController', { minReplicas: 0 });
    assert.match(none.body.message, /spec.metrics: Forbidden: must specify at least one Object or/);
    const external = { metric: { name: 'x' }, target: { type: 'Value', value: '1' } };
    const metrics = [{ type: 'External', external }];
    await api.made(scaled('ReplicationController', { minReplicas: 0, metrics }));
  },
);

test('kinds are as tolerant as their Go types', skipBefore(37), async () => {
  const { certificatePem } = await createCertificateAuthority({ commonName: 'ca' });
  const bundle = await api.made(
    api.post('/apis/certificates.k8s.io/v1/clustertrustbundles?dryRun=All', {
      metadata: { name: 'example.com:signer:bundle' },
      spec: { signerName: 'example.com/signer', trustBundle: certificatePem },
    }),
  );
  assert.equal(bundle.metadata.name, 'example.com:signer:bundle');
  const node = { metadata: { name: 'a' }, spec: { drivers: null } };
  await api.made(api.post('/apis/storage.k8s.io/v1/csinodes?dryRun=All', node));
});

test('the containers of a Pod are resized and extended through subresources', async () => {
  await api.made(api.post(pods(space), pod('extended')));
  const at = `${pods(space)}/extended`;
  const debug = { name: 'debug', image: 'busybox' };
  const extended = await api.made(
    api.patch(`${at}/ephemeralcontainers`, { spec: { ephemeralContainers: [debug] } }),
  );
  assert.equal(extended.spec.ephemeralContainers[0].name, 'debug');
  assert.equal((await api.patch(at, { spec: { ephemeralContainers: [] } })).status, 422);
  for (const subresource of ['resize', 'ephemeralcontainers']) {
    const rename = (generateName: string) =>
      api.patch(`${at}/${subresource}`, { metadata: { generateName, labels: { a: 'b' } } });
    const { metadata } = await api.made(rename(`${subresource}-`));
    assert.deepEqual([metadata.generateName, metadata.labels], [`${subresource}-`, undefined]);
    assert.equal((await rename('Upper-')).status, 422);
  }
});

test('the objects of an empty cluster exist', skipBefore(37), async () => {
  const { spec } = (await api.get('/api/v1/namespaces/default/services/kubernetes')).body;
  assert.deepEqual([spec.type, spec.ports[0].port], ['ClusterIP', 443]);
  const priorities = '/apis/scheduling.k8s.io/v1/priorityclasses';
  assert.equal((await api.get(`${priorities}/system-node-critical`)).body.value, 2_000_001_000);
  const rbac = '/apis/rbac.authorization.k8s.io/v1';
  const { rules } = (await api.get(`${rbac}/clusterroles/cluster-admin`)).body;
  assert.deepEqual(rules[0], { apiGroups: ['*'], resources: ['*'], verbs: ['*'] });
  assert.equal((await api.get(`${rbac}/clusterroles`)).body.items.length >= 70, true);
  assert.equal((await api.get(`${rbac}/clusterrolebindings/cluster-admin`)).status, 200);
});
