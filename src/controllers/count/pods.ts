import type { Pod } from '../../api/builtin.ts';
import type { Count, CountSpec } from '../../api/generated/count.ts';
import { labelValue } from '../../api/label-selector.ts';
import { controllerReference } from '../../api/metadata.ts';
import { objectKey } from '../../api/object-key.ts';
import type { ObjectKey } from '../../api/object-key.ts';
import type { DeepReadonly, Draft } from '../../api/object.ts';
import { isActive, isFinished, isPodReady } from '../../api/workloads.ts';
import { LruMap } from '../../util/lru-map.ts';
import { MAX_NAME_LENGTH, specProblem } from '../spec-problem.ts';
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
export function podProblem(
  count: DeepReadonly<Count>,
): { readonly reason: string; readonly message: string } | undefined {
  const problem = specProblem<CountSpec>(count.spec, RULES);
  if (problem !== undefined) return { reason: 'InvalidSpec', message: problem };
  const longest = podName(count, Math.max(0, count.spec.count - 1));
  if (longest.length <= MAX_NAME_LENGTH) return undefined;
  const message = `Pod name ${longest.slice(0, 40)}... would have ${longest.length} characters, ${MAX_NAME_LENGTH} are allowed; use a Count with a shorter name`;
  return { reason: 'NameTooLong', message };
}

/** Returns the desired Pod with an ordinal. */
export function buildCountPod(count: DeepReadonly<Count>, ordinal: number) {
  const { namespace } = count.metadata;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: podName(count, ordinal),
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

function podName({ metadata }: DeepReadonly<Count>, ordinal: number): string {
  return `${metadata.name}-${ordinal}`;
}

export function podLabels({ metadata }: DeepReadonly<Count>): Record<string, string> {
  return {
    'app.kubernetes.io/instance': labelValue(metadata.name),
    'app.kubernetes.io/managed-by': COUNT_COMPONENT,
  };
}

/** Returns the key of the Count that may want a Pod of this name, or undefined. */
export function countKeyOf({ metadata }: DeepReadonly<Pod>): ObjectKey | undefined {
  const count = /^(.+)-\d{1,6}$/.exec(metadata.name)?.[1];
  return count === undefined ? undefined : objectKey(metadata.namespace, count);
}

/** Returns the ordinal in the name of a Pod; infinite if the Count does not use that name. */
function ordinalOf(count: DeepReadonly<Count>, { metadata }: DeepReadonly<Pod>): number {
  const ordinal = Number(/-(\d{1,6})$/.exec(metadata.name)?.[1]);
  return metadata.name === podName(count, ordinal) ? ordinal : Infinity;
}

/** Returns whether the Pod was created for another image than the spec asks for. */
export function isOutdated({ spec }: DeepReadonly<Count>, pod: DeepReadonly<Pod>): boolean {
  return askedOf(pod) !== spec.name;
}

function askedOf({ metadata, spec }: DeepReadonly<Pod>): string | undefined {
  // Pods of earlier versions have no annotation.
  return metadata.annotations?.[IMAGE] ?? spec?.containers[0]?.image;
}

/** Number of Pods whose annotation admission has changed that are remembered. */
const MAX_CHANGED = 10_000;

/**
 * The images that were asked for with Pods whose annotation admission has changed. Such Pods and those that look the
 * same are not outdated: a new Pod would look the same, too. After a restart of the program, one Pod of each such Count
 * is replaced to find that out.
 */
export class AskedImages {
  readonly #asked = new LruMap<string, string>(MAX_CHANGED);

  /** Records a Pod as the server returned it. */
  created({ spec }: DeepReadonly<Count>, pod: DeepReadonly<Pod>): void {
    if (askedOf(pod) !== spec.name) this.#asked.set(pod.metadata.uid, spec.name);
  }

  /** Returns the Pods of a Count with the annotation that was asked for. */
  restore({ spec }: DeepReadonly<Count>, pods: readonly DeepReadonly<Pod>[]): DeepReadonly<Pod>[] {
    const asked = pods.map(({ metadata }) => this.#asked.get(metadata.uid));
    const samples = pods.filter((_, index) => asked[index] === spec.name);
    return pods.map((pod, index) => {
      const isSame = samples.some((sample) => looksLike(pod, sample));
      const image = asked[index] ?? (isSame ? spec.name : undefined);
      if (image === undefined) return pod;
      const annotations = { ...pod.metadata.annotations, [IMAGE]: image };
      return { ...pod, metadata: { ...pod.metadata, annotations } };
    });
  }
}

function looksLike(one: DeepReadonly<Pod>, other: DeepReadonly<Pod>): boolean {
  const imageOf = ({ spec }: DeepReadonly<Pod>) => spec?.containers[0]?.image;
  return askedOf(one) === askedOf(other) && imageOf(one) === imageOf(other);
}

/** Returns whether the selector in the status matches the Pod. */
export function isSelected(count: DeepReadonly<Count>, { metadata }: DeepReadonly<Pod>): boolean {
  return Object.entries(podLabels(count)).every(
    ([name, value]) => metadata.labels?.[name] === value,
  );
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
): { readonly create: readonly number[]; readonly delete: readonly DeepReadonly<Pod>[] } {
  const desired = count.spec.count;
  const highestFirst = owned.toSorted(
    (a, b) =>
      ordinalOf(count, b) - ordinalOf(count, a) || (a.metadata.name < b.metadata.name ? 1 : -1),
  );
  const placed = highestFirst.filter((pod) => ordinalOf(count, pod) < desired);
  const outdated = placed.filter((pod) => isActive(pod) && isOutdated(count, pod));
  const settled =
    placed.length === desired && placed.every((pod) => isActive(pod) && isPodReady(pod));
  const replaced = settled ? outdated.slice(0, 1) : outdated.filter((pod) => !isPodReady(pod));
  const taken = new Set(placed.map((pod) => ordinalOf(count, pod)));
  return {
    create: [...Array(desired).keys()].filter((ordinal) => !taken.has(ordinal)),
    delete: highestFirst.filter(
      (pod) =>
        pod.metadata.deletionTimestamp === undefined &&
        (ordinalOf(count, pod) >= desired || isFinished(pod) || replaced.includes(pod)),
    ),
  };
}
