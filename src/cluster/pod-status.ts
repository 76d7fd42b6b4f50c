import type { Pod } from '../api/builtin.ts';
import { timestamp } from '../api/conditions.ts';
import type { DeepReadonly } from '../api/object.ts';
import { lifeAt, programOf } from './fake-container.ts';
import type { ContainerLife, Ended, RestartPolicy } from './fake-container.ts';

type Container = NonNullable<DeepReadonly<Pod>['spec']>['containers'][number];
type Status = NonNullable<Pod['status']>;
type ContainerStatus = NonNullable<Status['containerStatuses']>[number];

export interface PodRun {
  /** Milliseconds since the epoch. */
  readonly startedMs: number;
  readonly elapsedMs: number;
  readonly address: string;
}

/**
 * The status of a Pod that has been started, and in how many milliseconds it will be another;
 * undefined if it stays as it is.
 */
export function podStatus(
  pod: DeepReadonly<Pod>,
  { startedMs, elapsedMs, address }: PodRun,
): { readonly status: Status; readonly nextMs: number | undefined } {
  const policy = restartPolicyOf(pod);
  const lives = (pod.spec?.containers ?? []).map((container) => {
    const program = programOf(container, pod.metadata.annotations);
    const { life, changesAtMs } = lifeAt(program, policy, elapsedMs);
    return { container, life, changesAtMs };
  });
  const nextChangeMs = lives.reduce(
    (next, { changesAtMs = Infinity }) => Math.min(next, changesAtMs),
    Infinity,
  );
  const at = (ms: number) => timestamp(startedMs + ms);
  const phase = phaseOf(lives.map(({ life }) => life));
  const isServing = lives.every(({ life }) => life.kind === 'running');
  const changedMs = lives.reduce((latest, { life }) => Math.max(latest, changedAt(life)), 0);
  return {
    status: {
      phase,
      startTime: at(0),
      hostIP: '10.0.0.1',
      hostIPs: [{ ip: '10.0.0.1' }],
      podIP: address,
      podIPs: [{ ip: address }],
      conditions: conditionsOf({ phase, isServing, startedAt: at(0), changedAt: at(changedMs) }),
      containerStatuses: lives.map(({ container, life }) =>
        containerStatus(pod.metadata.uid, container, life, at),
      ),
    },
    nextMs: Number.isFinite(nextChangeMs) ? nextChangeMs - elapsedMs : undefined,
  };
}

export function restartPolicyOf({ spec }: DeepReadonly<Pod>): RestartPolicy {
  const policy = spec?.restartPolicy;
  return policy === 'Never' || policy === 'OnFailure' ? policy : 'Always';
}

function phaseOf(lives: readonly ContainerLife[]): string {
  if (lives.some(({ kind }) => kind !== 'ended')) return 'Running';
  const hasFailed = lives.some((life) => life.kind === 'ended' && life.ended.exitCode !== 0);
  return hasFailed ? 'Failed' : 'Succeeded';
}

function changedAt(life: ContainerLife): number {
  return life.kind === 'running' ? life.sinceMs : life.ended.toMs;
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
  life: ContainerLife,
  at: (ms: number) => string,
): ContainerStatus {
  return {
    name,
    image,
    imageID: '',
    containerID: `fake://${podUid}/${name}`,
    ready: life.kind === 'running',
    started: life.kind === 'running',
    restartCount: life.restarts,
    ...statesOf(life, at),
  };
}

function statesOf(
  life: ContainerLife,
  at: (ms: number) => string,
): Pick<ContainerStatus, 'state' | 'lastState'> {
  const terminated = ({ exitCode, fromMs, toMs }: Ended) => ({
    exitCode,
    reason: exitCode === 0 ? 'Completed' : 'Error',
    startedAt: at(fromMs),
    finishedAt: at(toMs),
  });
  switch (life.kind) {
    case 'running':
      return {
        state: { running: { startedAt: at(life.sinceMs) } },
        ...(life.last && { lastState: { terminated: terminated(life.last) } }),
      };
    case 'backingOff':
      return {
        state: {
          waiting: { reason: 'CrashLoopBackOff', message: 'back-off restarting failed container' },
        },
        lastState: { terminated: terminated(life.ended) },
      };
    case 'ended':
      return { state: { terminated: terminated(life.ended) } };
  }
}
