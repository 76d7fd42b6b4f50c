import type { Pod } from '../api/builtin.ts';
import { timestamp } from '../api/conditions.ts';
import type { DeepReadonly } from '../api/object.ts';
import { formatDuration } from '../util/duration.ts';
import { backoffMs, containerStateAt } from './fake-container.ts';
import type { ContainerState, Ended, Program, RestartPolicy } from './fake-container.ts';
import type { StartProblem } from './pod-environment.ts';

type Container = NonNullable<DeepReadonly<Pod>['spec']>['containers'][number];
type Status = NonNullable<Pod['status']>;
type ContainerStatus = NonNullable<Status['containerStatuses']>[number];

/** Running Pod. */
export interface PodRun {
  /** Milliseconds since the epoch. */
  readonly startedMs: number;
  readonly elapsedMs: number;
  readonly address: string;
  readonly programOf: (container: Container) => Program;
}

/**
 * Returns the status of a started Pod, and after how many milliseconds the status changes; undefined if
 * it does not change.
 */
export function podStatus(
  pod: DeepReadonly<Pod>,
  { startedMs, elapsedMs, address, programOf }: PodRun,
): {
  readonly status: Status;
  readonly nextMs: number | undefined;
  readonly states: ReadonlyMap<string, ContainerState>;
} {
  const policy = restartPolicyOf(pod);
  const containers = (pod.spec?.containers ?? []).map((container) => {
    const { state, changesAtMs } = containerStateAt(programOf(container), policy, elapsedMs);
    return { container, state, changesAtMs };
  });
  const nextChangeMs = containers.reduce(
    (next, { changesAtMs = Infinity }) => Math.min(next, changesAtMs),
    Infinity,
  );
  const at = (ms: number) => timestamp(startedMs + ms);
  const phase = phaseOf(containers.map(({ state }) => state));
  const isServing = containers.every(({ state }) => state.kind === 'running');
  const changedMs = containers.reduce((latest, { state }) => Math.max(latest, changedAt(state)), 0);
  return {
    status: {
      phase,
      startTime: pod.status?.startTime ?? at(0),
      hostIP: '10.0.0.1',
      hostIPs: [{ ip: '10.0.0.1' }],
      podIP: address,
      podIPs: [{ ip: address }],
      conditions: conditionsOf({ phase, isServing, startedAt: at(0), changedAt: at(changedMs) }),
      containerStatuses: containers.map(({ container, state }) =>
        containerStatus(pod, container, state, at),
      ),
    },
    nextMs: Number.isFinite(nextChangeMs) ? nextChangeMs - elapsedMs : undefined,
    states: new Map(containers.map(({ container, state }) => [container.name, state])),
  };
}

export function restartPolicyOf({ spec }: DeepReadonly<Pod>): RestartPolicy {
  const policy = spec?.restartPolicy;
  return policy === 'Never' || policy === 'OnFailure' ? policy : 'Always';
}

function phaseOf(states: readonly ContainerState[]): string {
  if (states.some(({ kind }) => kind !== 'ended')) return 'Running';
  const hasFailed = states.some((state) => state.kind === 'ended' && state.ended.exitCode !== 0);
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
}: {
  readonly phase: string;
  readonly isServing: boolean;
  readonly startedAt: string;
  readonly changedAt: string;
}): NonNullable<Status['conditions']> {
  const always = (type: string) => ({ type, status: 'True', lastTransitionTime: startedAt });
  const completed = phase === 'Succeeded' ? { reason: 'PodCompleted' } : {};
  const unready = phase === 'Running' || phase === 'Failed' ? { reason: 'ContainersNotReady' } : {};
  const serving = (type: string) => ({
    type,
    status: isServing ? 'True' : 'False',
    lastTransitionTime: changedAt,
    ...(isServing ? {} : { ...unready, ...completed }),
  });
  return [
    always('PodScheduled'),
    always('Initialized'),
    serving('ContainersReady'),
    serving('Ready'),
  ];
}

function containerStatus(
  { metadata }: DeepReadonly<Pod>,
  { name, image = '' }: Container,
  state: ContainerState,
  at: (ms: number) => string,
): ContainerStatus {
  return {
    name,
    image,
    imageID: '',
    containerID: `fake://${metadata.uid}/${name}`,
    ready: state.kind === 'running',
    started: state.kind === 'running',
    restartCount: state.restarts,
    ...statesOf(state, at, `container=${name} pod=${podText(metadata)}`),
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
      const problem = problems.find((each) => each.kind === 'container' && each.container === name);
      return {
        name,
        image,
        imageID: '',
        ready: false,
        started: false,
        restartCount: 0,
        state: {
          waiting: problem
            ? { reason: 'CreateContainerConfigError', message: problem.message }
            : { reason: 'ContainerCreating' },
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
            message: `back-off ${formatDuration(backoffMs(state.restarts))} restarting failed ${description}`,
          },
        },
        lastState: { terminated: terminated(state.ended) },
      };
    case 'ended':
      return { state: { terminated: terminated(state.ended) } };
  }
}
