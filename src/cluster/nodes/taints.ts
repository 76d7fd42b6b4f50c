import { NODES, PODS } from '../../api/builtin.ts';
import type { Node, Pod } from '../../api/builtin.ts';
import { timestamp } from '../../api/conditions.ts';
import { keyOf, objectKey } from '../../api/object-key.ts';
import type { ObjectKey } from '../../api/object-key.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { Controller } from '../../manager/controller.ts';
import type { SyncContext } from '../../manager/controller-options.ts';
import { deleteOwnedObject } from '../../manager/owned-object.ts';
import { done, requeueAfter } from '../../workqueue/outcome.ts';
import { FIELD_MANAGER } from '../support/field-manager.ts';
import { patchPodStatus } from '../support/pod-control.ts';
import type { ClusterDeps } from '../support/resource-monitors.ts';

export type Taint = NonNullable<NonNullable<DeepReadonly<Node>['spec']>['taints']>[number];
export type Toleration = NonNullable<NonNullable<DeepReadonly<Pod>['spec']>['tolerations']>[number];

export function tolerates(toleration: Toleration, taint: Taint): boolean {
  const { key = '', operator = 'Equal', value = '', effect = '' } = toleration;
  if (effect !== '' && effect !== taint.effect) return false;
  if (key !== '' && key !== taint.key) return false;
  switch (operator) {
    case 'Exists':
      return true;
    case 'Lt':
    case 'Gt': {
      const [actual, bound] = [Number(taint.value), Number(value)];
      return operator === 'Lt' ? actual < bound : actual > bound;
    }
    default:
      return value === (taint.value ?? '') && key !== '';
  }
}

/** Returns the taints with one of the effects that nothing tolerates. */
export function untolerated(
  taints: readonly Taint[],
  tolerations: readonly Toleration[],
  effects: readonly string[],
): readonly Taint[] {
  const byKey = Map.groupBy(tolerations, ({ key = '' }) => key);
  return taints.filter(
    (taint) =>
      effects.includes(taint.effect) &&
      !['', taint.key].some((key) =>
        byKey.get(key)?.some((toleration) => tolerates(toleration, taint)),
      ),
  );
}

/** Name of the index of Pods by the name of their node. */
const NODE_INDEX = 'nodeName';

/** Time at which a Pod is evicted. */
interface Eviction {
  readonly uid: string;
  /** `Clock.monotonic()` when the taints were observed. */
  readonly sinceMs: number;
}

/**
 * Taint eviction controller: deletes Pods that do not tolerate a taint of their node with the effect
 * NoExecute, or tolerate it for `tolerationSeconds`.
 */
export function taintEviction(deps: ClusterDeps): Controller {
  const pods = deps.informers.for(PODS);
  pods.addIndexers({
    [NODE_INDEX]: ({ spec }) => (spec?.nodeName ? [spec.nodeName] : []),
  });
  const nodes = deps.informers.for(NODES);
  const recorder = deps.events.recorder('taint-eviction-controller');
  const evictions = new Map<ObjectKey, Eviction>();
  return new Controller(deps, {
    name: 'taint-eviction',
    kind: PODS.kind,
    sync: async (key, context) => {
      const pod = pods.lister.get(key);
      const eviction = evictions.get(key);
      const node = pod && nodes.lister.get(objectKey(undefined, pod.spec?.nodeName ?? ''));
      const toleratedMs =
        pod && toleratedFor(node?.spec?.taints ?? [], pod.spec?.tolerations ?? []);
      const isGone = !pod || pod.metadata.deletionTimestamp !== undefined;
      if (isGone || toleratedMs === Infinity || toleratedMs === undefined) {
        evictions.delete(key);
        if (!isGone && eviction?.uid === pod.metadata.uid) {
          recorder.normal(pod, 'TaintManagerEviction', `Cancelling deletion of Pod ${key}`);
        }
        return done();
      }
      const now = deps.clock.monotonic();
      const sinceMs = eviction?.uid === pod.metadata.uid ? eviction.sinceMs : now;
      const waitMs = sinceMs + toleratedMs - now;
      evictions.set(key, { uid: pod.metadata.uid, sinceMs });
      if (waitMs > 0) return requeueAfter(waitMs);
      recorder.normal(pod, 'TaintManagerEviction', `Marking for deletion Pod ${key}`);
      await evict(pod, timestamp(deps.clock.now()), context);
      evictions.delete(key);
      return done();
    },
  })
    .for(pods)
    .watches(nodes, ({ metadata }) => pods.lister.byIndex(NODE_INDEX, metadata.name).map(keyOf));
}

/** Returns for how many milliseconds the taints are tolerated: at most 0 if one is not, Infinity if all are. */
function toleratedFor(taints: readonly Taint[], tolerations: readonly Toleration[]): number {
  const noExecute = taints.filter(({ effect }) => effect === 'NoExecute');
  if (untolerated(noExecute, tolerations, ['NoExecute']).length > 0) return 0;
  const used = tolerations.filter((toleration) =>
    noExecute.some((taint) => tolerates(toleration, taint)),
  );
  return used.reduce(
    (least, { tolerationSeconds = Infinity }) => Math.min(least, tolerationSeconds * 1000),
    Infinity,
  );
}

async function evict(pod: DeepReadonly<Pod>, now: string, context: SyncContext): Promise<void> {
  const condition = {
    type: 'DisruptionTarget',
    status: 'True',
    reason: 'DeletionByTaintManager',
    message: 'Taint manager: deleting due to NoExecute taint',
    lastTransitionTime: now,
  };
  if (await patchPodStatus(context, pod, { conditions: [condition] }, FIELD_MANAGER)) {
    await deleteOwnedObject(context, PODS, pod);
  }
}
