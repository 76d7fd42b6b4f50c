import type { JsonObject } from '../../../util/json-value.ts';
import { objectIn, objectsIn } from '../../../util/json-value.ts';

/** Annotations of init containers in old versions, which no server reads. */
const INIT_CONTAINERS = ['beta', 'alpha'].flatMap((stage) =>
  ['init-containers', 'init-container-statuses'].map(
    (name) => `pod.${stage}.kubernetes.io/${name}`,
  ),
);

/**
 * Removes the fields of a Pod or of a template whose feature gates are off by default (upstream: `dropDisabledFields` of
 * `pkg/api/pod`). Managed fields are determined before, so that managers own these fields.
 */
export function dropDisabledFields(pod: JsonObject | undefined): void {
  const metadata = objectIn(pod, 'metadata');
  const annotations = objectIn(metadata, 'annotations');
  if (metadata && annotations && INIT_CONTAINERS.some((key) => key in annotations)) {
    drop(annotations, ...INIT_CONTAINERS);
    if (Object.keys(annotations).length === 0) drop(metadata, 'annotations');
  }
  const spec = objectIn(pod, 'spec');
  if (!spec) return;
  drop(spec, 'evictionResponders', 'schedulingGroup');
  for (const volume of objectsIn(spec, 'volumes')) dropFromVolume(volume);
  for (const list of ['containers', 'initContainers', 'ephemeralContainers']) {
    for (const container of objectsIn(spec, list)) dropFromContainer(container);
  }
}

/** Does the same for the template of a workload. */
export function dropDisabledTemplateFields(workload: JsonObject): void {
  const spec = objectIn(workload, 'spec');
  const job = objectIn(objectIn(spec, 'jobTemplate'), 'spec');
  dropDisabledFields(objectIn(job ?? spec ?? workload, 'template'));
}

/** Hooks of a kind that only has a template. */
export const TEMPLATE_HOOKS = {
  prepareForCreate: dropDisabledTemplateFields,
  prepareForUpdate: dropDisabledTemplateFields,
};

/** Removes such fields of the status of a Pod. */
export function dropDisabledStatusFields(status: JsonObject): void {
  drop(status, 'nodeAllocatableResourceClaimStatuses', 'volumeHealth');
  for (const list of ['containerStatuses', 'initContainerStatuses', 'ephemeralContainerStatuses']) {
    for (const container of objectsIn(status, list)) {
      for (const mount of objectsIn(container, 'volumeMounts')) drop(mount, 'volumeStatus');
    }
  }
}

function dropFromVolume(volume: JsonObject): void {
  drop(objectIn(volume, 'emptyDir'), 'mode');
  const source = ['secret', 'configMap', 'downwardAPI', 'projected'].find((each) =>
    objectIn(volume, each),
  );
  if (source === undefined) return;
  const files = objectIn(volume, source);
  drop(files, 'defaultUser');
  const projections = source === 'projected' ? objectsIn(files, 'sources') : [];
  const parts = [
    files,
    ...projections.flatMap((each) => Object.keys(each).map((key) => objectIn(each, key))),
  ];
  for (const part of parts) {
    drop(part, 'user');
    for (const item of objectsIn(part, 'items')) drop(item, 'user');
  }
}

function dropFromContainer(container: JsonObject): void {
  for (const mount of objectsIn(container, 'volumeMounts')) drop(mount, 'bindMountOptions');
  const lifecycle = objectIn(container, 'lifecycle');
  for (const name of ['livenessProbe', 'readinessProbe', 'startupProbe']) {
    const probe = objectIn(container, name);
    drop(objectIn(probe, 'grpc'), 'mode');
    drop(objectIn(probe, 'httpGet'), 'protocol');
  }
  for (const hook of ['postStart', 'preStop']) {
    drop(objectIn(objectIn(lifecycle, hook), 'httpGet'), 'protocol');
  }
  if (!lifecycle || !('stopSignal' in lifecycle)) return;
  drop(lifecycle, 'stopSignal');
  if (Object.keys(lifecycle).length === 0) drop(container, 'lifecycle');
}

function drop(holder: JsonObject | undefined, ...fields: readonly string[]): void {
  for (const field of holder ? fields : []) delete holder?.[field];
}
