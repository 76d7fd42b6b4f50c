import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Json } from './api.ts';
import { Api } from './api.ts';
import { CRDS, widgetCrd } from './objects.ts';

const API_SERVICES = '/apis/apiregistration.k8s.io/v1/apiservices';
const AUTOMANAGED = 'kube-aggregator.kubernetes.io/automanaged';

let api: Api;

before(async () => {
  api = await Api.start();
});

after(() => api.close());

/** Waits for the APIService of a version of a group, in a state. */
function apiService(name: string, isExpected: (found: Json) => boolean = () => true) {
  return api.until(name, async () => {
    const { status, body } = await api.get(`${API_SERVICES}/${name}`);
    return status === 200 && isExpected(body) && body;
  });
}

function gone(name: string) {
  return api.until(`${name} is gone`, async () => {
    const { status } = await api.get(`${API_SERVICES}/${name}`);
    return status === 404;
  });
}

function withoutTime({ lastTransitionTime: _time, ...condition }: Json): Json {
  return condition;
}

const LOCAL = {
  type: 'Available',
  status: 'True',
  reason: 'Local',
  message: 'Local APIServices are always available',
};

test('each version of a built-in group has an APIService', async () => {
  const groups: string[] = (await api.get('/apis')).body.groups.flatMap(({ versions }: Json) =>
    versions.map(({ groupVersion }: Json) => groupVersion.split('/').reverse().join('.')),
  );
  const names = ['v1.', ...groups.filter((name) => name !== 'v1.apiregistration.k8s.io')];
  await Promise.all(names.map((name) => apiService(name)));
  const { metadata, spec, status } = await apiService('v2.autoscaling');
  assert.deepEqual(metadata.labels, { [AUTOMANAGED]: 'onstart' });
  assert.deepEqual(spec, {
    group: 'autoscaling',
    groupPriorityMinimum: 17500,
    version: 'v2',
    versionPriority: 30,
  });
  assert.deepEqual(status.conditions.map(withoutTime), [LOCAL]);
});

test('each served version of a CRD has an APIService until the CRD is deleted', async () => {
  const group = 'registered.example.com';
  const crd = widgetCrd(group, ({ spec }) => {
    const [v1] = spec.versions;
    spec.versions.push(
      { ...v1, name: 'v2', storage: false },
      { ...v1, name: 'v3', storage: false, served: false },
    );
  });
  await api.install(crd);
  const { metadata, spec, status } = await apiService(`v1.${group}`);
  assert.deepEqual(metadata.labels, { [AUTOMANAGED]: 'true' });
  assert.deepEqual(
    metadata.managedFields.map(({ manager, operation }: Json) => [manager, operation]),
    [['kube-apiserver', 'Update']],
  );
  assert.deepEqual(spec, {
    group,
    groupPriorityMinimum: 1000,
    version: 'v1',
    versionPriority: 100,
  });
  assert.deepEqual(status.conditions.map(withoutTime), [LOCAL]);
  await apiService(`v2.${group}`);
  await gone(`v3.${group}`);

  const path = `${CRDS}/widgets.${group}`;
  const { versions } = (await api.get(path)).body.spec;
  for (const version of versions) version.served = version.name !== 'v2';
  await api.made(api.patch(path, { spec: { versions } }));
  await apiService(`v3.${group}`);
  await gone(`v2.${group}`);

  await api.made(api.delete(path));
  await gone(`v1.${group}`);
  await gone(`v3.${group}`);
});

test('the server restores the APIService of a CRD', async () => {
  const group = 'restored.example.com';
  const name = `v1.${group}`;
  await api.install(widgetCrd(group));
  const { metadata } = await apiService(name);
  await api.made(api.delete(`${API_SERVICES}/${name}`));
  await apiService(name, (found) => found.metadata.uid !== metadata.uid);
  await api.made(api.patch(`${API_SERVICES}/${name}`, { spec: { versionPriority: 7 } }));
  await apiService(name, ({ spec }) => spec.versionPriority === 100);
});

test('the server leaves an APIService without its label unchanged', async () => {
  const group = 'own.example.com';
  const name = `v1.${group}`;
  await api.install(widgetCrd(group));
  await apiService(name);
  const change = { metadata: { labels: { [AUTOMANAGED]: null } }, spec: { versionPriority: 7 } };
  await api.made(api.patch(`${API_SERVICES}/${name}`, change));
  await api.made(api.delete(`${CRDS}/widgets.${group}`));
  await api.until('the CRD is gone', async () => {
    const { status } = await api.get(`${CRDS}/widgets.${group}`);
    return status === 404;
  });
  const { spec } = await apiService(name);
  assert.equal(spec.versionPriority, 7);
});
