import { isApiError } from '../../api/api-error.ts';
import {
  CONTROLLER_REVISIONS,
  PERSISTENT_VOLUME_CLAIMS,
  PODS,
  STATEFUL_SETS,
} from '../../api/builtin.ts';
import type { Pod, StatefulSet } from '../../api/builtin.ts';
import { keyOf } from '../../api/object-key.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { isFinished, isPodReady } from '../../api/workloads.ts';
import { deleteOwnedObject, slowStart } from '../../manager/owned-object.ts';
import type { OwnedObjectContext } from '../../manager/owned-object.ts';
import { Controller } from '../../manager/controller.ts';
import { StatusWriter } from '../../manager/status-writer.ts';
import type { EventRecorder } from '../../record/event-recorder.ts';
import { messageOf } from '../../util/values.ts';
import { done, requeueAfter } from '../../workqueue/outcome.ts';
import { claim, claimable, mapToClaimants } from '../support/claim.ts';
import {
  deleteRevisions,
  recordRevision,
  REVISION_LABEL,
  templateOf,
} from './controller-revisions.ts';
import type { RevisionHistory } from './controller-revisions.ts';
import { FIELD_MANAGER } from '../support/field-manager.ts';
import { MAX_REJECTIONS, availability, BURST_REPLICAS, nonZero } from '../support/pod-control.ts';
import type { ClusterDeps } from '../support/resource-monitors.ts';
import { amountOf } from './rolling-update.ts';
import { StatefulSetClaims } from './stateful-set-claims.ts';
import { buildMember, claimName, identityOf, isIdentified, ordinalOf } from './stateful-set-pod.ts';
import type { Member } from './stateful-set-pod.ts';

type Status = NonNullable<StatefulSet['status']>;
type Revision = RevisionHistory['update'];

/**
 * StatefulSet controller: maintains Pods with stable names and PersistentVolumeClaims, in order or in
 * parallel. Replaces them from the highest ordinal to the partition when the template changes.
 */
export function statefulSets(deps: ClusterDeps): Controller {
  const sets = deps.informers.for(STATEFUL_SETS);
  const pods = claimable(deps, PODS);
  const revisions = claimable(deps, CONTROLLER_REVISIONS);
  const claims = deps.informers.for(PERSISTENT_VOLUME_CLAIMS);
  const statuses = new StatusWriter(STATEFUL_SETS, FIELD_MANAGER);
  const recorder = deps.events.recorder('statefulset-controller');
  return new Controller(deps, {
    name: 'statefulset',
    kind: STATEFUL_SETS.kind,
    sync: async (key, context) => {
      const set = sets.lister.get(key);
      if (!set?.spec || set.metadata.deletionTimestamp !== undefined) return done();
      const owner = { owner: set, ownerResource: STATEFUL_SETS };
      const hashLabel = 'controller.kubernetes.io/hash';
      const history = await recordRevision(context, { ...owner, revisions, hashLabel });
      const owned = await claim(context, {
        ...owner,
        owned: pods,
        ignore: ({ metadata }) => ordinalOf(set, metadata.name) === undefined,
      });
      const { minReadySeconds = 0 } = set.spec;
      const isAvailable = (pod: DeepReadonly<Pod>) =>
        availability([pod], minReadySeconds, deps.clock.now()).available > 0;
      const rollout = new StatefulRollout(set, owned, {
        ...context,
        history,
        recorder,
        isAvailable,
        claims: new StatefulSetClaims(set, claims, context, recorder),
      });
      let failure: unknown;
      try {
        await rollout.run();
      } catch (error) {
        failure = error;
      }
      const status = rollout.status();
      if (statuses.differs(set, status)) await statuses.write(context, set, status);
      const idle = rollout.idleRevisions();
      await deleteRevisions(context, idle, idle.length - (set.spec.revisionHistoryLimit ?? 10));
      if (failure !== undefined) throw failure;
      const { nextMs } = availability(owned, minReadySeconds, deps.clock.now());
      return nextMs === undefined ? done() : requeueAfter(nextMs);
    },
  })
    .for(sets)
    .watches(pods, mapToClaimants(sets))
    .watches(revisions, mapToClaimants(sets))
    .watches(claims, ({ metadata: { namespace, name } }) =>
      sets.lister
        .list({ namespace })
        .filter(({ metadata, spec }) =>
          spec?.volumeClaimTemplates?.some((template) => {
            const ordinal = Number(name.slice(name.lastIndexOf('-') + 1));
            return name === claimName(template.metadata?.name ?? '', metadata.name, ordinal);
          }),
        )
        .map(keyOf),
    );
}

/** Context of the sync of a StatefulSet. */
interface RolloutContext extends OwnedObjectContext {
  readonly history: RevisionHistory;
  readonly recorder: EventRecorder;
  readonly claims: StatefulSetClaims;
  readonly isAvailable: (pod: DeepReadonly<Pod>) => boolean;
}

/** One sync of one StatefulSet. */
class StatefulRollout {
  readonly #set: DeepReadonly<StatefulSet>;
  readonly #context: RolloutContext;
  readonly #current: Revision;
  readonly #pods: readonly DeepReadonly<Pod>[];
  readonly #replicas: readonly Member[];
  /** Highest ordinal first. */
  readonly #condemned: readonly Member[];
  readonly #isParallel: boolean;
  /** Number of Pods that were deleted for an update. */
  #outdated = 0;

  constructor(
    set: DeepReadonly<StatefulSet>,
    pods: readonly DeepReadonly<Pod>[],
    context: RolloutContext,
  ) {
    this.#set = set;
    this.#context = context;
    this.#pods = pods;
    const { update, others } = context.history;
    const { currentRevision } = set.status ?? {};
    this.#current = others.find(({ metadata }) => metadata.name === currentRevision) ?? update;
    this.#isParallel = set.spec?.podManagementPolicy === 'Parallel';
    const members = new Map(pods.map((pod) => [pod.metadata.name, pod]));
    const start = set.spec?.ordinals?.start ?? 0;
    const wanted = set.spec?.replicas ?? 1;
    const length = Math.min(wanted, pods.length + BURST_REPLICAS);
    this.#replicas = Array.from({ length }, (_, index): Member => {
      const ordinal = start + index;
      const name = `${set.metadata.name}-${ordinal}`;
      const pod = members.get(name);
      members.delete(name);
      const missing = this.#isOfCurrent(index) ? this.#current : update;
      const revision = pod ? revisionOf(pod) : missing.metadata.name;
      return { name, ordinal, isCondemned: false, pod, revision };
    });
    this.#condemned = Array.from(members.values(), (pod): Member => {
      const { name } = pod.metadata;
      const ordinal = ordinalOf(set, name) ?? 0;
      return { name, ordinal, isCondemned: true, pod, revision: revisionOf(pod) };
    })
      .filter(({ ordinal }) => ordinal < start || ordinal >= start + wanted)
      .toSorted((a, b) => b.ordinal - a.ordinal);
  }

  /** @throws {Error} if a Pod or claim cannot be created, changed or deleted */
  async run(): Promise<void> {
    if (await this.#each(this.#replicas, (member) => this.#ensure(member))) return;
    const own = async (member: Member) => {
      await this.#context.claims.updateOwners(member);
      return false;
    };
    if (await this.#each(this.#condemned, own)) return;
    const unavailable =
      this.#replicas.find((member) => this.#isUnavailable(member)) ??
      this.#condemned.findLast((member) => this.#isUnavailable(member));
    if (await this.#each(this.#condemned, (member) => this.#remove(member, unavailable))) return;
    if (this.#set.spec?.updateStrategy?.type !== 'OnDelete') await this.#update();
  }

  status(): Status {
    const { history, isAvailable } = this.#context;
    const { status, spec, metadata } = this.#set;
    const { name: updateRevision } = history.update.metadata;
    const ready = this.#pods.filter(isRunningAndReady);
    const remaining = this.#pods.filter(({ metadata }) => !metadata.deletionTimestamp);
    const count = (name: string) => remaining.filter((pod) => revisionOf(pod) === name).length;
    const replicas = this.#pods.length;
    const updated = count(updateRevision);
    let currentRevision = this.#current.metadata.name;
    let current = count(currentRevision) - this.#outdated;
    if ([updated, ready.length, replicas].every((number) => number === (spec?.replicas ?? 1))) {
      current = updated;
      currentRevision = updateRevision;
    }
    return {
      observedGeneration: metadata.generation ?? 0,
      replicas,
      ...nonZero({
        readyReplicas: ready.length,
        currentReplicas: current,
        updatedReplicas: updated,
      }),
      availableReplicas: ready.filter(isAvailable).length,
      currentRevision,
      updateRevision,
      collisionCount: history.collisions,
      ...(status?.conditions && { conditions: structuredClone(status.conditions) as [] }),
    };
  }

  /** Returns the revisions that no Pod has, oldest first. */
  idleRevisions(): readonly Revision[] {
    const used = new Set([this.#current.metadata.name, ...this.#pods.map(revisionOf)]);
    return this.#context.history.others.filter(({ metadata }) => !used.has(metadata.name));
  }

  /**
   * Calls `step` in order until it returns true or, for parallel management, for all members.
   *
   * @returns whether a step returned true
   */
  async #each(
    members: readonly Member[],
    step: (member: Member) => Promise<boolean>,
  ): Promise<boolean> {
    if (!this.#isParallel) {
      for (const member of members) if (await step(member)) return true;
      return false;
    }
    const attempt = async (member: Member) => {
      try {
        await step(member);
        return undefined;
      } catch (error) {
        return { error };
      }
    };
    const failure = await slowStart(members, attempt, MAX_REJECTIONS);
    if (failure) throw failure.error;
    return false;
  }

  /** Creates or repairs a Pod. Returns whether the Pods after it must wait. */
  async #ensure(member: Member): Promise<boolean> {
    const { claims, isAvailable } = this.#context;
    const { pod } = member;
    if (!pod) {
      if (!claims.isStale(member)) await this.#create(member);
      return true;
    }
    if (isFinished(pod)) {
      if (pod.metadata.deletionTimestamp === undefined) await this.#delete(member);
      return true;
    }
    if (pod.status?.phase === 'Pending') {
      await claims.createMissing(member);
      await claims.updateOwners(member);
    }
    const isWaiting =
      pod.metadata.deletionTimestamp !== undefined || !isRunningAndReady(pod) || !isAvailable(pod);
    if (isWaiting && !this.#isParallel) return true;
    await this.#repair(member, pod);
    return false;
  }

  async #create(member: Member): Promise<void> {
    const { client, signal, claims, history } = this.#context;
    const isUpdate = member.revision === history.update.metadata.name;
    const template = isUpdate ? this.#set.spec?.template : templateOf(this.#current);
    await this.#record('Create', member, async () => {
      await claims.createMissing(member);
      const draft = buildMember(this.#set, member, template);
      await client.create(PODS, draft, { fieldManager: FIELD_MANAGER, signal });
    });
  }

  /** Sets the labels of an adopted Pod, and the owners of its claims. */
  async #repair(member: Member, { metadata }: DeepReadonly<Pod>): Promise<void> {
    const { client, signal, claims } = this.#context;
    const isChanged = await claims.updateOwners(member);
    if (!isChanged && isIdentified(metadata)) return;
    const body = { metadata: { uid: metadata.uid, labels: identityOf(member) } };
    await this.#record('Update', member, () =>
      client.patch(PODS, metadata, { type: 'merge', body }, { signal }),
    );
  }

  /** Deletes a Pod beyond the replicas. Returns whether the Pods below it must wait. */
  async #remove(member: Member, unavailable: Member | undefined): Promise<boolean> {
    const { pod } = member;
    if (!pod || pod.metadata.deletionTimestamp !== undefined) return true;
    const isHealthy = isRunningAndReady(pod) && this.#context.isAvailable(pod);
    if (!this.#isParallel && !isHealthy && member !== unavailable) return true;
    await this.#delete(member);
    return true;
  }

  /** Deletes Pods of other revisions, from the highest ordinal, within `maxUnavailable`. */
  async #update(): Promise<void> {
    const { maxUnavailable = 1, partition = 0 } =
      this.#set.spec?.updateStrategy?.rollingUpdate ?? {};
    const limit = Math.max(1, amountOf(maxUnavailable, this.#replicas.length, 'down'));
    let left = limit - this.#replicas.filter((member) => this.#isUnavailable(member)).length;
    const outdated = this.#replicas
      .slice(partition)
      .toReversed()
      .filter(
        ({ pod, revision }) =>
          pod &&
          pod.metadata.deletionTimestamp === undefined &&
          revision !== this.#context.history.update.metadata.name,
      );
    const isFree = (member: Member) => this.#isParallel && this.#isUnavailable(member);
    for (const member of outdated) {
      if (!isFree(member) && left-- <= 0) continue;
      await this.#delete(member);
      this.#outdated++;
    }
  }

  async #delete(member: Member): Promise<void> {
    const { pod } = member;
    if (!pod) return;
    await this.#record('Delete', member, () => deleteOwnedObject(this.#context, PODS, pod));
  }

  /** Sends a request about a Pod, and records an event. A request that resolves with false has changed nothing. */
  async #record(
    verb: 'Create' | 'Update' | 'Delete',
    { name }: Member,
    request: () => Promise<unknown>,
  ): Promise<void> {
    const { recorder } = this.#context;
    const subject = `${verb} Pod ${name} in StatefulSet ${this.#set.metadata.name}`;
    try {
      if ((await request()) === false) return;
      recorder.normal(this.#set, `Successful${verb}`, `${subject} successful`);
    } catch (error) {
      if (!isApiError(error, 'alreadyExists', 'conflict')) {
        const message = `${subject} failed error: ${messageOf(error)}`;
        recorder.warning(this.#set, `Failed${verb}`, message);
      }
      throw error;
    }
  }

  #isUnavailable({ pod }: Member): boolean {
    if (pod?.metadata.deletionTimestamp !== undefined) return true;
    return !pod || !this.#context.isAvailable(pod);
  }

  /** Whether a missing Pod is created with the template before the update. */
  #isOfCurrent(index: number): boolean {
    const { type, rollingUpdate } = this.#set.spec?.updateStrategy ?? {};
    if (rollingUpdate) return index < (rollingUpdate.partition ?? 0);
    return type === 'RollingUpdate' && index < (this.#set.status?.currentReplicas ?? 0);
  }
}

function revisionOf({ metadata }: DeepReadonly<Pod>): string {
  return metadata.labels?.[REVISION_LABEL] ?? '';
}

function isRunningAndReady(pod: DeepReadonly<Pod>): boolean {
  return pod.status?.phase === 'Running' && isPodReady(pod);
}
