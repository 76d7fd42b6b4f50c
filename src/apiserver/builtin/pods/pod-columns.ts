import type { Pod as MutablePod } from '../../../api/builtin.ts';
import type { DeepReadonly } from '../../../api/object.ts';
import type {
  StoredObject,
  TableColumn,
  TableRowCondition,
} from '../../objects/resource-definition.ts';
import { AGE_COLUMN, NAME_COLUMN, ageOf, column, wide } from '../../table/column.ts';

type Pod = DeepReadonly<MutablePod>;

type PodStatus = NonNullable<Pod['status']>;

type ContainerStatus = NonNullable<PodStatus['containerStatuses']>[number];

type Terminated = NonNullable<NonNullable<ContainerStatus['state']>['terminated']>;

const podColumn = column<MutablePod>;

const wideColumn = wide<MutablePod>;

export const POD_COLUMNS: readonly TableColumn[] = [
  NAME_COLUMN,
  podColumn('Ready', 'Number of ready containers, and of all containers.', (pod) => {
    const { ready, total } = summarize(pod);
    return `${ready}/${total}`;
  }),
  podColumn('Status', 'Aggregate status of the containers.', (pod) => summarize(pod).reason),
  podColumn(
    'Restarts',
    'Number of container restarts, and the age of the last one.',
    (pod, nowMs) => {
      const { restarts, lastRestart } = summarize(pod);
      return restarts > 0 && lastRestart
        ? `${restarts} (${ageOf(lastRestart, nowMs)} ago)`
        : `${restarts}`;
    },
  ),
  AGE_COLUMN,
  wideColumn('IP', 'Address of the pod.', ({ status }) => status?.podIPs?.[0]?.ip || '<none>'),
  wideColumn('Node', 'Node that the pod is assigned to.', ({ spec }) => spec?.nodeName || '<none>'),
  wideColumn(
    'Nominated Node',
    'Node that the pod is nominated for after preemption.',
    ({ status }) => status?.nominatedNodeName || '<none>',
  ),
  wideColumn(
    'Readiness Gates',
    'Number of true readiness gates, and of all gates.',
    readinessGates,
  ),
];

/** The row conditions of a pod: `Completed` if it has ended. */
export function podRowConditions(object: StoredObject): readonly TableRowCondition[] {
  const reason = (object as Pod).status?.phase;
  if (reason !== 'Succeeded' && reason !== 'Failed') return [];
  const message =
    reason === 'Succeeded' ? 'The pod has completed successfully.' : 'The pod failed.';
  return [{ type: 'Completed', status: 'True', reason, message }];
}

interface Summary {
  ready: number;
  readonly total: number;
  reason: string;
  restarts: number;
  /** Time when the last restarted container had terminated, RFC 3339. */
  lastRestart: string | undefined;
}

/**
 * Summarizes a pod as `kubectl get pods` does. Each source of the reason overrides the previous one:
 * the phase, the pod's own reason, the init containers, the containers, deletion.
 */
function summarize(pod: Pod): Summary {
  const status: PodStatus = pod.status ?? {};
  const phase = status.phase ?? '';
  const gated = status.conditions?.some(
    (condition) => condition.type === 'PodScheduled' && condition.reason === 'SchedulingGated',
  );
  const init = summarizeInit(pod);
  const summary: Summary = {
    ready: init.ready,
    total: (pod.spec?.containers.length ?? 0) + init.sidecars,
    reason: init.reason ?? (gated ? 'SchedulingGated' : status.reason || phase),
    restarts: init.restarts,
    lastRestart: init.lastRestart,
  };
  if (init.reason === undefined || isTrue(status, 'Initialized')) {
    summary.restarts = init.sidecarRestarts;
    summary.lastRestart = init.lastSidecarRestart;
    summarizeContainers(status, summary);
  }
  if (pod.metadata.deletionTimestamp) {
    if (status.reason === 'NodeLost') summary.reason = 'Unknown';
    else if (phase !== 'Succeeded' && phase !== 'Failed') summary.reason = 'Terminating';
  }
  return summary;
}

interface InitSummary {
  ready: number;
  sidecars: number;
  /** Why the pod is still initializing; undefined after initialization. */
  reason: string | undefined;
  restarts: number;
  lastRestart: string | undefined;
  sidecarRestarts: number;
  lastSidecarRestart: string | undefined;
}

function summarizeInit(pod: Pod): InitSummary {
  const containers = pod.spec?.initContainers ?? [];
  const sidecars = new Set(
    containers.filter(({ restartPolicy }) => restartPolicy === 'Always').map(({ name }) => name),
  );
  const summary: InitSummary = {
    ready: 0,
    sidecars: sidecars.size,
    reason: undefined,
    restarts: 0,
    lastRestart: undefined,
    sidecarRestarts: 0,
    lastSidecarRestart: undefined,
  };
  for (const [index, container] of (pod.status?.initContainerStatuses ?? []).entries()) {
    const isSidecar = sidecars.has(container.name);
    summary.restarts += container.restartCount;
    summary.lastRestart = laterOf(summary.lastRestart, endedAt(container));
    if (isSidecar) {
      summary.sidecarRestarts += container.restartCount;
      summary.lastSidecarRestart = laterOf(summary.lastSidecarRestart, endedAt(container));
    }
    const { terminated, waiting } = container.state ?? {};
    if (terminated?.exitCode === 0) continue;
    if (isSidecar && container.started) {
      if (container.ready) summary.ready++;
      continue;
    }
    if (terminated) summary.reason = `Init:${exitReason(terminated)}`;
    else if (waiting?.reason && waiting.reason !== 'PodInitializing') {
      summary.reason = `Init:${waiting.reason}`;
    } else summary.reason = `Init:${index}/${containers.length}`;
    break;
  }
  return summary;
}

function summarizeContainers(status: PodStatus, summary: Summary): void {
  let hasRunning = false;
  let errorReason = '';
  // In reverse order, so that the first container overrides the others.
  for (const container of (status.containerStatuses ?? []).toReversed()) {
    summary.restarts += container.restartCount;
    summary.lastRestart = laterOf(summary.lastRestart, endedAt(container));
    const { waiting, terminated, running } = container.state ?? {};
    if (waiting?.reason) summary.reason = waiting.reason;
    else if (terminated) {
      summary.reason = exitReason(terminated);
      if (terminated.exitCode !== 0) errorReason = summary.reason;
    } else if (container.ready && running) {
      hasRunning = true;
      summary.ready++;
    }
  }
  if (summary.reason !== 'Completed') return;
  if (hasRunning && isTrue(status, 'Ready')) summary.reason = 'Running';
  else if (errorReason) summary.reason = errorReason;
  else if (hasRunning) summary.reason = 'NotReady';
}

function exitReason({ reason, signal, exitCode }: Terminated): string {
  return reason || (signal ? `Signal:${signal}` : `ExitCode:${exitCode}`);
}

function endedAt(container: ContainerStatus): string | undefined {
  return container.lastState?.terminated?.finishedAt;
}

function laterOf(a: string | undefined, b: string | undefined): string | undefined {
  return a === undefined || (b !== undefined && Date.parse(b) > Date.parse(a)) ? b : a;
}

function isTrue(status: PodStatus, type: string): boolean {
  return (
    status.conditions?.some(
      (condition) => condition.type === type && condition.status === 'True',
    ) ?? false
  );
}

function readinessGates(pod: Pod): string {
  const gates = pod.spec?.readinessGates ?? [];
  if (gates.length === 0) return '<none>';
  const passed = gates.filter(({ conditionType }) => isTrue(pod.status ?? {}, conditionType));
  return `${passed.length}/${gates.length}`;
}
