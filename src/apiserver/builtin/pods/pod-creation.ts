import { equalJson } from '../../../api/equal.ts';
import type { JsonObject } from '../../../util/json-value.ts';
import { isSet, listIn, objectIn, objectsIn, textIn } from '../../../util/json-value.ts';
import { CheckedObject } from '../../objects/checked-object.ts';
import type { ApiObject } from '../../objects/resource-definition.ts';
import { APP_ARMOR } from './profile-annotations.ts';
import { validateAppArmor } from './security-context.ts';

const TERMS = 'DuringSchedulingIgnoredDuringExecution';

/** Extends the selectors of a new Pod by the labels of the Pod itself with the keys in `matchLabelKeys`. */
export function mergeLabelKeys({ metadata: { labels = {} }, ...pod }: ApiObject): void {
  const spec = objectIn(pod, 'spec');
  const affinity = objectIn(spec, 'affinity');
  const terms = ['podAffinity', 'podAntiAffinity'].flatMap((field) => {
    const rules = objectIn(affinity, field);
    const preferred = objectsIn(rules, `preferred${TERMS}`);
    return objectsIn(rules, `required${TERMS}`).concat(
      preferred.map((term) => objectIn(term, 'podAffinityTerm') ?? {}),
    );
  });
  for (const term of [...terms, ...objectsIn(spec, 'topologySpreadConstraints')]) {
    const selector = objectIn(term, 'labelSelector');
    const expressions = { matchLabelKeys: 'In', mismatchLabelKeys: 'NotIn' };
    for (const [field, operator] of Object.entries(expressions)) {
      for (const key of listIn(term, field).map(String)) {
        if (!selector || labels[key] === undefined) continue;
        const added = { key, operator, values: [labels[key]] };
        selector['matchExpressions'] = [...listIn(selector, 'matchExpressions'), added];
      }
    }
  }
}

/**
 * Sets the AppArmor profiles of the containers of a new Pod from the older annotations. Returns the warnings about these
 * annotations (upstream: `applyAppArmorVersionSkew`).
 */
export function setAppArmorProfiles({ metadata, ...pod }: ApiObject): readonly string[] {
  const spec = objectIn(pod, 'spec');
  if (textIn(objectIn(spec, 'os'), 'name') === 'windows') return [];
  const ofPod = objectIn(objectIn(spec, 'securityContext'), 'appArmorProfile');
  const warnings: string[] = [];
  for (const list of ['initContainers', 'containers', 'ephemeralContainers']) {
    for (const container of objectsIn(spec, list)) {
      const key = `${APP_ARMOR}${textIn(container, 'name')}`;
      const annotation = metadata.annotations?.[key];
      const security = objectIn(container, 'securityContext');
      if (annotation === undefined || isSet(security ?? {}, 'appArmorProfile')) continue;
      const profile = profileOfAnnotation(annotation);
      if (profile && equalJson(profile, ofPod)) continue;
      if (profile) container['securityContext'] = { ...security, appArmorProfile: profile };
      warnings.push(
        `metadata.annotations[${key}]: deprecated since v1.30; use the "appArmorProfile" field instead`,
      );
    }
  }
  return warnings;
}

/** Returns the profile in an annotation, or undefined if it is none that a field can have. */
export function profileOfAnnotation(annotation: string): JsonObject | undefined {
  if (annotation === 'unconfined') return { type: 'Unconfined' };
  if (annotation === 'runtime/default') return { type: 'RuntimeDefault' };
  const [, localhostProfile] = /^localhost\/(.+)$/s.exec(annotation) ?? [];
  if (localhostProfile === undefined) return undefined;
  const profile = new CheckedObject({ type: 'Localhost', localhostProfile });
  validateAppArmor(profile);
  return profile.errors.length > 0 ? undefined : profile.value;
}
