import { isRecord } from '../../../util/values.ts';
import type { JsonObject } from '../../../util/json-value.ts';
import { objectIn, objectsIn, textIn, textsIn } from '../../../util/json-value.ts';
import type { CheckedPod, PodViolation } from './checked-pod.ts';
import {
  securityOf,
  containerNamesWhere,
  sortedUnique,
  nounWithNames,
  settersOf,
  usersOf,
} from './checked-pod.ts';
import { addedCapabilities, seccompProfile } from './baseline.ts';

export function privilegeEscalation({ spec }: CheckedPod): PodViolation | undefined {
  const names = containerNamesWhere(
    spec,
    (security) => security?.['allowPrivilegeEscalation'] !== false,
  );
  if (names.length === 0) return undefined;
  const detail = `${nounWithNames('container', names)} must set securityContext.allowPrivilegeEscalation=false`;
  return { reason: 'allowPrivilegeEscalation != false', detail };
}

export function restrictedCapabilities({ spec }: CheckedPod): PodViolation | undefined {
  const keeping = containerNamesWhere(
    spec,
    (security) => !textsIn(objectIn(security, 'capabilities'), 'drop').includes('ALL'),
  );
  const added = addedCapabilities(spec, (each) => each === 'NET_BIND_SERVICE');
  const details = [
    ...(keeping.length === 0
      ? []
      : [
          `${nounWithNames('container', keeping)} must set securityContext.capabilities.drop=["ALL"]`,
        ]),
    ...(added === undefined ? [] : [added]),
  ];
  if (details.length === 0) return undefined;
  return { reason: 'unrestricted capabilities', detail: details.join('; ') };
}

const ALLOWED_VOLUMES = [
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'image',
  'persistentVolumeClaim',
  'projected',
  'secret',
];

/** The other types, in the order in which upstream names one of them. */
const OTHER_VOLUMES = [
  'hostPath',
  'gcePersistentDisk',
  'awsElasticBlockStore',
  'gitRepo',
  'nfs',
  'iscsi',
  'glusterfs',
  'rbd',
  'flexVolume',
  'cinder',
  'cephfs',
  'flocker',
  'fc',
  'azureFile',
  'vsphereVolume',
  'quobyte',
  'azureDisk',
  'photonPersistentDisk',
  'portworxVolume',
  'scaleIO',
  'storageos',
];

export function restrictedVolumes({ spec }: CheckedPod): PodViolation | undefined {
  const isSet = (volume: JsonObject) => (type: string) => isRecord(volume[type]);
  const bad = objectsIn(spec, 'volumes').filter((volume) => !ALLOWED_VOLUMES.some(isSet(volume)));
  if (bad.length === 0) return undefined;
  const names = bad.map((volume) => textIn(volume, 'name'));
  const types = sortedUnique(bad.map((volume) => OTHER_VOLUMES.find(isSet(volume)) ?? 'unknown'));
  const detail = `${usersOf('volume', names)} ${nounWithNames('restricted volume type', types)}`;
  return { reason: 'restricted volume types', detail };
}

export function runAsNonRoot({ spec }: CheckedPod): PodViolation | undefined {
  const reason = 'runAsNonRoot != true';
  const ofPod = securityOf(spec)?.['runAsNonRoot'];
  const isRoot = (security: JsonObject | undefined) => security?.['runAsNonRoot'] === false;
  const setters = settersOf(ofPod === false, containerNamesWhere(spec, isRoot));
  if (setters !== undefined) {
    return { reason, detail: `${setters} must not set securityContext.runAsNonRoot=false` };
  }
  if (ofPod === true) return undefined;
  const names = containerNamesWhere(spec, (security) => security?.['runAsNonRoot'] === undefined);
  if (names.length === 0) return undefined;
  return {
    reason,
    detail: `pod or ${nounWithNames('container', names)} must set securityContext.runAsNonRoot=true`,
  };
}

export function runAsUser({ spec }: CheckedPod): PodViolation | undefined {
  const isRoot = (security: JsonObject | undefined) => security?.['runAsUser'] === 0;
  const setters = settersOf(isRoot(securityOf(spec)), containerNamesWhere(spec, isRoot));
  if (setters === undefined) return undefined;
  return { reason: 'runAsUser=0', detail: `${setters} must not set runAsUser=0` };
}

export function restrictedSeccomp(pod: CheckedPod): PodViolation | undefined {
  const violation = seccompProfile(pod);
  const { spec } = pod;
  if (violation || objectIn(securityOf(spec), 'seccompProfile')) return violation;
  const names = containerNamesWhere(spec, (security) => !objectIn(security, 'seccompProfile'));
  if (names.length === 0) return undefined;
  const detail = `pod or ${nounWithNames('container', names)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"`;
  return { reason: 'seccompProfile', detail };
}
