import { isApiError, isNamespaceTerminating } from '../../api/api-error.ts';
import { PODS } from '../../api/builtin.ts';
import type { Pod } from '../../api/builtin.ts';
import { controllerReference } from '../../api/metadata.ts';
import type { DeepReadonly, Draft, KubernetesObject } from '../../api/object.ts';
import { isPodReady, readySince } from '../../api/workloads.ts';
import { deleteOwnedObject, isReplaced, slowStart } from '../../manager/owned-object.ts';
import type { OwnedObjectContext } from '../../manager/owned-object.ts';
import type { EventRecorder } from '../../record/event-recorder.ts';
import { messageOf } from '../../util/values.ts';
import { FIELD_MANAGER } from './field-manager.ts';

/** Maximum number of Pods that one sync creates or deletes, as in kube-controller-manager. */
export const BURST_REPLICAS = 500;

export type PodTemplate = Pick<Pod, 'spec'> & { metadata?: Partial<Pod['metadata']> };

/** Failures in a row after which Pods that differ are no longer created: admission may deny some of them. */
export const MAX_REJECTIONS = 5;

/** Creates and deletes the Pods of workloads, and records the events of kube-controller-manager. */
export class PodControl {
  readonly #recorder: EventRecorder;

  constructor(recorder: EventRecorder) {
    this.#recorder = recorder;
  }

  /**
   * Creates Pods in growing batches.
   *
   * @param maxFailures number of failures in a row after which it stops
   * @returns the first failure, or undefined
   */
  async create(
    { client, signal }: OwnedObjectContext,
    owner: DeepReadonly<KubernetesObject>,
    drafts: readonly Draft<Pod>[],
    maxFailures: number = 1,
  ): Promise<unknown> {
    const create = async (draft: Draft<Pod>): Promise<unknown> => {
      try {
        const options = { fieldManager: FIELD_MANAGER, signal };
        const { metadata } = await client.create(PODS, draft, options);
        this.#recorder.normal(owner, 'SuccessfulCreate', `Created pod: ${metadata.name}`);
        return undefined;
      } catch (error) {
        if (isNamespaceTerminating(error)) return undefined;
        this.#recorder.warning(owner, 'FailedCreate', `Error creating: ${messageOf(error)}`);
        return error;
      }
    };
    return slowStart(drafts.slice(0, BURST_REPLICAS), create, maxFailures);
  }

  /**
   * Deletes Pods by uid.
   *
   * @returns the first failure, or undefined
   */
  async delete(
    context: OwnedObjectContext,
    owner: DeepReadonly<KubernetesObject>,
    pods: readonly DeepReadonly<Pod>[],
  ): Promise<unknown> {
    const failures = await Promise.all(
      pods.slice(0, BURST_REPLICAS).map(async (pod) => {
        try {
          if (await deleteOwnedObject(context, PODS, pod)) {
            const message = `Deleted pod: ${pod.metadata.name}`;
            this.#recorder.normal(owner, 'SuccessfulDelete', message);
          }
          return undefined;
        } catch (error) {
          if (!isApiError(error, 'conflict')) {
            this.#recorder.warning(owner, 'FailedDelete', `Error deleting: ${messageOf(error)}`);
          }
          return error;
        }
      }),
    );
    return failures.find((failure) => failure !== undefined);
  }
}

/**
 * Merges fields into the status of a Pod.
 *
 * @returns false if the Pod is gone or another one has its name: the event of that change enqueues its key
 */
export async function patchPodStatus(
  { client, signal }: OwnedObjectContext,
  { metadata }: DeepReadonly<Pod>,
  status: object,
  fieldManager: string,
): Promise<boolean> {
  const body = { metadata: { uid: metadata.uid }, status };
  const options = { subresource: 'status', fieldManager, signal } as const;
  try {
    await client.patch<KubernetesObject>(PODS, metadata, { type: 'strategic', body }, options);
    return true;
  } catch (error) {
    if (isReplaced(error)) return false;
    throw error;
  }
}

/** Returns a Pod of a template with a generated name. As upstream, it ignores other metadata of the template. */
export function buildTemplatePod(
  owner: DeepReadonly<KubernetesObject>,
  template: DeepReadonly<PodTemplate> | undefined,
): Draft<Pod> {
  const { name, namespace = '' } = owner.metadata;
  const { metadata, spec } = structuredClone(template ?? {}) as PodTemplate;
  const { labels, annotations, finalizers } = metadata ?? {};
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...(labels && { labels }),
      ...(annotations && { annotations }),
      ...(finalizers && { finalizers }),
      generateName: `${name}-`,
      namespace,
      ownerReferences: [controllerReference(owner)],
    },
    ...(spec && { spec }),
  };
}

/**
 * Returns the number of Pods that have been ready for `minReadySeconds`, and the milliseconds until the
 * next Pod becomes available.
 */
export function availability(
  pods: readonly DeepReadonly<Pod>[],
  minReadySeconds: number,
  nowMs: number,
): { readonly available: number; readonly nextMs: number | undefined } {
  const waitsMs = pods
    .map(readySince)
    .filter((sinceMs) => sinceMs !== undefined)
    .map((sinceMs) => (minReadySeconds === 0 ? 0 : sinceMs + minReadySeconds * 1000 - nowMs));
  const pending = waitsMs.filter((ms) => ms > 0);
  return {
    available: waitsMs.length - pending.length,
    nextMs: pending.length > 0 ? pending.reduce((next, ms) => Math.min(next, ms)) : undefined,
  };
}

/** Annotation of a Pod; a ReplicaSet deletes Pods of low cost first. */
const DELETION_COST = 'controller.kubernetes.io/pod-deletion-cost';

/** Phases of active Pods, those to be deleted first. */
const PHASES: readonly string[] = ['Pending', 'Unknown', 'Running'];

type PodOrder = (a: DeepReadonly<Pod>, b: DeepReadonly<Pod>) => number;

/**
 * Compares Pods for deletion: first those without a node, not running, not ready, those that became ready last, with the
 * most restarts, and the newest. Unlike upstream, it compares exact times, not their order of magnitude.
 */
export const byDeletionPriority: PodOrder = (a, b) => compareState(a, b) || compareHistory(a, b);

/**
 * Returns the order in which a ReplicaSet deletes Pods. For Pods in the same state, it prefers a low deletion cost, and
 * then a node with many Pods of the same Deployment.
 *
 * @param related active Pods of all ReplicaSets of the Deployment
 */
export function byDeletionCost(related: readonly DeepReadonly<Pod>[]): PodOrder {
  const onNode = Map.groupBy(related, ({ spec }) => spec?.nodeName ?? '');
  const count = ({ spec }: DeepReadonly<Pod>) => onNode.get(spec?.nodeName ?? '')?.length ?? 0;
  return (a, b) =>
    compareState(a, b) ||
    deletionCost(a) - deletionCost(b) ||
    count(b) - count(a) ||
    compareHistory(a, b);
}

function deletionCost({ metadata }: DeepReadonly<Pod>): number {
  const text = metadata.annotations?.[DELETION_COST] ?? '';
  const cost = /^(?:0|-\d+|[1-9]\d*)$/.test(text) ? Number(text) : 0;
  // Go parses 32 bits.
  return cost === (cost | 0) ? cost : 0;
}

const compareState: PodOrder = (a, b) => {
  const rank = (pod: DeepReadonly<Pod>) =>
    (pod.spec?.nodeName ? 10 : 0) +
    2 * PHASES.indexOf(pod.status?.phase ?? 'Pending') +
    (isPodReady(pod) ? 1 : 0);
  return rank(a) - rank(b);
};

const compareHistory: PodOrder = (a, b) => {
  const ready = (pod: DeepReadonly<Pod>) => readySince(pod) || Infinity;
  const restarts = (statuses: DeepReadonly<ContainerStatuses> = []) =>
    statuses.reduce((most, { restartCount }) => Math.max(most, restartCount), 0);
  const regular = ({ status }: DeepReadonly<Pod>) => restarts(status?.containerStatuses);
  const sidecars = (pod: DeepReadonly<Pod>) => restarts(sidecarStatuses(pod));
  return (
    (isPodReady(a) && isPodReady(b) && ready(b) - ready(a)) ||
    regular(b) - regular(a) ||
    sidecars(b) - sidecars(a) ||
    byAge(b, a)
  );
};

type ContainerStatuses = NonNullable<NonNullable<Pod['status']>['containerStatuses']>;

/** Returns the statuses of the init containers that run as long as the Pod. */
export function sidecarStatuses({
  spec,
  status,
}: DeepReadonly<Pod>): DeepReadonly<ContainerStatuses> {
  const isSidecar = (name: string) =>
    spec?.initContainers?.some((each) => each.name === name && each.restartPolicy === 'Always');
  return (status?.initContainerStatuses ?? []).filter(({ name }) => isSidecar(name));
}

/** Compares objects by age, oldest first. */
export function byAge(
  { metadata: a }: DeepReadonly<KubernetesObject>,
  { metadata: b }: DeepReadonly<KubernetesObject>,
): number {
  if (a.creationTimestamp !== b.creationTimestamp) {
    return a.creationTimestamp < b.creationTimestamp ? -1 : 1;
  }
  return a.name < b.name ? -1 : 1;
}

/** Removes counts that are 0, which the API server omits. */
export function nonZero<T extends string>(
  all: Readonly<Record<T, number>>,
): Partial<Record<T, number>> {
  return Object.fromEntries(
    Object.entries<number>(all).filter(([, count]) => count !== 0),
  ) as Partial<Record<T, number>>;
}
