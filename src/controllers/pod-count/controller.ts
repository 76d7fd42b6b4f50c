import { isApiError } from '../../api/api-error.ts';
import { NODES, PODS } from '../../api/builtin.ts';
import type { Node, Pod } from '../../api/builtin.ts';
import { keyOf } from '../../api/object-key.ts';
import type { ObjectKey } from '../../api/object-key.ts';
import type { DeepReadonly } from '../../api/object.ts';
import type { Lister } from '../../cache/lister.ts';
import { Controller } from '../../manager/controller.ts';
import type { Source, SyncHandler } from '../../manager/controller-options.ts';
import type { ControllerKit } from '../../manager/run-controllers.ts';
import type { EventRecorder } from '../../record/event-recorder.ts';
import type { Clock } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import { done, requeueAfter } from '../../workqueue/outcome.ts';
import { Announcer } from './announcer.ts';

/** Options of {@link podCountController}. */
export interface PodCountControllerOptions {
  /**
   * Whether to record an event with the count for each new Pod.
   * @default false
   */
  readonly podEvents?: boolean | undefined;
}

/** Name of the controller in managedFields and events. */
const POD_COUNT_COMPONENT = 'pod-count-controller';

/** The label with the number of Pods. */
export const LABEL = 'hopegi/pod-count';

/** Labels of control-plane nodes. Their values do not matter. */
const ROLES = ['node-role.kubernetes.io/control-plane', 'node-role.kubernetes.io/master'];

/** Minimum time between two writes to a node and between two counts, in milliseconds. */
export const INTERVAL_MS = 10_000;

/** Delay of the retry without permission to label nodes, in milliseconds. */
const FORBIDDEN_MS = 5 * 60_000;

/**
 * Labels the control-plane nodes with the number of Pods in the cluster. The number is the size of the
 * cache, read every ten seconds, so that the cost of an event does not depend on it.
 */
export function podCountController(
  kit: ControllerKit,
  options: PodCountControllerOptions = {},
): Controller {
  const { podEvents = false } = options;
  const { clock, log } = kit;
  const nodes = kit.informers.for(NODES);
  const pods = kit.informers.for(PODS);
  const recorder = kit.events.recorder(POD_COUNT_COMPONENT);
  const announcer = new Announcer({ recorder, clock, log, count: () => pods.lister.size });
  if (podEvents) {
    pods.addHandler({
      onAdd: (pod, isInInitialList) => {
        // Of several shard owners, one records the event.
        const isOurs = kit.sharding?.holds(keyOf(pod)) ?? true;
        if (!isInInitialList && isOurs) announcer.announce(pod);
      },
    });
  }
  const recount: Source = async (queue, signal) => {
    announcer.start(signal);
    let hadNodes = true;
    while (!signal.aborted) {
      const labelled = nodes.lister.list().filter(isControlPlane);
      if (labelled.length === 0 && hadNodes) {
        log.info('No control-plane node found; skipping the Pod count label');
      }
      hadNodes = labelled.length > 0;
      const stale = labelled.filter((node) => !hasCount(node, pods.lister.size));
      for (const node of stale) queue.add(keyOf(node), { cause: 'Pod count changed' });
      await clock.sleep(INTERVAL_MS, signal);
    }
  };
  const sync = podCountSync({ nodes: nodes.lister, pods: pods.lister, recorder, clock });
  return new Controller(kit, { name: 'pod-count', kind: NODES.kind, sync })
    .for(nodes)
    .source(recount);
}

/** Dependencies of `podCountSync`. */
export interface PodCountSyncDeps {
  readonly nodes: Pick<Lister<Node>, 'get'>;
  readonly pods: Pick<Lister<Pod>, 'size'>;
  readonly recorder: EventRecorder;
  readonly clock: Clock;
}

/** Labels one control-plane node with the number of Pods, at most every ten seconds. */
export function podCountSync({ nodes, pods, recorder, clock }: PodCountSyncDeps): SyncHandler {
  /** `Clock.monotonic()` before which a node is not labelled again. */
  const notBeforeMs = new Map<ObjectKey, number>();
  return async (key, { client, signal, log }) => {
    const node = nodes.get(key);
    const count = pods.size;
    if (!node || node.metadata.deletionTimestamp !== undefined || !isControlPlane(node)) {
      notBeforeMs.delete(key);
      return done();
    }
    if (hasCount(node, count)) return done();
    const waitMs = (notBeforeMs.get(key) ?? -Infinity) - clock.monotonic();
    if (waitMs > 0) return requeueAfter(waitMs, 'the node may be labelled again');
    const { name, uid } = node.metadata;
    const body = { metadata: { uid, labels: { [LABEL]: String(count) } } };
    try {
      const patch = { type: 'merge', body } as const;
      await client.patch(NODES, { name }, patch, { fieldManager: POD_COUNT_COMPONENT, signal });
    } catch (error) {
      if (isApiError(error, 'notFound')) return done();
      if (!isApiError(error, 'forbidden')) throw error;
      log.error(error, 'Not allowed to label nodes', {
        fix: 'grant the verb patch on nodes to this service account, or disable pod-count',
        retryIn: formatDuration(FORBIDDEN_MS),
      });
      notBeforeMs.set(key, clock.monotonic() + FORBIDDEN_MS);
      return requeueAfter(FORBIDDEN_MS, 'the permission to label nodes may have been granted');
    }
    notBeforeMs.set(key, clock.monotonic() + INTERVAL_MS);
    recorder.normal(node, 'SuccessCalculatePod', `pod count is ${count}`);
    log.v(2).info('Labelled node', { [LABEL]: count });
    return done();
  };
}

export function isControlPlane({ metadata }: DeepReadonly<Node>): boolean {
  const { labels = {} } = metadata;
  return ROLES.some((role) => Object.hasOwn(labels, role));
}

function hasCount({ metadata }: DeepReadonly<Node>, count: number): boolean {
  return metadata.labels?.[LABEL] === String(count);
}
