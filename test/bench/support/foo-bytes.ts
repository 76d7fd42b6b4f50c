/**
 * Foo objects as kube-apiserver sends them: sorted keys, two entries of managedFields, 650 to 900
 * bytes. Rendered without JSON.stringify, which would take longer than the benchmark.
 */
export const FOOS = {
  group: 'samplecontroller.k8s.io',
  version: 'v1alpha1',
  plural: 'foos',
  kind: 'Foo',
  path: '/apis/samplecontroller.k8s.io/v1alpha1/foos',
} as const;

/** resourceVersion of a list or an initial stream. */
export const LIST_VERSION = 1_000_000;

const NAMESPACES = 40;
const APPS = 250;

const MANAGED_FIELDS = [
  '{"apiVersion":"samplecontroller.k8s.io/v1alpha1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{".":{},"f:deploymentName":{},"f:replicas":{}}},"manager":"kubectl","operation":"Update","time":"2026-03-01T09:30:00Z"}',
  '{"apiVersion":"samplecontroller.k8s.io/v1alpha1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{".":{},"f:availableReplicas":{}}},"manager":"sample-controller","operation":"Update","subresource":"status","time":"2026-03-01T09:30:05Z"}',
];

/** Returns the object with this number at this resourceVersion. */
export function fooJson(number: number, resourceVersion: number): string {
  const name = `foo-${number}`;
  // Half of the objects have never been synced.
  const synced = number % 2 === 0;
  const managedFields = synced ? MANAGED_FIELDS.join(',') : MANAGED_FIELDS[0];
  const status = synced ? `,"status":{"availableReplicas":${resourceVersion % 10}}` : '';
  return (
    '{"apiVersion":"samplecontroller.k8s.io/v1alpha1","kind":"Foo","metadata":{' +
    `"creationTimestamp":"2026-03-01T09:30:00Z","generation":${1 + (resourceVersion % 7)},` +
    `"labels":{"app":"app-${number % APPS}"},"managedFields":[${managedFields}],` +
    `"name":"${name}","namespace":"tenant-${number % NAMESPACES}",` +
    `"resourceVersion":"${resourceVersion}","uid":"${uid(number)}"},` +
    `"spec":{"deploymentName":"${name}-deployment","replicas":${1 + (resourceVersion % 9)}}${status}}`
  );
}

/**
 * Returns the number of the object that an event of a storm changes: uniformly distributed, in no
 * order.
 */
export function changedBy(event: number, objects: number): number {
  return (event * 7919) % objects;
}

function uid(number: number): string {
  const hex = ((number + 1) * 2_654_435_761).toString(16).padStart(12, '0').slice(-12);
  return `${hex.slice(0, 8)}-${hex.slice(8)}-4a${hex.slice(0, 2)}-8b${hex.slice(2, 4)}-${hex}`;
}
