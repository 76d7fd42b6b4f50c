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

/** Compares Pods for deletion: first those without a node, not running, not ready, then the newest. */
export function byDeletionPriority(a: DeepReadonly<Pod>, b: DeepReadonly<Pod>): number {
  const rank = (pod: DeepReadonly<Pod>) =>
    (pod.spec?.nodeName ? 4 : 0) +
    (pod.status?.phase === 'Running' ? 2 : 0) +
    (isPodReady(pod) ? 1 : 0);
  return rank(a) - rank(b) || byAge(b, a);
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
