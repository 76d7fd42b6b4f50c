import type { Pod } from '../api/builtin.ts';
import { timestamp } from '../api/conditions.ts';
import type { DeepReadonly } from '../api/object.ts';
import { containerStateAt, programOf } from './fake-container.ts';
import type { ContainerState, Ended, RestartPolicy } from './fake-container.ts';

type Container = NonNullable<DeepReadonly<Pod>['spec']>['containers'][number];
type Status = NonNullable<Pod['status']>;
type ContainerStatus = NonNullable<Status['containerStatuses']>[number];

/** Running Pod. */
export interface PodRun {
  /** Milliseconds since the epoch. */
  readonly startedMs: number;
  readonly elapsedMs: number;
  readonly address: string;
}

/**
 * Returns the status of a started Pod, and after how many milliseconds the status changes; undefined if
 * it does not change.
 */
export function podStatus(
  pod: DeepReadonly<Pod>,
  { startedMs, elapsedMs, address }: PodRun,
): { readonly status: Status; readonly nextMs: number | undefined } {
  const policy = restartPolicyOf(pod);
  const containers = (pod.spec?.containers ?? []).map((container) => {
    const program = programOf(container, pod.metadata.annotations);
    const { state, changesAtMs } = containerStateAt(program, policy, elapsedMs);
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
      startTime: at(0),
      hostIP: '10.0.0.1',
      hostIPs: [{ ip: '10.0.0.1' }],
      podIP: address,
      podIPs: [{ ip: address }],
      conditions: conditionsOf({ phase, isServing, startedAt: at(0), changedAt: at(changedMs) }),
      containerStatuses: containers.map(({ container, state }) =>
        containerStatus(pod.metadata.uid, container, state, at),
      ),
    },
    nextMs: Number.isFinite(nextChangeMs) ? nextChangeMs - elapsedMs : undefined,
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
  podUid: string,
  { name, image = '' }: Container,
  state: ContainerState,
  at: (ms: number) => string,
): ContainerStatus {
  return {
    name,
    image,
    imageID: '',
    containerID: `fake://${podUid}/${name}`,
    ready: state.kind === 'running',
    started: state.kind === 'running',
    restartCount: state.restarts,
    ...statesOf(state, at),
  };
}

function statesOf(
  state: ContainerState,
  at: (ms: number) => string,
): Pick<ContainerStatus, 'state' | 'lastState'> {
  const terminated = ({ exitCode, fromMs, toMs }: Ended) => ({
    exitCode,
    reason: exitCode === 0 ? 'Completed' : 'Error',
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
          waiting: { reason: 'CrashLoopBackOff', message: 'back-off restarting failed container' },
        },
        lastState: { terminated: terminated(state.ended) },
      };
    case 'ended':
      return { state: { terminated: terminated(state.ended) } };
  }
}
