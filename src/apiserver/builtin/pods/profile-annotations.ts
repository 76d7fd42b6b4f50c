import { goQuote } from '../../../util/go-quote.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { validateLocalPath } from '../shared/local-paths.ts';

/** Annotations of older versions for what is now in security contexts. */
const OF_POD = 'seccomp.security.alpha.kubernetes.io/pod';
const OF_CONTAINER = 'container.seccomp.security.alpha.kubernetes.io/';
export const APP_ARMOR = 'container.apparmor.security.beta.kubernetes.io/';

const LOCAL = 'localhost/';

/** Values of an annotation by the type in the field. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  Unconfined: ['unconfined'],
  RuntimeDefault: ['runtime/default'],
};

const DOCKER_DEFAULT = 'docker/default';

function containersOf(spec: CheckedObject): CheckedObject[] {
  const lists = ['initContainers', 'containers', 'ephemeralContainers'];
  return lists.flatMap((list) => spec.items(list));
}

/** The annotation of a mirror Pod, which a kubelet creates for a static Pod. */
export const OF_STATIC_POD = 'kubernetes.io/config.mirror';

/** The annotation with the order in which the Pods of a ReplicaSet are deleted. */
const DELETION_COST = 'controller.kubernetes.io/pod-deletion-cost';

/** Reports malformed annotations of a Pod or of a template. */
export function validatePodAnnotations(annotations: CheckedObject, spec: CheckedObject): void {
  if (annotations.has(OF_STATIC_POD) && spec.text('nodeName') === '') {
    const why = 'must set spec.nodeName if mirror pod annotation is set';
    annotations.invalid(`[${OF_STATIC_POD}]`, why, annotations.text(OF_STATIC_POD));
  }
  const cost = annotations.has(DELETION_COST) ? annotations.text(DELETION_COST) : '0';
  if (!/^(?:0|[1-9]\d*|-\d+)$/.test(cost) || Math.abs(Number(cost) + 0.5) > 2 ** 31) {
    annotations.invalid(`[${DELETION_COST}]`, 'must be a 32bit integer', cost);
  }
  validateProfiles(annotations, spec);
}

function validateProfiles(annotations: CheckedObject, spec: CheckedObject): void {
  const known = new Set(Object.values(VALUES).flat());
  for (const [key, value] of Object.entries(annotations.value)) {
    const profile = String(value);
    const isLocal = profile.startsWith(LOCAL);
    if (key.startsWith(APP_ARMOR)) {
      const name = key.slice(APP_ARMOR.length);
      if (!containersOf(spec).some((container) => container.text('name') === name)) {
        annotations.invalid(`[${key}]`, 'container not found', name);
      }
      if (profile === '' || isLocal || known.has(profile)) continue;
      annotations.invalid(
        `[${key}]`,
        `invalid AppArmor profile name: ${goQuote(profile)}`,
        profile,
      );
    } else if (key === OF_POD || key.startsWith(OF_CONTAINER)) {
      if (isLocal) validateLocalPath(annotations, key, profile.slice(LOCAL.length));
      else if (profile !== DOCKER_DEFAULT && !known.has(profile)) {
        annotations.invalid(key, 'must be a valid seccomp profile', profile);
      }
    }
  }
}

/**
 * Reports profiles in annotations that differ from those in the fields.
 *
 * @param isTemplate whether the AppArmor profile of the Pod is that of its containers
 */
export function requireSameProfiles(
  annotations: CheckedObject,
  spec: CheckedObject,
  isTemplate: boolean,
): void {
  const ofPod = spec.in('securityContext');
  const { value } = annotations;
  requireSame(ofPod, 'seccomp', value[OF_POD]);
  for (const container of containersOf(spec)) {
    const own = container.in('securityContext');
    const name = container.text('name');
    requireSame(own, 'seccomp', value[OF_CONTAINER + name]);
    if (spec.in('os').text('name') === 'windows') continue;
    requireSame(own, 'apparmor', value[APP_ARMOR + name], isTemplate ? ofPod : own);
  }
}

/** @param others where the field is if it is not in `holder` */
function requireSame(
  holder: CheckedObject,
  what: 'apparmor' | 'seccomp',
  annotation: unknown,
  others: CheckedObject = holder,
): void {
  const field = what === 'seccomp' ? 'seccompProfile' : 'appArmorProfile';
  const profile = holder.get(field) ?? others.get(field);
  if (!profile || typeof annotation !== 'string') return;
  const type = profile.text('type');
  const isLocal = annotation.startsWith(LOCAL);
  const differs = (part: string, shown: string) =>
    holder.forbidden(`${field}.${part}`, `${what} ${shown} in annotation and field must match`);
  if (type !== 'Localhost') {
    const isOld = what === 'seccomp' && type === 'RuntimeDefault' && annotation === DOCKER_DEFAULT;
    if (VALUES[type] && !VALUES[type].includes(annotation) && !isOld) differs('type', 'type');
  } else if (!isLocal) differs('type', 'type');
  else if (profile.text('localhostProfile') !== annotation.slice(LOCAL.length)) {
    differs('localhostProfile', 'profile');
  }
}
