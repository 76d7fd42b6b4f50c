import type { Pod } from '../../api/builtin.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { containerStateAt } from './container-state.ts';
import type { SimulatedProgram } from './simulated-program.ts';
import type { ContainerState, RestartPolicy } from './container-state.ts';

type Container = NonNullable<DeepReadonly<Pod>['spec']>['containers'][number];

export interface PodRun {
  /** Milliseconds since the epoch. */
  readonly startedMs: number;
  readonly elapsedMs: number;
  readonly address: string;
  readonly programOf: (container: Pick<PodContainer, 'container' | 'kind'>) => SimulatedProgram;
  /** Times at which the Pod was not live, in milliseconds since its start. */
  readonly failures: readonly { readonly fromMs: number; readonly toMs: number }[];
  /** Milliseconds from the start of the Pod until an ephemeral container was added. */
  readonly addedMs: (ephemeral: string) => number;
  /** Whether the containers that run are stopped now. */
  readonly isStopped?: boolean;
}

export interface PodContainer {
  readonly container: Container;
  readonly kind: 'init' | 'sidecar' | 'app' | 'ephemeral';
  /** Start of the container, in milliseconds since the start of the Pod. */
  readonly offsetMs: number;
  /** Undefined while it waits for init containers. */
  readonly state: ContainerState | undefined;
  /** Next change of the state, in milliseconds since the start of the Pod. */
  readonly changesAtMs: number;
}

/** Returns the containers of a Pod. Init containers run one by one, and the others after them. */
export function containersAt(
  pod: DeepReadonly<Pod>,
  { elapsedMs, programOf, failures, addedMs, isStopped }: Omit<PodRun, 'startedMs' | 'address'>,
): readonly PodContainer[] {
  const policy = restartPolicyOf(pod);
  let offsetMs: number | undefined = 0;
  const run = (
    container: Container,
    kind: PodContainer['kind'],
    restart: RestartPolicy,
    startMs: number | undefined,
  ): PodContainer => {
    if (startMs === undefined) {
      return { container, kind, offsetMs: 0, state: undefined, changesAtMs: Infinity };
    }
    const { periodSeconds = 10, failureThreshold = 3 } = container.livenessProbe ?? {};
    const unhealthyMs = periodSeconds * failureThreshold * 1000;
    const killedAt = (fromMs: number) => {
      if (kind === 'init' || kind === 'ephemeral') return Infinity;
      const killMs = (since: number) => Math.max(startMs + fromMs, since) + unhealthyMs;
      const failure = failures.find((each) => killMs(each.fromMs) <= each.toMs);
      return failure ? killMs(failure.fromMs) - startMs : Infinity;
    };
    const program = programOf({ container, kind });
    const at = containerStateAt(program, restart, elapsedMs - startMs, killedAt);
    const changesAtMs = startMs + (at.changesAtMs ?? Infinity);
    return { container, kind, offsetMs: startMs, state: at.state, changesAtMs };
  };
  const first = (pod.spec?.initContainers ?? []).map((container) => {
    if (container.restartPolicy === 'Always') return run(container, 'sidecar', 'Always', offsetMs);
    const init = run(container, 'init', policy === 'Never' ? 'Never' : 'OnFailure', offsetMs);
    offsetMs = isCompletedInit(init) ? init.offsetMs + (init.state?.ended.toMs ?? 0) : undefined;
    return init;
  });
  const apps = (pod.spec?.containers ?? []).map((each) => run(each, 'app', policy, offsetMs));
  const added = (pod.spec?.ephemeralContainers ?? []).map((each) =>
    run(each, 'ephemeral', 'Never', addedMs(each.name)),
  );
  const isOver = apps.every(({ state }) => state?.kind === 'ended');
  const all = [...first, ...apps, ...added];
  return all.map((each) =>
    isStopped || (isOver && each.kind === 'sidecar') ? stopped(each, elapsedMs) : each,
  );
}

/** Returns a container as it is after SIGTERM, which a server handles and a shell command does not. */
function stopped(running: PodContainer, elapsedMs: number): PodContainer {
  const { container, kind, offsetMs, state } = running;
  if (state?.kind !== 'running') return running;
  const exitCode = kind === 'sidecar' || !container.command ? 0 : 137;
  const ended = { exitCode, fromMs: state.sinceMs, toMs: elapsedMs - offsetMs };
  const { restarts } = state;
  return { ...running, state: { kind: 'ended', ended, restarts }, changesAtMs: Infinity };
}

export function isCompletedInit(
  init: PodContainer,
): init is PodContainer & { state: Extract<ContainerState, { kind: 'ended' }> } {
  return init.state?.kind === 'ended' && init.state.ended.exitCode === 0;
}

function restartPolicyOf({ spec }: DeepReadonly<Pod>): RestartPolicy {
  const policy = spec?.restartPolicy;
  return policy === 'Never' || policy === 'OnFailure' ? policy : 'Always';
}
