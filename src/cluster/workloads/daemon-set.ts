import { CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS } from '../../api/builtin.ts';
import type { DaemonSet, Pod } from '../../api/builtin.ts';
import { keyOf } from '../../api/object-key.ts';
import type { DeepReadonly, Draft, KubernetesObject } from '../../api/object.ts';
import { Controller } from '../../manager/controller.ts';
import { StatusWriter } from '../../manager/status-writer.ts';
import { backoffMs } from '../../util/backoff.ts';
import { LruMap } from '../../util/lru-map.ts';
import { done, requeueAfter } from '../../workqueue/outcome.ts';
import { claim, claimable, mapToClaimants } from '../support/claim.ts';
import { deleteRevisions, recordRevision, REVISION_LABEL } from './controller-revisions.ts';
import { DaemonRollout, daemonTolerations } from './daemon-rollout.ts';
import { FIELD_MANAGER } from '../support/field-manager.ts';
import {
  MAX_REJECTIONS,
  availability,
  buildTemplatePod,
  PodControl,
} from '../support/pod-control.ts';
import type { ClusterDeps } from '../support/resource-monitors.ts';
import type { Toleration } from '../nodes/taints.ts';

/** Annotation and label with the number of the template, which older versions wrote instead of a hash. */
const GENERATION = 'deprecated.daemonset.template.generation';
const GENERATION_LABEL = 'pod-template-generation';

/** Backoff between deletions of failed Pods on one node. */
const FAILED_POD_BACKOFF = { initialMs: 1000, maxMs: 15 * 60_000 };
/** Number of nodes with failed Pods that are remembered. */
const MAX_FAILURES = 10_000;

/** DaemonSet controller: maintains one Pod on each node that the Pods select and tolerate. */
export function daemonSets(deps: ClusterDeps): Controller {
  const sets = deps.informers.for(DAEMON_SETS);
  const nodes = deps.informers.for(NODES);
  const pods = claimable(deps, PODS);
  const revisions = claimable(deps, CONTROLLER_REVISIONS);
  const statuses = new StatusWriter(DAEMON_SETS, FIELD_MANAGER);
  const recorder = deps.events.recorder('daemonset-controller');
  const control = new PodControl(recorder);
  const failures = new LruMap<string, { readonly count: number; readonly atMs: number }>(
    MAX_FAILURES,
  );

  /** Returns for how long a failed Pod is kept, in milliseconds; 0 if it is deleted now. */
  const keptFor = ({ metadata }: DeepReadonly<DaemonSet>, node: string): number => {
    const now = deps.clock.monotonic();
    const key = `${metadata.uid}/${metadata.generation}/${node}`;
    const failure = failures.get(key);
    const leftMs = failure ? failure.atMs + backoffMs(FAILED_POD_BACKOFF, failure.count) - now : 0;
    if (leftMs > 0) return leftMs;
    failures.set(key, { count: (failure?.count ?? -1) + 1, atMs: now });
    return 0;
  };

  return new Controller(deps, {
    name: 'daemonset',
    kind: DAEMON_SETS.kind,
    sync: async (key, context) => {
      const set = sets.lister.get(key);
      if (!set?.spec || set.metadata.deletionTimestamp !== undefined) return done();
      const { selector, minReadySeconds = 0, revisionHistoryLimit = 10 } = set.spec;
      if (Object.keys(selector).length === 0) {
        const message = 'This daemon set is selecting all pods. A non-empty selector is required.';
        recorder.warning(set, 'SelectingAll', message);
        return done();
      }
      const owner = { owner: set, ownerResource: DAEMON_SETS };
      const history = await recordRevision(context, {
        ...owner,
        revisions,
        hashLabel: REVISION_LABEL,
      });
      const hash = revisionOf(history.update);
      const generation = set.metadata.annotations?.[GENERATION];
      const owned = await claim(context, { ...owner, owned: pods });
      const rollout = new DaemonRollout(set, nodes.lister.list(), owned, {
        isAvailable: (pod) => availability([pod], minReadySeconds, deps.clock.now()).available > 0,
        isUpdated: (pod) =>
          revisionOf(pod) === hash ||
          (generation !== undefined && pod.metadata.labels?.[GENERATION_LABEL] === generation),
      });
      let { nextMs: waitMs = Infinity } = availability(owned, minReadySeconds, deps.clock.now());
      const ended = rollout.ended().flatMap(({ node, pod }) => {
        const text = `daemon pod ${keyOf(pod)} on node ${node}, will try to`;
        if (pod.status?.phase === 'Succeeded') {
          recorder.normal(set, 'SucceededDaemonPod', `Found succeeded ${text} delete it`);
          return pod;
        }
        const keptMs = keptFor(set, node);
        if (keptMs > 0) {
          waitMs = Math.min(waitMs, keptMs);
          return [];
        }
        recorder.warning(set, 'FailedDaemonPod', `Found failed ${text} kill it`);
        return pod;
      });
      const { creates, deletes } = rollout.manage();
      const managed = { creates, deletes: [...ended, ...deletes] };
      const isManaged = creates.length + managed.deletes.length > 0;
      const isRolling = set.spec.updateStrategy?.type === 'RollingUpdate';
      // The changes of this sync must be visible before the rolling update counts Pods.
      const plan = isRolling && !isManaged ? rollout.update() : managed;
      const labels = {
        [REVISION_LABEL]: hash,
        ...(generation !== undefined && { [GENERATION_LABEL]: generation }),
      };
      const drafts = plan.creates.map((node) => buildDaemonPod(set, node, labels));
      const created = await control.create(context, set, drafts, MAX_REJECTIONS);
      const deleted = await control.delete(context, set, plan.deletes);
      const failure = created ?? deleted;
      const status = {
        ...rollout.status(),
        observedGeneration: set.metadata.generation ?? 0,
        ...(history.collisions > 0 && { collisionCount: history.collisions }),
      };
      if (statuses.differs(set, status)) await statuses.write(context, set, status);
      const used = new Set(owned.map(revisionOf));
      const idle = history.others.filter((revision) => !used.has(revisionOf(revision)));
      await deleteRevisions(context, idle, history.others.length - revisionHistoryLimit);
      if (failure !== undefined) throw failure;
      return waitMs === Infinity ? done() : requeueAfter(waitMs);
    },
  })
    .for(sets)
    .watches(pods, mapToClaimants(sets))
    .watches(revisions, mapToClaimants(sets))
    .watches(nodes, () => sets.lister.list().map(keyOf));
}

function revisionOf({ metadata }: DeepReadonly<KubernetesObject>): string {
  return metadata.labels?.[REVISION_LABEL] ?? '';
}

/** Returns a Pod that the scheduler binds to the node, because its affinity allows no other. */
function buildDaemonPod(
  set: DeepReadonly<DaemonSet>,
  node: string,
  labels: Readonly<Record<string, string>>,
): Draft<Pod> {
  const draft = buildTemplatePod(set, set.spec?.template);
  draft.metadata.labels = { ...draft.metadata.labels, ...labels };
  if (!draft.spec) return draft;
  draft.spec.tolerations = structuredClone(daemonTolerations(draft.spec)) as Toleration[];
  const matchFields = [{ key: 'metadata.name', operator: 'In' as const, values: [node] }];
  const { affinity } = draft.spec;
  draft.spec.affinity = {
    ...affinity,
    nodeAffinity: {
      ...affinity?.nodeAffinity,
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields }] },
    },
  };
  return draft;
}
