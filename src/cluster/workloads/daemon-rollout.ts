import type { DaemonSet, Node, Pod } from '../../api/builtin.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { isFinished, isPodReady } from '../../api/workloads.ts';
import { matchesNodeAffinity } from '../nodes/node-filters.ts';
import { byAge, nonZero } from '../support/pod-control.ts';
import { amountOf } from './rolling-update.ts';
import { untolerated } from '../nodes/taints.ts';
import type { Toleration } from '../nodes/taints.ts';

type PodView = DeepReadonly<Pod>;

/** How a rollout judges Pods. */
export interface PodChecks {
  readonly isAvailable: (pod: PodView) => boolean;
  /** Whether the Pod has the current template. */
  readonly isUpdated: (pod: PodView) => boolean;
}

/** Changes that one sync makes. */
export interface DaemonPlan {
  /** Names of nodes. */
  readonly creates: readonly string[];
  readonly deletes: readonly PodView[];
}

/** Node with the Pods of a DaemonSet. */
interface DaemonNode {
  readonly name: string;
  readonly exists: boolean;
  /** Bound Pods first, then the oldest. */
  readonly pods: readonly PodView[];
  readonly shouldRun: boolean;
  /** Whether a Pod that runs may stay. */
  readonly mayStay: boolean;
}

/** The nodes and Pods of a DaemonSet, and which Pods are created and deleted. */
export class DaemonRollout {
  readonly #nodes: readonly DaemonNode[];
  /** Number of Pods without a node, because admission changed their affinity. */
  readonly #unassigned: number;
  readonly #checks: PodChecks;
  readonly #maxSurge: number;
  readonly #maxUnavailable: number;

  constructor(
    { spec }: DeepReadonly<DaemonSet>,
    nodes: readonly DeepReadonly<Node>[],
    pods: readonly PodView[],
    checks: PodChecks,
  ) {
    this.#checks = checks;
    const live = pods.filter((pod) => !isFinished(pod) || !isTerminating(pod));
    const podsOf = Map.groupBy(live.toSorted(byBindingAndAge), targetNode);
    const template = spec?.template.spec;
    const tolerations = daemonTolerations(template);
    const known = nodes.map((node): DaemonNode => {
      const { name } = node.metadata;
      const isSelected =
        (template?.nodeName ?? name) === name && matchesNodeAffinity(template, node);
      const tolerates = (...effects: readonly string[]) =>
        untolerated(node.spec?.taints ?? [], tolerations, effects).length === 0;
      return {
        name,
        exists: true,
        pods: podsOf.get(name) ?? [],
        shouldRun: isSelected && tolerates('NoSchedule', 'NoExecute'),
        mayStay: isSelected && tolerates('NoExecute'),
      };
    });
    const missing = Array.from(podsOf).flatMap(([name = '', pods]) =>
      name === '' || known.some((node) => node.name === name)
        ? []
        : { name, exists: false, pods, shouldRun: false, mayStay: false },
    );
    this.#nodes = [...known, ...missing];
    this.#unassigned = podsOf.get(undefined)?.length ?? 0;
    const desired = this.#nodes.filter(({ shouldRun }) => shouldRun).length;
    const { maxSurge, maxUnavailable } =
      spec?.updateStrategy?.type === 'RollingUpdate'
        ? (spec.updateStrategy.rollingUpdate ?? {})
        : {};
    this.#maxSurge = amountOf(maxSurge, desired, 'up');
    const unavailable = amountOf(maxUnavailable, desired, 'up');
    this.#maxUnavailable = this.#maxSurge === 0 ? Math.max(1, unavailable) : unavailable;
  }

  /** Returns the Pods that have ended although they should run, with their nodes. */
  ended(): readonly { readonly node: string; readonly pod: PodView }[] {
    return this.#nodes
      .filter(({ mayStay }) => mayStay)
      .flatMap(({ name, pods }) => pods.filter(isFinished).map((pod) => ({ node: name, pod })));
  }

  /** Plans Pods for nodes without one, and deletes Pods that should not run. */
  manage(): DaemonPlan {
    const creates: string[] = [];
    const deletes = this.#nodes.flatMap(({ name, exists, pods, shouldRun, mayStay }) => {
      if (!exists) return pods.filter(({ spec }) => !spec?.nodeName);
      const present = pods.filter((pod) => !isTerminating(pod));
      const running = present.filter((pod) => !isFinished(pod));
      const isFree = pods.length === 0 || (this.#maxSurge > 0 && running.length === 0);
      if (shouldRun && isFree) creates.push(name);
      if (!mayStay) return present;
      return this.#maxSurge === 0 ? running.slice(1) : this.#surplus(running);
    });
    // Each of these Pods may still get a node. Upstream creates more without end.
    return { creates: creates.slice(this.#unassigned), deletes };
  }

  /** Plans the next step of a rolling update. */
  update(): DaemonPlan {
    return this.#maxSurge === 0 ? this.#replace() : this.#surge();
  }

  status(): NonNullable<DaemonSet['status']> {
    const desired = this.#nodes.filter(({ shouldRun }) => shouldRun);
    // Only the oldest Pod of a node counts.
    const first = desired.flatMap(({ pods }) => pods.slice(0, 1));
    const ready = first.filter(isPodReady);
    const available = ready.filter(this.#checks.isAvailable).length;
    return {
      currentNumberScheduled: first.length,
      numberMisscheduled: this.#nodes.filter(
        ({ exists, shouldRun, pods }) => exists && !shouldRun && pods.length > 0,
      ).length,
      desiredNumberScheduled: desired.length,
      numberReady: ready.length,
      ...nonZero({
        updatedNumberScheduled: first.filter(this.#checks.isUpdated).length,
        numberAvailable: available,
        numberUnavailable: desired.length - available,
      }),
    };
  }

  /** While it surges, a node may have an updated Pod and an old one until the updated is available. */
  #surplus(running: readonly PodView[]): PodView[] {
    const { isUpdated, isAvailable } = this.#checks;
    const [updated, ...moreUpdated] = running.filter(isUpdated);
    const [old, ...moreOld] = running.filter((pod) => !isUpdated(pod));
    const isReplaced = updated && old && (!isPodReady(old) || isAvailable(updated));
    return [...moreUpdated, ...moreOld, ...(isReplaced ? [old] : [])];
  }

  /** Deletes old Pods, so that at most `maxUnavailable` nodes have no available Pod. */
  #replace(): DaemonPlan {
    const { isAvailable } = this.#checks;
    const broken: PodView[] = [];
    const candidates: PodView[] = [];
    let unavailable = 0;
    for (const node of this.#inUse()) {
      const { updated, old, isUnique } = this.#podsOn(node);
      if (!isUnique || (updated && old) || (!updated && !old)) unavailable++;
      else if (updated && !isAvailable(updated)) unavailable++;
      else if (old && !isAvailable(old)) {
        broken.push(old);
        unavailable++;
      } else if (old) candidates.push(old);
    }
    const left = Math.max(0, this.#maxUnavailable - unavailable);
    return { creates: [], deletes: [...broken, ...candidates.slice(0, left)] };
  }

  /** Creates updated Pods beside at most `maxSurge` old ones that are available. */
  #surge(): DaemonPlan {
    const { isAvailable } = this.#checks;
    const urgent: string[] = [];
    const candidates: string[] = [];
    const deletes: PodView[] = [];
    const unwanted: PodView[] = [];
    let surging = 0;
    let available = 0;
    for (const node of this.#inUse()) {
      const { updated, old, isUnique } = this.#podsOn(node);
      if (!isUnique) {
        surging++;
        continue;
      }
      const counted = old ?? updated;
      if (counted && isAvailable(counted)) available++;
      if (!old) continue;
      if (updated) {
        if (isAvailable(updated)) deletes.push(old);
        else surging++;
      } else if (!node.shouldRun) (isAvailable(old) ? unwanted : deletes).push(old);
      else (isAvailable(old) ? candidates : urgent).push(node.name);
    }
    const desired = this.#nodes.filter(({ shouldRun }) => shouldRun).length;
    const removable = Math.max(0, available - desired);
    const left = Math.max(0, this.#maxSurge - surging);
    return {
      creates: [...urgent, ...candidates.slice(0, left)],
      deletes: [...deletes, ...unwanted.slice(0, removable)],
    };
  }

  #inUse(): readonly DaemonNode[] {
    return this.#nodes.filter(({ shouldRun, pods }) => shouldRun || pods.length > 0);
  }

  #podsOn({ pods }: DaemonNode) {
    const present = pods.filter((pod) => !isTerminating(pod));
    const [updated, ...moreUpdated] = present.filter(this.#checks.isUpdated);
    const [old, ...moreOld] = present.filter((pod) => !this.#checks.isUpdated(pod));
    return { updated, old, isUnique: moreUpdated.length + moreOld.length === 0 };
  }
}

/** Taints that all Pods of DaemonSets tolerate, with their effects. */
const TOLERATED: readonly (readonly [string, NonNullable<Toleration['effect']>])[] = [
  ['not-ready', 'NoExecute'],
  ['unreachable', 'NoExecute'],
  ['disk-pressure', 'NoSchedule'],
  ['memory-pressure', 'NoSchedule'],
  ['pid-pressure', 'NoSchedule'],
  ['unschedulable', 'NoSchedule'],
];

/** Returns the tolerations of the Pods of a DaemonSet. */
export function daemonTolerations(
  template: DeepReadonly<Pod>['spec'] | undefined,
): readonly Toleration[] {
  const tolerations = template?.tolerations ?? [];
  const network = template?.hostNetwork ? ([['network-unavailable', 'NoSchedule']] as const) : [];
  const added = [...TOLERATED, ...network].map(([name, effect]) => {
    return { key: `node.kubernetes.io/${name}`, operator: 'Exists' as const, effect };
  });
  const isAdded = ({ key, operator, effect, value = '' }: Toleration) =>
    value === '' &&
    added.some((own) => own.key === key && own.operator === operator && own.effect === effect);
  return [...tolerations.filter((toleration) => !isAdded(toleration)), ...added];
}

/** Returns the node of a bound Pod, or the node that its affinity names. */
function targetNode({ spec }: PodView): string | undefined {
  if (spec?.nodeName) return spec.nodeName;
  const required = spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const fields = required?.nodeSelectorTerms.flatMap(({ matchFields = [] }) => matchFields);
  const field = fields?.find(({ key, operator }) => key === 'metadata.name' && operator === 'In');
  return field?.values?.length === 1 ? field.values[0] : undefined;
}

function byBindingAndAge(a: PodView, b: PodView): number {
  return Number(!a.spec?.nodeName) - Number(!b.spec?.nodeName) || byAge(a, b);
}

function isTerminating({ metadata }: PodView): boolean {
  return metadata.deletionTimestamp !== undefined;
}
