/** Annotations of init containers in old versions, which no server reads. */
const INIT_CONTAINERS = ['alpha', 'beta'].flatMap((stage) =>
  ['init-containers', 'init-container-statuses'].map(
    (name) => `metadata.annotations?[pod.${stage}.kubernetes.io/${name}]`,
  ),
);

const CONTAINER_FIELDS = [
  'lifecycle?.stopSignal',
  'lifecycle.postStart.httpGet.protocol',
  'lifecycle.preStop.httpGet.protocol',
  ...['livenessProbe', 'readinessProbe', 'startupProbe'].flatMap((probe) => [
    `${probe}.grpc.mode`,
    `${probe}.httpGet.protocol`,
  ]),
  'volumeMounts[].bindMountOptions',
];

const FILES = ['configMap', 'downwardAPI', 'secret'];

const VOLUME_FIELDS = [
  'emptyDir.mode',
  ...[...FILES, 'projected'].map((source) => `${source}.defaultUser`),
  ...FILES.map((source) => `${source}.items[].user`),
  ...FILES.map((source) => `projected.sources[].${source}.items[].user`),
  ...['clusterTrustBundle', 'podCertificate', 'serviceAccountToken'].map(
    (source) => `projected.sources[].${source}.user`,
  ),
];

const SPEC_FIELDS = [
  'evictionResponders',
  'schedulingGroup',
  ...VOLUME_FIELDS.map((field) => `volumes[].${field}`),
  ...['containers', 'ephemeralContainers', 'initContainers'].flatMap((list) =>
    CONTAINER_FIELDS.map((field) => `${list}[].${field}`),
  ),
];

const POD_FIELDS = [...INIT_CONTAINERS, ...SPEC_FIELDS.map((field) => `spec.${field}`)];

/** Paths of the fields of a Pod that feature gates turn off by default. Upstream: `dropDisabledFields` of `pkg/api/pod`. */
export const DISABLED_POD_FIELDS: readonly string[] = [
  ...POD_FIELDS,
  'status.nodeAllocatableResourceClaimStatuses',
  'status.volumeHealth',
  ...['containerStatuses', 'ephemeralContainerStatuses', 'initContainerStatuses'].map(
    (list) => `status.${list}[].volumeMounts[].volumeStatus`,
  ),
];

/**
 * Returns the paths of these fields of a template.
 *
 * @param template the path of the template: `spec.template`
 */
export function disabledTemplateFields(template: string = 'spec.template'): string[] {
  return POD_FIELDS.map((field) => `${template}.${field}`);
}
