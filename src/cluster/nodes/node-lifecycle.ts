import { NODES } from '../../api/builtin.ts';
import type { Node } from '../../api/builtin.ts';
import { timestamp } from '../../api/conditions.ts';
import type { ObjectKey } from '../../api/object-key.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { Controller } from '../../manager/controller.ts';
import { done, requeueAfter } from '../../workqueue/outcome.ts';
import type { ClusterDeps } from '../support/resource-monitors.ts';
import type { Taint } from './taints.ts';

/** Time until the first status of a kubelet, the default of kube-controller-manager. */
const STARTUP_MS = 60_000;

const PREFIX = 'node.kubernetes.io/';

/** Taints by the type and status of a condition. */
const TAINT_OF: ReadonlyMap<string, string> = new Map([
  ['Ready False', 'not-ready'],
  ['Ready Unknown', 'unreachable'],
  ['MemoryPressure True', 'memory-pressure'],
  ['DiskPressure True', 'disk-pressure'],
  ['NetworkUnavailable True', 'network-unavailable'],
  ['PIDPressure True', 'pid-pressure'],
]);

/** Taints that also have the effect NoExecute. */
const EVICTING: ReadonlySet<string> = new Set(['not-ready', 'unreachable']);
const BOTH_EFFECTS = ['NoSchedule', 'NoExecute'] as const;

/** Conditions of a node whose kubelet never posted a status. */
const NEVER_UPDATED = ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'];

/**
 * Node lifecycle controller: keeps the taints of nodes according to their conditions and `spec.unschedulable`. A
 * node that has no condition Ready after a minute gets unknown conditions. Heartbeats are not monitored.
 */
export function nodeLifecycle(deps: ClusterDeps): Controller {
  const nodes = deps.informers.for(NODES);
  const recorder = deps.events.recorder('node-controller');
  /** Uids of the nodes whose registration was recorded. */
  const registered = new Map<ObjectKey, string>();
  return new Controller(deps, {
    name: 'node-lifecycle',
    kind: NODES.kind,
    sync: async (key, { client, signal }) => {
      const node = nodes.lister.get(key);
      if (!node) {
        registered.delete(key);
        return done();
      }
      const { name, uid, resourceVersion, creationTimestamp } = node.metadata;
      if (registered.get(key) !== uid) {
        registered.set(key, uid);
        const message = `Node ${name} event: Registered Node ${name} in Controller`;
        recorder.normal(node, 'RegisteredNode', message);
      }
      const now = timestamp(deps.clock.now());
      const taints = taintsOf(node, now);
      if (taints) {
        const body = { metadata: { uid, resourceVersion }, spec: { taints } };
        await client.patch(NODES, node.metadata, { type: 'merge', body }, { signal });
        return done();
      }
      const { conditions = [] } = node.status ?? {};
      if (conditions.some(({ type }) => type === 'Ready')) return done();
      const waitMs = Date.parse(creationTimestamp) + STARTUP_MS - deps.clock.now();
      if (waitMs > 0) return requeueAfter(waitMs);
      const missing = NEVER_UPDATED.filter(
        (type) => !conditions.some((each) => each.type === type),
      );
      const unknown = missing.map((type) => ({
        type,
        status: 'Unknown',
        reason: 'NodeStatusNeverUpdated',
        message: 'Kubelet never posted node status.',
        lastHeartbeatTime: creationTimestamp,
        lastTransitionTime: now,
      }));
      const body = { metadata: { uid }, status: { conditions: unknown } };
      const patch = { type: 'strategic', body } as const;
      await client.patch(NODES, node.metadata, patch, { subresource: 'status', signal });
      return done();
    },
  }).for(nodes);
}

/** Returns the taints that a node should have, or undefined if it has them. */
function taintsOf({ spec, status }: DeepReadonly<Node>, now: string): Taint[] | undefined {
  const names = (status?.conditions ?? []).flatMap(
    (condition) => TAINT_OF.get(`${condition.type} ${condition.status}`) ?? [],
  );
  if (spec?.unschedulable) names.push('unschedulable');
  const wanted = names.flatMap((name) =>
    (EVICTING.has(name) ? BOTH_EFFECTS : BOTH_EFFECTS.slice(0, 1)).map((effect): Taint => ({
      key: `${PREFIX}${name}`,
      effect,
      timeAdded: now,
    })),
  );
  const present = spec?.taints ?? [];
  const isIn = (taints: readonly Taint[], { key, effect }: Taint) =>
    taints.some((each) => each.key === key && each.effect === effect);
  const kept = present.filter((taint) => !isManaged(taint) || isIn(wanted, taint));
  const added = wanted.filter((taint) => !isIn(present, taint));
  return kept.length < present.length || added.length > 0 ? [...kept, ...added] : undefined;
}

function isManaged({ key, effect }: Taint): boolean {
  if (!key.startsWith(PREFIX)) return false;
  const name = key.slice(PREFIX.length);
  if (effect === 'NoExecute') return EVICTING.has(name);
  return (
    effect === 'NoSchedule' && (name === 'unschedulable' || [...TAINT_OF.values()].includes(name))
  );
}
