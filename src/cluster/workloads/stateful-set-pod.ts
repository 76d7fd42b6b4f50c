import type { Pod, StatefulSet } from '../../api/builtin.ts';
import type { DeepReadonly, Draft } from '../../api/object.ts';
import { REVISION_LABEL } from './controller-revisions.ts';
import type { PodTemplateSpec } from './template-hash.ts';
import { buildTemplatePod } from '../support/pod-control.ts';

const POD_NAME = 'statefulset.kubernetes.io/pod-name';
const POD_INDEX = 'apps.kubernetes.io/pod-index';

/** A Pod of a StatefulSet, or the place of one. */
export interface Member {
  readonly name: string;
  readonly ordinal: number;
  /** Whether the ordinal is beyond the desired replicas. */
  readonly isCondemned: boolean;
  /** Undefined before it is created. */
  readonly pod: DeepReadonly<Pod> | undefined;
  /** Name of the revision, or an empty string. */
  readonly revision: string;
}

/** Returns the ordinal of a Pod name of the set, or undefined. */
export function ordinalOf(
  { metadata }: DeepReadonly<StatefulSet>,
  podName: string,
): number | undefined {
  const parts = /^(.*)-(\d+)$/.exec(podName);
  return parts?.[1] === metadata.name ? Number(parts[2]) : undefined;
}

/** Returns the name of the PersistentVolumeClaim of a Pod. */
export function claimName(template: string, set: string, ordinal: number): string {
  return `${template}-${set}-${ordinal}`;
}

/** Returns the labels that identify a Pod. */
export function identityOf({ name, ordinal }: Member): Record<string, string> {
  return { [POD_NAME]: name, [POD_INDEX]: `${ordinal}` };
}

export function isIdentified({ name, labels }: DeepReadonly<Pod>['metadata']): boolean {
  return labels?.[POD_NAME] === name;
}

/** Returns a Pod with the name, host name and volumes of its ordinal. */
export function buildMember(
  set: DeepReadonly<StatefulSet>,
  member: Member,
  template: PodTemplateSpec | undefined,
): Draft<Pod> {
  const draft = buildTemplatePod(set, template);
  const { name, ordinal, revision } = member;
  const { serviceName, volumeClaimTemplates = [] } = set.spec ?? {};
  delete draft.metadata.generateName;
  const labels = { ...draft.metadata.labels, ...identityOf(member), [REVISION_LABEL]: revision };
  const volumes = volumeClaimTemplates.map(({ metadata: { name: volume = '' } = {} }) => ({
    name: volume,
    persistentVolumeClaim: { claimName: claimName(volume, set.metadata.name, ordinal) },
  }));
  const others = (draft.spec?.volumes ?? []).filter(
    (volume) => !volumes.some((own) => own.name === volume.name),
  );
  return {
    ...draft,
    metadata: { ...draft.metadata, name, labels },
    ...(draft.spec && {
      spec: {
        ...draft.spec,
        hostname: name,
        ...(serviceName && { subdomain: serviceName }),
        ...(volumes.length > 0 && { volumes: [...volumes, ...others] }),
      },
    }),
  };
}
