import type { Pod } from '../../api/builtin.ts';
import type { Count, CountSpec } from '../../api/generated/count.ts';
import { labelValue } from '../../api/label-selector.ts';
import { controllerReference } from '../../api/metadata.ts';
import { objectKey } from '../../api/object-key.ts';
import type { ObjectKey, ObjectName } from '../../api/object-key.ts';
import type { DeepReadonly, Draft } from '../../api/object.ts';
import { isActive, isFinished, isReady } from '../../api/workloads.ts';
import { specProblem } from '../spec-problem.ts';
import type { SpecRules } from '../spec-problem.ts';

/** Name of the controller in managedFields, labels and events. */
export const COMPONENT = 'count-controller';

/** The API server accepts names of Pods up to this length. */
const MAX_POD_NAME_LENGTH = 253;

const RULES: SpecRules<CountSpec> = {
  name: { type: 'string' },
  count: { type: 'integer', minimum: 0, maximum: 1000 },
};

/** Returns why the Count cannot be reconciled until its user changes it, or undefined. */
export function problemOf(
  count: DeepReadonly<Count>,
): { readonly reason: string; readonly message: string } | undefined {
  const problem = specProblem<CountSpec>(count.spec, RULES);
  if (problem !== undefined) return { reason: 'InvalidSpec', message: problem };
  const longest = podName(count, Math.max(0, count.spec.count - 1));
  if (longest.length <= MAX_POD_NAME_LENGTH) return undefined;
  const message = `Pod name ${longest.slice(0, 40)}... would have ${longest.length} characters, ${MAX_POD_NAME_LENGTH} are allowed; use a Count with a shorter name`;
  return { reason: 'NameTooLong', message };
}

/** Returns the desired Pod with an ordinal. */
export function buildPod(
  count: DeepReadonly<Count>,
  ordinal: number,
): Draft<Pod> & { metadata: { name: string } } {
  const { namespace } = count.metadata;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: podName(count, ordinal),
      ...(namespace && { namespace }),
      labels: podLabels(count),
      ownerReferences: [controllerReference(count)],
    },
    spec: {
      // The image is chosen by the user: it gets no access to the API server.
      automountServiceAccountToken: false,
      containers: [{ name: 'app', image: count.spec.name }],
    },
  };
}

function podName(count: DeepReadonly<Count>, ordinal: number): string {
  return `${count.metadata.name}-${ordinal}`;
}

/** Returns the key of the Count that may want a Pod of this name, or undefined. */
export function countKeyOf({ namespace, name }: ObjectName): ObjectKey | undefined {
  const count = /^(.+)-\d{1,6}$/.exec(name)?.[1];
  return count === undefined ? undefined : objectKey(namespace, count);
}

/** Returns the ordinal in the name of a Pod, or undefined if the Count does not use that name. */
function ordinalOf(
  count: DeepReadonly<Count>,
  { metadata }: DeepReadonly<Pod>,
): number | undefined {
  const ordinal = Number(/-(\d{1,6})$/.exec(metadata.name)?.[1]);
  return metadata.name === podName(count, ordinal) ? ordinal : undefined;
}

/** Returns the label selector of the Count's Pods in the string form that autoscalers read. */
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

/** Returns whether the Pod runs another image than the spec asks for. */
export function isOutdated(count: DeepReadonly<Count>, pod: DeepReadonly<Pod>): boolean {
  return pod.spec?.containers[0]?.image !== count.spec.name;
}

/** Difference between the desired and the actual Pods. */
export interface Plan {
  /** Ordinals without a Pod, lowest first. */
  readonly create: readonly number[];
  /** Pods to delete, highest ordinal first. */
  readonly delete: readonly DeepReadonly<Pod>[];
}

/**
 * Compares the Pods that a Count owns with its spec.
 *
 * A terminating Pod keeps its ordinal, because its name is taken. Finished Pods and those beyond the
 * count are deleted at once. Ready Pods with an outdated image are replaced one at a time, and only
 * while all ordinals are ready: an image that does not start costs one Pod. Pods with an outdated image
 * that are not ready are deleted at once.
 */
export function planPods(count: DeepReadonly<Count>, owned: readonly DeepReadonly<Pod>[]): Plan {
  const desired = count.spec.count;
  const byOrdinal = new Map<number, DeepReadonly<Pod>>();
  const surplus: DeepReadonly<Pod>[] = [];
  for (const pod of owned) {
    const ordinal = ordinalOf(count, pod);
    if (ordinal !== undefined && ordinal < desired) byOrdinal.set(ordinal, pod);
    else surplus.push(pod);
  }
  const placed = [...byOrdinal.values()];
  const outdated = placed.filter((pod) => isActive(pod) && isOutdated(count, pod));
  const settled = placed.length === desired && placed.every((pod) => isActive(pod) && isReady(pod));
  const replaced = settled
    ? outdated.toSorted(highestFirst(count)).slice(0, 1)
    : outdated.filter((pod) => !isReady(pod));
  return {
    create: Array.from({ length: desired }, (_, ordinal) => ordinal).filter(
      (ordinal) => !byOrdinal.has(ordinal),
    ),
    delete: [...surplus, ...placed.filter(isFinished), ...replaced]
      .filter((pod) => pod.metadata.deletionTimestamp === undefined)
      .toSorted(highestFirst(count)),
  };
}

function highestFirst(count: DeepReadonly<Count>) {
  const rank = (pod: DeepReadonly<Pod>) => ordinalOf(count, pod) ?? Infinity;
  return (a: DeepReadonly<Pod>, b: DeepReadonly<Pod>): number =>
    rank(b) > rank(a) ? 1 : rank(b) < rank(a) ? -1 : a.metadata.name < b.metadata.name ? 1 : -1;
}
