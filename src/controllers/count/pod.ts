import type { Pod } from '../../api/builtin.ts';
import type { Count } from '../../api/generated/count.ts';
import { labelValue } from '../../api/label-selector.ts';
import type { DeepReadonly, Draft } from '../../api/object.ts';
import { controllerReference } from '../../api/metadata.ts';

/** Who writes, in managedFields, in labels and in events. */
export const COMPONENT = 'count-controller';

/** The Pod that a Count wants at `ordinal`. */
export function buildPod(count: DeepReadonly<Count>, ordinal: number): Draft<Pod> {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: podName(count, ordinal),
      ...(count.metadata.namespace ? { namespace: count.metadata.namespace } : {}),
      labels: podLabels(count),
      ownerReferences: [controllerReference(count)],
    },
    spec: {
      // The program is the user's: it has no business with the API server unless it says so.
      automountServiceAccountToken: false,
      containers: [{ name: 'app', image: count.spec.name }],
    },
  };
}

export function podName(count: DeepReadonly<Count>, ordinal: number): string {
  return `${count.metadata.name}-${ordinal}`;
}

/** The ordinal in the name of a Pod, or undefined if the Count would not have named it so. */
export function ordinalOf(count: DeepReadonly<Count>, pod: DeepReadonly<Pod>): number | undefined {
  const suffix = pod.metadata.name.slice(count.metadata.name.length + 1);
  const ordinal = Number(suffix);
  return /^\d{1,6}$/.test(suffix) && pod.metadata.name === podName(count, ordinal)
    ? ordinal
    : undefined;
}

/** What selects the Count's Pods, in the string form that autoscalers read. */
export function podSelector(count: DeepReadonly<Count>): string {
  return Object.entries(podLabels(count))
    .map(([key, value]) => `${key}=${value}`)
    .join(',');
}

function podLabels(count: DeepReadonly<Count>): Record<string, string> {
  return {
    'app.kubernetes.io/instance': labelValue(count.metadata.name),
    'app.kubernetes.io/managed-by': COMPONENT,
  };
}

/** The Pod runs something else than the Count asks for now. */
export function isOutdated(count: DeepReadonly<Count>, pod: DeepReadonly<Pod>): boolean {
  return pod.spec?.containers[0]?.image !== count.spec.name;
}
