import type { Pod } from '../../api/builtin.ts';
import { covers } from '../../api/equal.ts';
import type { Count, CountSpec, CountStatus } from '../../api/generated/count.ts';
import { formatLabelSelector, labelValue } from '../../api/label-selector.ts';
import { controllerReference } from '../../api/metadata.ts';
import type { DeepReadonly, Draft } from '../../api/object.ts';
import { ordinalName, ordinalIn } from '../../api/ordinal-name.ts';
import { withReadiness } from '../../api/readiness.ts';
import type { Readiness } from '../../api/readiness.ts';
import { isActive, isFinished, isPodReady } from '../../api/workloads.ts';
import { AdmittedValues } from '../../manager/admitted-values.ts';
import type { AdmittedValue } from '../../manager/admitted-values.ts';
import type { OwnedObjectFailure } from '../../manager/owned-object-control.ts';
import { longNameProblem, specProblem } from '../spec-problem.ts';
import type { SpecRules } from '../spec-problem.ts';

/** Name of the controller in managedFields, labels and events. */
export const COUNT_COMPONENT = 'count-controller';

/** Annotation with the image that was asked for. Admission may change the image itself. */
export const IMAGE = 'demo.mark8s.io/image';

const RULES: SpecRules<CountSpec> = {
  name: { type: 'string' },
  count: { type: 'integer', minimum: 0, maximum: 1000 },
};

/** Returns why the Count cannot be reconciled until its user changes it, or undefined. */
export function podProblem(count: DeepReadonly<Count>) {
  const problem = specProblem<CountSpec>(count.spec, RULES);
  if (problem !== undefined) return { reason: 'InvalidSpec', message: problem };
  const longest = ordinalName(count, Math.max(0, count.spec.count - 1));
  const message = longNameProblem('Pod name', longest, 'use a Count with a shorter name');
  return message === undefined ? undefined : { reason: 'NameTooLong', message };
}

/** Returns the desired Pod with an ordinal. */
export function buildCountPod(count: DeepReadonly<Count>, ordinal: number) {
  const { namespace } = count.metadata;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: ordinalName(count, ordinal),
      ...(namespace && { namespace }),
      labels: podLabels(count),
      annotations: { [IMAGE]: count.spec.name },
      ownerReferences: [controllerReference(count)],
    },
    spec: {
      // The image is chosen by the user: it gets no access to the API server.
      automountServiceAccountToken: false,
      containers: [{ name: 'app', image: count.spec.name }],
    },
  } satisfies Draft<Pod>;
}

export function podLabels({ metadata }: DeepReadonly<Count>): Record<string, string> {
  return {
    'app.kubernetes.io/instance': labelValue(metadata.name),
    'app.kubernetes.io/managed-by': COUNT_COMPONENT,
  };
}

/** Returns the image that a Pod was created for, and the one that it has. */
export function imageOf(
  { metadata, spec }: DeepReadonly<Count>,
  pod: DeepReadonly<Pod>,
): AdmittedValue {
  const form = pod.spec?.containers[0]?.image;
  // Pods of earlier versions have no annotation.
  const stored = pod.metadata.annotations?.[IMAGE] ?? form ?? '';
  // The generation of a Pod is 1 until another client changes its spec.
  const isChanged = (pod.metadata.generation ?? 1) > 1;
  return { owner: metadata.uid, wanted: spec.name, stored, form, isChanged };
}

/** Returns whether the selector in the status matches the Pod. */
export function isSelected(count: DeepReadonly<Count>, { metadata }: DeepReadonly<Pod>): boolean {
  return covers(metadata.labels ?? {}, podLabels(count));
}

/**
 * Compares the Pods that a Count owns with its spec. Returns the ordinals of Pods to create, lowest first, and
 * the Pods to delete, highest ordinal first.
 *
 * A terminating Pod keeps its ordinal, because its name is taken. Finished Pods and those beyond the
 * count are deleted at once. Ready Pods with an outdated image are replaced one at a time, and only
 * while all ordinals are ready: an image that does not start costs one Pod. Pods with an outdated image
 * that are not ready are deleted at once.
 */
export function planPods(
  count: DeepReadonly<Count>,
  owned: readonly DeepReadonly<Pod>[],
  images: AdmittedValues = new AdmittedValues(),
): { readonly create: readonly number[]; readonly delete: readonly DeepReadonly<Pod>[] } {
  const desired = count.spec.count;
  const highestFirst = owned.toSorted(
    (a, b) =>
      ordinalIn(count, b) - ordinalIn(count, a) || (a.metadata.name < b.metadata.name ? 1 : -1),
  );
  const placed = highestFirst.filter((pod) => ordinalIn(count, pod) < desired);
  const outdated = placed.filter((pod) => isActive(pod) && images.isOutdated(imageOf(count, pod)));
  const settled =
    placed.length === desired && placed.every((pod) => isActive(pod) && isPodReady(pod));
  const replaced = settled ? outdated.slice(0, 1) : outdated.filter((pod) => !isPodReady(pod));
  const taken = new Set(placed.map((pod) => ordinalIn(count, pod)));
  return {
    create: [...Array(desired).keys()].filter((ordinal) => !taken.has(ordinal)),
    delete: highestFirst.filter(
      (pod) =>
        pod.metadata.deletionTimestamp === undefined &&
        (ordinalIn(count, pod) >= desired || isFinished(pod) || replaced.includes(pod)),
    ),
  };
}

/**
 * Returns the status of a Count with the Pods `owned`. It counts those that `selector` matches, because autoscalers find
 * the Pods by it. `healthy` counts ready Pods; `Ready` also requires that they run the image of the spec.
 */
export function buildCountStatus(
  count: DeepReadonly<Count>,
  owned: readonly DeepReadonly<Pod>[],
  failure: OwnedObjectFailure | undefined,
  now: number,
  images: AdmittedValues = new AdmittedValues(),
): CountStatus {
  const active = owned.filter((pod) => isActive(pod) && isSelected(count, pod));
  const ready = active.filter(isPodReady);
  const desired = count.spec.count;
  const observedGeneration = count.metadata.generation ?? 0;
  const healthy = active.length === desired && ready.length === desired;
  const current = ready.filter((pod) => !images.isOutdated(imageOf(count, pod))).length;
  const progress = `${current} of ${desired} Pods are ready`;
  const isComplete = healthy && current === desired;
  const { reason = isComplete ? 'PodsReady' : 'PodsNotReady', message = progress } = failure ?? {};
  const kind = failure?.stalled ? 'stalled' : isComplete && !failure ? 'ready' : 'reconciling';
  const readiness: Readiness = { kind, reason, message, progress };
  return {
    observedGeneration,
    healthy,
    replicas: active.length,
    readyReplicas: ready.length,
    selector: formatLabelSelector({ matchLabels: podLabels(count) }),
    conditions: withReadiness(count.status?.conditions, readiness, observedGeneration, now),
  };
}
