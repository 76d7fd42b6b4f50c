import type { Pod } from '../../api/builtin.ts';
import { timestamp } from '../../api/conditions.ts';
import { equalJson } from '../../api/equal.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { formatDuration } from '../../util/duration.ts';
import { READY } from './simulated-program.ts';
import { restartBackoffMs } from './container-state.ts';
import type { ContainerState, Ended } from './container-state.ts';
import { NODE_ADDRESS } from '../nodes/fake-node.ts';
import type { StartProblem } from './pod-environment.ts';
import type { PodRun, PodContainer } from './pod-containers.ts';
import { containersAt, isCompletedInit } from './pod-containers.ts';

type Status = NonNullable<Pod['status']>;

type ContainerStatus = NonNullable<Status['containerStatuses']>[number];

/**
 * Returns the status of a started Pod, and after how many milliseconds the status changes; undefined if
 * it does not change.
 */
export function podStatus(
  pod: DeepReadonly<Pod>,
  podRun: PodRun,
): {
  readonly status: Status;
  readonly nextMs: number | undefined;
  readonly states: ReadonlyMap<string, ContainerState>;
} {
  const { startedMs, elapsedMs, address } = podRun;
  const containers = containersAt(pod, podRun);
  const nextChangeMs = containers.reduce(
    (next, { changesAtMs }) => Math.min(next, changesAtMs),
    Infinity,
  );
  const at = (ms: number) => timestamp(startedMs + ms);
  const phase = phaseOf(containers);
  const canServe = pod.metadata.annotations?.[READY] !== 'false';
  const isReady = ({ state }: PodContainer) => state?.kind === 'running' && canServe;
  const serving = containers.filter(({ kind }) => kind === 'app' || kind === 'sidecar');
  const changedMs = serving.reduce(
    (latest, { offsetMs, state }) => Math.max(latest, offsetMs + (state ? changedAt(state) : 0)),
    0,
  );
  const incomplete = containers.filter((each) => each.kind === 'init' && !isCompletedInit(each));
  const statusesOf = (...kinds: readonly PodContainer['kind'][]) =>
    containers
      .filter(({ kind }) => kinds.includes(kind))
      .map((each) => containerStatus(pod, each, isReady(each), at));
  const initContainerStatuses = statusesOf('init', 'sidecar');
  const ephemeralContainerStatuses = statusesOf('ephemeral');
  const conditions = conditionsOf({
    phase,
    isServing: serving.every(isReady),
    startedAt: at(0),
    changedAt: at(changedMs),
    incomplete: incomplete.map(({ container }) => container.name),
  });
  return {
    status: {
      phase,
      startTime: pod.status?.startTime ?? at(0),
      hostIP: NODE_ADDRESS,
      hostIPs: [{ ip: NODE_ADDRESS }],
      podIP: address,
      podIPs: [{ ip: address }],
      conditions: conditions.map((condition) => dated(condition, pod, at(elapsedMs))),
      ...(initContainerStatuses.length > 0 && { initContainerStatuses }),
      containerStatuses: statusesOf('app'),
      ...(ephemeralContainerStatuses.length > 0 && { ephemeralContainerStatuses }),
    },
    nextMs: Number.isFinite(nextChangeMs) ? nextChangeMs - elapsedMs : undefined,
    states: new Map(
      containers.flatMap(({ container, state }) => (state ? [[container.name, state]] : [])),
    ),
  };
}

type Condition = NonNullable<Status['conditions']>[number];

/** Returns a condition with the time at which the status of the Pod got it. */
function dated(condition: Condition, { status }: DeepReadonly<Pod>, now: string): Condition {
  const before = status?.conditions?.find(({ type }) => type === condition.type);
  if (!before || condition.type === 'PodScheduled') return condition;
  const isSame = before.status === condition.status;
  return { ...condition, lastTransitionTime: (isSame && before.lastTransitionTime) || now };
}

function phaseOf(containers: readonly PodContainer[]): NonNullable<Status['phase']> {
  const inits = containers.filter((each) => each.kind === 'init' && !isCompletedInit(each));
  if (inits.length > 0) {
    return inits.some(({ state }) => state?.kind === 'ended') ? 'Failed' : 'Pending';
  }
  const states = containers.filter(({ kind }) => kind === 'app').map(({ state }) => state);
  if (states.some((state) => state?.kind !== 'ended')) return 'Running';
  const hasFailed = states.some((state) => state?.kind === 'ended' && state.ended.exitCode !== 0);
  return hasFailed ? 'Failed' : 'Succeeded';
}

function changedAt(state: ContainerState): number {
  return state.kind === 'running' ? state.sinceMs : state.ended.toMs;
}

function conditionsOf({
  phase,
  isServing,
  startedAt,
  changedAt,
  incomplete = [],
}: {
  readonly phase: string;
  readonly isServing: boolean;
  readonly startedAt: string;
  readonly changedAt: string;
  /** Names of init containers. */
  readonly incomplete?: readonly string[];
}): Condition[] {
  const always = (type: string) => ({ type, status: 'True', lastTransitionTime: startedAt });
  const completed = phase === 'Succeeded' ? { reason: 'PodCompleted' } : {};
  const isUnready = phase !== 'Succeeded' && (phase !== 'Pending' || incomplete.length > 0);
  const unready = isUnready ? { reason: 'ContainersNotReady' } : {};
  const serving = (type: string) => ({
    type,
    status: isServing ? 'True' : 'False',
    lastTransitionTime: changedAt,
    ...(!isServing && { ...unready, ...completed }),
  });
  return [
    always('PodScheduled'),
    incomplete.length === 0
      ? always('Initialized')
      : {
          ...always('Initialized'),
          status: 'False',
          reason: 'ContainersNotInitialized',
          message: `containers with incomplete status: [${incomplete.join(' ')}]`,
        },
    serving('ContainersReady'),
    serving('Ready'),
  ];
}

function containerStatus(
  { metadata }: DeepReadonly<Pod>,
  { container, kind, offsetMs, state }: PodContainer,
  isReady: boolean,
  at: (ms: number) => string,
): ContainerStatus {
  const { name, image = '', resources } = container;
  const { requests } = resources ?? {};
  const common = {
    name,
    image,
    imageID: '',
    ...(resources && {
      resources: structuredClone(resources) as ContainerStatus['resources'] & {},
    }),
    ...(requests && { allocatedResources: { ...requests } }),
  };
  if (!state) {
    const waiting = { reason: 'PodInitializing' };
    return { ...common, ready: false, started: false, restartCount: 0, state: { waiting } };
  }
  const hasSucceeded = state.kind === 'ended' && state.ended.exitCode === 0;
  return {
    ...common,
    containerID: `fake://${metadata.uid}/${name}`,
    ready: kind === 'init' ? hasSucceeded : isReady && kind !== 'ephemeral',
    started: kind !== 'init' && kind !== 'ephemeral' && state.kind === 'running',
    restartCount: state.restarts,
    ...statesOf(state, (ms) => at(offsetMs + ms), `container=${name} pod=${podText(metadata)}`),
  };
}

/** Returns the form of a Pod in kubelets' messages. */
export function podText({ name, namespace, uid }: DeepReadonly<Pod>['metadata']): string {
  return `${name}_${namespace}(${uid})`;
}

/**
 * Returns the status of a Pod that cannot start. Containers without a problem wait for the volumes and
 * the other containers.
 */
export function waitingStatus(
  { spec }: DeepReadonly<Pod>,
  problems: readonly StartProblem[],
  nowMs: number,
): Status {
  const startedAt = timestamp(nowMs);
  const containers = spec?.containers ?? [];
  const messages = new Map(
    problems.map((problem) => [problem.kind === 'container' && problem.container, problem.message]),
  );
  const conditions = conditionsOf({
    phase: 'Pending',
    isServing: false,
    startedAt,
    changedAt: startedAt,
  });
  const names = containers.map(({ name }) => name).join(' ');
  const message = `containers with unready status: [${names}]`;
  return {
    phase: 'Pending',
    startTime: startedAt,
    conditions: conditions.map((condition) =>
      condition.status === 'True'
        ? condition
        : Object.assign(condition, { reason: 'ContainersNotReady', message }),
    ),
    containerStatuses: containers.map(({ name, image = '' }) => {
      const problem = messages.get(name);
      return {
        name,
        image,
        imageID: '',
        ready: false,
        started: false,
        restartCount: 0,
        state: {
          waiting:
            problem === undefined
              ? { reason: 'ContainerCreating' }
              : { reason: 'CreateContainerConfigError', message: problem },
        },
      };
    }),
  };
}

function statesOf(
  state: ContainerState,
  at: (ms: number) => string,
  description: string,
): Pick<ContainerStatus, 'state' | 'lastState'> {
  const terminated = ({ exitCode, fromMs, toMs, message }: Ended) => ({
    exitCode,
    reason: exitCode === 0 ? 'Completed' : 'Error',
    ...(message !== undefined && { message }),
    startedAt: at(fromMs),
    finishedAt: at(toMs),
  });
  switch (state.kind) {
    case 'running':
      return {
        state: { running: { startedAt: at(state.sinceMs) } },
        ...(state.last && { lastState: { terminated: terminated(state.last) } }),
      };
    case 'backingOff':
      return {
        state: {
          waiting: {
            reason: 'CrashLoopBackOff',
            message: `back-off ${formatDuration(restartBackoffMs(state.restarts))} restarting failed ${description}`,
          },
        },
        lastState: { terminated: terminated(state.ended) },
      };
    case 'ended':
      return { state: { terminated: terminated(state.ended) } };
  }
}

/** Returns whether the Pod has the container states of `status`. */
export function hasContainerStates(pod: DeepReadonly<Pod>, status: Status): boolean {
  const lists = [
    'initContainerStatuses',
    'containerStatuses',
    'ephemeralContainerStatuses',
  ] as const;
  return lists.every((list) => {
    const present = new Map((pod.status?.[list] ?? []).map((each) => [each.name, each]));
    return (status[list] ?? []).every(({ name, ready, restartCount, resources, state = {} }) => {
      const before = present.get(name);
      const [kind] = Object.keys(state);
      return (
        before?.restartCount === restartCount &&
        before.ready === ready &&
        equalJson(before.resources ?? {}, resources ?? {}) &&
        kind !== undefined &&
        kind in (before.state ?? {}) &&
        before.state?.waiting?.reason === state.waiting?.reason &&
        before.state?.waiting?.message === state.waiting?.message
      );
    });
  });
}
