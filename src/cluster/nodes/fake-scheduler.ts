import { NAMESPACES, NODES, PODS } from '../../api/builtin.ts';
import type { Node, Pod } from '../../api/builtin.ts';
import { isApiError } from '../../api/api-error.ts';
import { timestamp } from '../../api/conditions.ts';
import { objectKey } from '../../api/object-key.ts';
import type { ObjectKey } from '../../api/object-key.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { objectPath } from '../../api/resource.ts';
import { Controller } from '../../manager/controller.ts';
import type { SyncContext } from '../../manager/controller-options.ts';
import { done, requeueAfter } from '../../workqueue/outcome.ts';
import { misfitOf } from './node-filters.ts';
import type { FilterContext } from './node-filters.ts';
import { amountsOf, NodeUsage } from './node-usage.ts';
import { patchPodStatus } from '../support/pod-control.ts';
import type { ClusterDeps } from '../support/resource-monitors.ts';

const NAME = 'default-scheduler';

/** Backoff between attempts for one Pod, as in kube-scheduler. */
const INITIAL_BACKOFF_MS = 1000;
const MAX_BACKOFF_MS = 10_000;

/** Time after which a Pod without a node is tried again without an event. */
const UNSCHEDULABLE_MS = 5 * 60_000;

/** A Pod for which no node was found. */
interface Unschedulable {
  readonly attempts: number;
  /** `Clock.monotonic()`. */
  readonly notBeforeMs: number;
}

/**
 * Scheduler: binds Pods to nodes with kube-scheduler's filters for unschedulable nodes, taints, node
 * selectors, required affinity, host ports and requests. Prefers nodes with few requests. Ignores preferred
 * affinity, topology spread constraints, volumes and priorities: it does not preempt.
 */
export function fakeScheduler(deps: ClusterDeps): Controller {
  const pods = deps.informers.for(PODS);
  const nodes = deps.informers.for(NODES);
  const namespaces = deps.informers.for(NAMESPACES);
  const usage = new NodeUsage();
  pods.addHandler(usage.handler);
  const recorder = deps.events.recorder(NAME);
  const waiting = new Map<ObjectKey, Unschedulable>();
  const filterContext = (): FilterContext => ({
    usage,
    nodes: nodes.lister.list().toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1)),
    namespaceLabels: (name) => namespaces.lister.get(objectKey(undefined, name))?.metadata.labels,
  });
  return (
    new Controller(deps, {
      name: 'scheduler',
      kind: PODS.kind,
      concurrency: 10,
      sync: async (key, context) => {
        const { client, signal } = context;
        const pod = pods.lister.get(key);
        if (!pod || !isPending(pod)) {
          waiting.delete(key);
          return done();
        }
        const { attempts = 0, notBeforeMs = 0 } = waiting.get(key) ?? {};
        const now = deps.clock.monotonic();
        if (now < notBeforeMs) return requeueAfter(notBeforeMs - now);
        const choice = choose(pod, filterContext());
        if (choice.kind === 'none') {
          const backoffMs = Math.min(MAX_BACKOFF_MS, INITIAL_BACKOFF_MS * 2 ** attempts);
          waiting.set(key, { attempts: attempts + 1, notBeforeMs: now + backoffMs });
          recorder.warning(pod, 'FailedScheduling', choice.message);
          await reportUnschedulable(pod, choice.message, timestamp(deps.clock.now()), context);
          return requeueAfter(UNSCHEDULABLE_MS);
        }
        waiting.delete(key);
        const { name, namespace = '', uid } = pod.metadata;
        usage.assume(pod, choice.node);
        const binding = {
          apiVersion: 'v1',
          kind: 'Binding',
          metadata: { name, namespace, uid },
          target: { apiVersion: 'v1', kind: 'Node', name: choice.node },
        };
        const path = objectPath(PODS, pod.metadata, 'binding');
        try {
          await client.raw({ method: 'POST', path, body: binding, signal });
          recorder.normal(pod, 'Scheduled', `Successfully assigned ${key} to ${choice.node}`);
        } catch (error) {
          usage.remove(pod);
          if (!isApiError(error, 'notFound')) throw error;
        }
        return done();
      },
    })
      .for(pods)
      .watches(nodes, () => [...waiting.keys()])
      .watches(namespaces, () => undefined)
      // A Pod that ends releases resources, and a bound one can satisfy the affinity of another.
      .watches(pods, ({ spec }) => (spec?.nodeName ? [...waiting.keys()] : undefined))
  );
}

function isPending({ metadata, spec }: DeepReadonly<Pod>): boolean {
  return (
    !spec?.nodeName &&
    metadata.deletionTimestamp === undefined &&
    (spec?.schedulerName ?? NAME) === NAME &&
    (spec?.schedulingGates ?? []).length === 0
  );
}

type Choice =
  | { readonly kind: 'node'; readonly node: string }
  | { readonly kind: 'none'; readonly message: string };

/** Chooses a node. The message is kube-scheduler's. */
function choose(pod: DeepReadonly<Pod>, context: FilterContext): Choice {
  const { nodes, usage } = context;
  if (nodes.length === 0) {
    return { kind: 'none', message: 'no nodes available to schedule pods' };
  }
  const reasons: string[] = [];
  const preemption: string[] = [];
  let best: { readonly name: string; readonly load: number } | undefined;
  for (const node of nodes) {
    const misfit = misfitOf(pod, node, context);
    if (misfit) {
      for (const reason of misfit.reasons) reasons.push(reason);
      preemption.push(
        misfit.isResolvable
          ? 'No preemption victims found for incoming pod'
          : 'Preemption is not helpful for scheduling',
      );
      continue;
    }
    const load = loadOf(node, usage);
    if (!best || load < best.load) best = { name: node.metadata.name, load };
  }
  if (best) return { kind: 'node', node: best.name };
  const none = `0/${nodes.length} nodes are available`;
  const message = `${none}: ${counted(reasons)}. preemption: ${none}: ${counted(preemption)}.`;
  return { kind: 'none', message };
}

/** Returns `2 a, 1 b`, sorted. */
function counted(reasons: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return Array.from(counts, ([reason, count]) => `${count} ${reason}`)
    .toSorted()
    .join(', ');
}

/** Returns the highest share of a resource that the Pods of a node request. */
function loadOf({ metadata, status }: DeepReadonly<Node>, usage: NodeUsage): number {
  const allocatable = amountsOf(status?.allocatable);
  return Array.from(usage.requestedOn(metadata.name), ([name, amount]) => {
    const capacity = Number(allocatable.get(name) ?? 0n);
    return capacity > 0 ? Number(amount) / capacity : 0;
  }).reduce((most, share) => Math.max(most, share), 0);
}

/** Sets the condition PodScheduled to False. */
async function reportUnschedulable(
  pod: DeepReadonly<Pod>,
  message: string,
  now: string,
  context: SyncContext,
): Promise<void> {
  const before = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled');
  if (before?.status === 'False' && before.message === message) return;
  const condition = {
    type: 'PodScheduled',
    status: 'False',
    reason: 'Unschedulable',
    message,
    lastTransitionTime: before?.status === 'False' ? before.lastTransitionTime : now,
  };
  await patchPodStatus(context, pod, { conditions: [condition] }, 'kube-scheduler');
}
