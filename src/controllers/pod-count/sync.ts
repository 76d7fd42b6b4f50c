import { isApiError } from '../../api/api-error.ts';
import { NODES } from '../../api/builtin.ts';
import type { Node, Pod } from '../../api/builtin.ts';
import type { ObjectKey } from '../../api/object-key.ts';
import type { DeepReadonly } from '../../api/object.ts';
import type { Lister } from '../../cache/lister.ts';
import type { SyncHandler } from '../../manager/controller.ts';
import type { EventRecorder } from '../../record/event-recorder.ts';
import type { Clock } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import { done, requeueAfter } from '../../workqueue/outcome.ts';

/** Who writes, in managedFields and in events. */
export const COMPONENT = 'pod-count-controller';

/** The label that holds the number of Pods. */
export const LABEL = 'hopegi/pod-count';

/** Labels of the nodes that get it; their values do not matter. */
const ROLES = ['node-role.kubernetes.io/control-plane', 'node-role.kubernetes.io/master'];

/** Shortest time between two writes to a node, and between two counts, in milliseconds. */
export const INTERVAL_MS = 10_000;

/** A missing permission is not there a moment later. */
const FORBIDDEN_MS = 5 * 60_000;

/** Dependencies of `PodCountSync`. */
export interface PodCountSyncDeps {
  readonly nodes: Pick<Lister<Node>, 'get'>;
  readonly pods: Pick<Lister<Pod>, 'size'>;
  readonly recorder: EventRecorder;
  readonly clock: Clock;
}

export function isMaster({ metadata }: DeepReadonly<Node>): boolean {
  const { labels = {} } = metadata;
  return ROLES.some((role) => Object.hasOwn(labels, role));
}

/** True if the node's label says that there are `count` Pods. */
export function isLabelled({ metadata }: DeepReadonly<Node>, count: number): boolean {
  return metadata.labels?.[LABEL] === String(count);
}

/**
 * Writes the number of Pods in the cache to the label of one master node, at most every ten seconds,
 * and nothing else of the node.
 */
export function podCountSync({ nodes, pods, recorder, clock }: PodCountSyncDeps): SyncHandler {
  /** `Clock.monotonic()` before which a node is left alone. */
  const notBeforeMs = new Map<ObjectKey, number>();
  return async (key, { client, signal, log }) => {
    const node = nodes.get(key);
    const count = pods.size;
    if (!node || node.metadata.deletionTimestamp !== undefined || !isMaster(node)) {
      notBeforeMs.delete(key);
      return done();
    }
    if (isLabelled(node, count)) return done();
    const waitMs = (notBeforeMs.get(key) ?? -Infinity) - clock.monotonic();
    if (waitMs > 0) return requeueAfter(waitMs, 'the node may be labelled again');
    const { name, uid } = node.metadata;
    const body = { metadata: { uid, labels: { [LABEL]: String(count) } } };
    try {
      await client.patch(
        NODES,
        { name },
        { type: 'merge', body },
        { fieldManager: COMPONENT, signal },
      );
    } catch (error) {
      if (isApiError(error, 'notFound')) return done();
      if (!isApiError(error, 'forbidden')) throw error;
      log.error(error, 'May not label nodes', {
        fix: 'grant the verb patch on nodes to this service account, or turn pod-count off',
        retryIn: formatDuration(FORBIDDEN_MS),
      });
      notBeforeMs.set(key, clock.monotonic() + FORBIDDEN_MS);
      return requeueAfter(FORBIDDEN_MS, 'nodes may be allowed to be labelled by now');
    }
    notBeforeMs.set(key, clock.monotonic() + INTERVAL_MS);
    recorder.normal(node, 'SuccessCalculatePod', `pod count is ${count}`);
    log.v(2).info('Labelled node', { [LABEL]: count });
    return done();
  };
}
