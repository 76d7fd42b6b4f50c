import { isApiError, isNamespaceTerminating } from '../../api/api-error.ts';
import { DEPLOYMENTS, PODS, REPLICA_SETS } from '../../api/builtin.ts';
import type { Deployment, Pod, ReplicaSet } from '../../api/builtin.ts';
import type { ObjectKey } from '../../api/object-key.ts';
import type { DeepReadonly, Draft } from '../../api/object.ts';
import { controllerReference, isControlledBy } from '../../api/metadata.ts';
import { isFinished, rolloutOf } from '../../api/workloads.ts';
import { Controller } from '../../manager/controller.ts';
import type { SyncContext } from '../../manager/controller-options.ts';
import { OWNER_INDEX, mapToOwner } from '../../manager/enqueue.ts';
import { StatusWriter } from '../../manager/status-writer.ts';
import type { EventRecorder } from '../../record/event-recorder.ts';
import { goQuote } from '../../util/go-quote.ts';
import { done, requeueAfter } from '../../workqueue/outcome.ts';
import { FIELD_MANAGER } from '../support/field-manager.ts';
import type { ClusterDeps } from '../support/resource-monitors.ts';
import { deploymentStatus, progressDeadlineMs } from './deployment-status.ts';
import { amountOf, nextStep } from './rolling-update.ts';
import type { PodTemplateSpec } from './template-hash.ts';
import { templateHash } from './template-hash.ts';
import { equalJson } from '../../api/equal.ts';
import { messageOf } from '../../util/values.ts';
import { claim, claimable, mapToClaimants } from '../support/claim.ts';
import { forEachObject } from '../../manager/rejections.ts';

/**
 * Deployment controller. Creates a ReplicaSet for each Pod template, and scales the new ReplicaSet up
 * and the old ones down within `maxSurge` and `maxUnavailable`. Each sync makes one step; the changes
 * of the ReplicaSets trigger the next. Keeps `revisionHistoryLimit` old ReplicaSets for
 * `kubectl rollout undo`.
 */
export function deployments(deps: ClusterDeps): Controller {
  const cache = deps.informers.for(DEPLOYMENTS);
  const sets = claimable(deps, REPLICA_SETS);
  const pods = claimable(deps, PODS);
  const hasPods = (set: DeepReadonly<ReplicaSet>) =>
    pods.lister.byIndex(OWNER_INDEX, set.metadata.uid).some((pod) => !isFinished(pod));
  // The strategy Recreate waits for terminating Pods, which the ReplicaSets no longer count.
  const toRecreating = (pod: DeepReadonly<Pod>): ObjectKey | undefined => {
    const setKey = mapToOwner(REPLICA_SETS)(pod);
    const set = typeof setKey === 'string' ? sets.lister.get(setKey) : undefined;
    const key = set && mapToOwner(DEPLOYMENTS)(set);
    if (typeof key !== 'string') return undefined;
    return cache.lister.get(key)?.spec?.strategy?.type === 'Recreate' ? key : undefined;
  };
  const statuses = new StatusWriter(DEPLOYMENTS, FIELD_MANAGER);
  const recorder = deps.events.recorder('deployment-controller');
  return new Controller(deps, {
    name: 'deployment',
    kind: DEPLOYMENTS.kind,
    concurrency: 10,
    sync: async (key, context) => {
      const deployment = cache.lister.get(key);
      if (!deployment?.spec) return done();
      const claimed = await claim(context, {
        owner: deployment,
        ownerResource: DEPLOYMENTS,
        owned: sets,
      });
      const owned = claimed.toSorted(byRevision);
      const rollout = new Rollout(deployment, owned, { ...context, hasPods, recorder });
      if (deployment.metadata.deletionTimestamp === undefined) {
        await rollout.run();
        // The event of this write triggers the next sync, which updates the status.
        if (await rollout.updateRevision()) return done();
      }
      const nowMs = deps.clock.now();
      const status = deploymentStatus(deployment, rollout, nowMs);
      if (statuses.differs(deployment, status)) await statuses.write(context, deployment, status);
      // As upstream: a rollout that fails can be undone to each revision.
      if (deployment.spec.paused || rolloutOf({ ...deployment, status }).isComplete) {
        await rollout.deleteOldSets();
      }
      const leftMs = progressDeadlineMs(deployment, status, nowMs);
      return leftMs === undefined ? done() : requeueAfter(leftMs);
    },
  })
    .for(cache)
    .watches(sets, mapToClaimants(cache))
    .watches(pods, toRecreating);
}

interface RolloutContext extends SyncContext {
  readonly hasPods: (set: DeepReadonly<ReplicaSet>) => boolean;
  readonly recorder: EventRecorder;
}

/** One sync of one Deployment. */
class Rollout {
  readonly #deployment: DeepReadonly<Deployment>;
  readonly #context: RolloutContext;
  /** Owned ReplicaSets, oldest revision first. */
  readonly owned: readonly DeepReadonly<ReplicaSet>[];
  /** ReplicaSet of the current template; undefined until it exists. */
  current: DeepReadonly<ReplicaSet> | undefined;
  collisions: number;

  constructor(
    deployment: DeepReadonly<Deployment>,
    owned: readonly DeepReadonly<ReplicaSet>[],
    context: RolloutContext,
  ) {
    this.#deployment = deployment;
    this.#context = context;
    this.owned = owned;
    const { spec, status } = deployment;
    this.collisions = status?.collisionCount ?? 0;
    if (!spec) return;
    // Admission may have changed the template of the ReplicaSet. Upstream creates others without end then.
    const name = setName(deployment, templateHash(spec.template, this.collisions));
    this.current =
      owned.find((set) => isOfTemplate(set, spec.template)) ??
      owned.find(({ metadata }) => metadata.name === name);
  }

  async run(): Promise<void> {
    const { spec } = this.#deployment;
    if (!spec) return;
    const old = this.owned.filter((set) => set !== this.current);
    if (spec.paused) return this.#scaleLatest();
    if (spec.strategy?.type === 'Recreate') {
      await Promise.all(old.map((set) => this.#scale(set, 0)));
      if (old.some(this.#context.hasPods)) return;
      await this.#ensureCurrent(spec.replicas ?? 1);
    } else {
      await this.#roll(old);
    }
  }

  /**
   * Updates the revision annotation of the Deployment, which `kubectl rollout` reads.
   *
   * @returns whether the annotation changed
   */
  async updateRevision(): Promise<boolean> {
    const { client, signal } = this.#context;
    const { name, namespace, uid, annotations } = this.#deployment.metadata;
    const revision = this.current?.metadata.annotations?.[REVISION];
    if (revision === undefined || revision === annotations?.[REVISION]) return false;
    // A ReplicaSet that is used again gets the next revision first.
    if (this.current !== this.owned.at(-1)) return false;
    const body = { metadata: { uid, annotations: { [REVISION]: revision } } };
    // Like kube-controller-manager, write to the status subresource: a write to the Deployment itself
    // increases its generation.
    const options = { fieldManager: FIELD_MANAGER, signal, subresource: 'status' };
    await client.patch(DEPLOYMENTS, { name, namespace }, { type: 'merge', body }, options);
    return true;
  }

  async #roll(old: readonly DeepReadonly<ReplicaSet>[]): Promise<void> {
    const { spec } = this.#deployment;
    const replicas = spec?.replicas ?? 1;
    const { maxUnavailable } = spec?.strategy?.rollingUpdate ?? {};
    const plan = {
      replicas,
      maxSurge: surgeOf(this.#deployment),
      maxUnavailable: amountOf(maxUnavailable, replicas, 'down'),
    };
    const step = nextStep(plan, sizeOf(this.current), old.map(sizeOf));
    await this.#ensureCurrent(step.current);
    await Promise.all(old.map((set, index) => this.#scale(set, step.old[index] ?? 0)));
  }

  /** Scales the latest ReplicaSet of a paused Deployment. */
  async #scaleLatest(): Promise<void> {
    const latest = this.current ?? this.owned.at(-1);
    if (latest) await this.#scale(latest, this.#deployment.spec?.replicas ?? 1);
  }

  async #ensureCurrent(replicas: number): Promise<void> {
    const { client, signal } = this.#context;
    const latest = this.owned.map(revisionOf).reduce((a, b) => (a > b ? a : b), 0n);
    if (this.current) {
      const used = revisionOf(this.current);
      const isReused = used < latest;
      await this.#scale(this.current, replicas, {
        ...inheritedAnnotations(this.#deployment),
        ...(isReused && { [REVISION]: `${latest + 1n}` }),
        ...(isReused && used > 0n && { [REVISION_HISTORY]: revisionHistory(this.current, used) }),
      });
      return;
    }
    const draft = buildSet(this.#deployment, replicas, latest + 1n, this.collisions);
    try {
      await client.create(REPLICA_SETS, draft, { fieldManager: FIELD_MANAGER, signal });
      if (replicas > 0) this.#recordScaling(draft.metadata.name, 0, replicas);
    } catch (error) {
      if (isNamespaceTerminating(error)) return;
      if (!isApiError(error, 'alreadyExists')) {
        const message = `Failed to create new replica set ${goQuote(draft.metadata.name)}: ${messageOf(error)}`;
        this.#context.recorder.warning(this.#deployment, 'ReplicaSetCreateError', message);
        throw error;
      }
      const existing = await client.get(REPLICA_SETS, draft.metadata, { signal });
      // If it is owned, its event is still to come. Otherwise another template has the same hash.
      if (!isControlledBy(existing, this.#deployment)) this.collisions++;
    }
  }

  async #scale(
    set: DeepReadonly<ReplicaSet>,
    replicas: number,
    annotations: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    const { replicas: before = 1 } = set.spec ?? {};
    const isAnnotated = Object.entries(annotations).every(
      ([name, value]) => set.metadata.annotations?.[name] === value,
    );
    if (before === replicas && isAnnotated) return;
    const { client, signal } = this.#context;
    const { name, namespace, uid, resourceVersion } = set.metadata;
    const all = { ...annotations, ...(before !== replicas && sizeAnnotations(this.#deployment)) };
    const body = { metadata: { uid, resourceVersion, annotations: all }, spec: { replicas } };
    const options = { fieldManager: FIELD_MANAGER, signal };
    await client.patch(REPLICA_SETS, { name, namespace }, { type: 'merge', body }, options);
    if (before !== replicas) this.#recordScaling(name, before, replicas);
  }

  #recordScaling(name: string, from: number, to: number): void {
    const direction = from < to ? 'up' : 'down';
    const message = `Scaled ${direction} replica set ${name} from ${from} to ${to}`;
    this.#context.recorder.normal(this.#deployment, 'ScalingReplicaSet', message);
  }

  /** Deletes the ReplicaSets beyond the revision history limit, oldest first, except those that have or want Pods. */
  async deleteOldSets(): Promise<void> {
    const { deletionTimestamp } = this.#deployment.metadata;
    if (deletionTimestamp !== undefined) return;
    const { client, signal } = this.#context;
    const limit = this.#deployment.spec?.revisionHistoryLimit ?? 10;
    const old = this.owned.filter(
      (set) => set !== this.current && set.metadata.deletionTimestamp === undefined,
    );
    const surplus = old.slice(0, Math.max(0, old.length - limit));
    const idle = surplus.filter(({ spec, status }) => spec?.replicas === 0 && !status?.replicas);
    await forEachObject(idle, ({ metadata }) => {
      const { uid, resourceVersion } = metadata;
      return client.delete(REPLICA_SETS, metadata, { uid, resourceVersion, signal });
    });
  }
}

function sizeOf(set: DeepReadonly<ReplicaSet> | undefined): {
  replicas: number;
  available: number;
} {
  return {
    replicas: set ? (set.spec?.replicas ?? 1) : 0,
    available: set?.status?.availableReplicas ?? 0,
  };
}

function setName({ metadata }: DeepReadonly<Deployment>, hash: string): string {
  return `${metadata.name}-${hash}`;
}

function buildSet(
  deployment: DeepReadonly<Deployment>,
  replicas: number,
  revision: bigint,
  collisions: number,
): Draft<ReplicaSet> & { metadata: { name: string } } {
  const { namespace = '' } = deployment.metadata;
  const spec = structuredClone(deployment.spec) as NonNullable<Deployment['spec']>;
  const hash = templateHash(spec.template, collisions);
  const labels = { ...spec.template.metadata?.labels, [HASH_LABEL]: hash };
  return {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: {
      name: setName(deployment, hash),
      namespace,
      labels,
      annotations: {
        ...inheritedAnnotations(deployment),
        ...sizeAnnotations(deployment),
        [REVISION]: `${revision}`,
      },
      ownerReferences: [controllerReference(deployment)],
    },
    spec: {
      replicas,
      ...(spec.minReadySeconds && { minReadySeconds: spec.minReadySeconds }),
      selector: {
        ...spec.selector,
        matchLabels: { ...spec.selector.matchLabels, [HASH_LABEL]: hash },
      },
      template: { ...spec.template, metadata: { ...spec.template.metadata, labels } },
    },
  };
}

/** Returns how many Pods a rolling update may create beyond the desired number. */
function surgeOf({ spec }: DeepReadonly<Deployment>): number {
  return amountOf(spec?.strategy?.rollingUpdate?.maxSurge, spec?.replicas ?? 1, 'up');
}

/** Returns the annotations with the numbers of Pods of the Deployment when its ReplicaSet was scaled. */
function sizeAnnotations(deployment: DeepReadonly<Deployment>): Record<string, string> {
  const desired = deployment.spec?.replicas ?? 1;
  return { [DESIRED]: `${desired}`, [MAX]: `${desired + surgeOf(deployment)}` };
}

/** Returns the annotations that the current ReplicaSet has too. */
function inheritedAnnotations({ metadata }: DeepReadonly<Deployment>): Record<string, string> {
  const all = Object.entries(metadata.annotations ?? {});
  return Object.fromEntries(all.filter(([name]) => !OWN_ANNOTATIONS.has(name)));
}

/** Annotation with the revision of a rollout; `kubectl rollout history` reads it. */
export const REVISION = 'deployment.kubernetes.io/revision';

/** Annotation with earlier revisions of a ReplicaSet that is used again, and its maximum length, as upstream. */
const REVISION_HISTORY = 'deployment.kubernetes.io/revision-history';
const MAX_HISTORY = 2000;

const DESIRED = 'deployment.kubernetes.io/desired-replicas';
const MAX = 'deployment.kubernetes.io/max-replicas';

/** Annotations that are not copied to ReplicaSets. */
const OWN_ANNOTATIONS: ReadonlySet<string> = new Set([
  'kubectl.kubernetes.io/last-applied-configuration',
  'deprecated.deployment.rollback.to',
  REVISION,
  REVISION_HISTORY,
  DESIRED,
  MAX,
]);

/** Returns the revision of a ReplicaSet, a 64-bit integer, or 0. */
export function revisionOf(set: DeepReadonly<ReplicaSet>): bigint {
  const revision = set.metadata.annotations?.[REVISION] ?? '';
  return /^\d+$/.test(revision) ? BigInt(revision) : 0n;
}

/** Returns the earlier revisions of a ReplicaSet with `used`, without the oldest ones if the text would be too long. */
function revisionHistory({ metadata }: DeepReadonly<ReplicaSet>, used: bigint): string {
  const { [REVISION_HISTORY]: history = '' } = metadata.annotations ?? {};
  const revisions = [...history.split(','), `${used}`].filter(Boolean);
  let { length } = revisions.join();
  let dropped = 0;
  while (length > MAX_HISTORY) length -= (revisions[dropped++]?.length ?? 0) + 1;
  return revisions.slice(dropped).join();
}

/** Compares ReplicaSets by revision, oldest first. */
function byRevision(a: DeepReadonly<ReplicaSet>, b: DeepReadonly<ReplicaSet>): number {
  const [one, other] = [revisionOf(a), revisionOf(b)];
  return one < other ? -1 : Number(one > other);
}

/** Label that distinguishes the Pods of a Deployment's ReplicaSets. */
const HASH_LABEL = 'pod-template-hash';

/** Returns whether the ReplicaSet has this template. */
function isOfTemplate(set: DeepReadonly<ReplicaSet>, template: PodTemplateSpec): boolean {
  const own = set.spec?.template;
  const { [HASH_LABEL]: _, ...labels } = own?.metadata?.labels ?? {};
  return equalJson({ ...own, metadata: { ...own?.metadata, labels } }, withLabels(template));
}

function withLabels(template: PodTemplateSpec): object {
  return {
    ...template,
    metadata: { ...template.metadata, labels: template.metadata?.labels ?? {} },
  };
}
