import type { Pod } from '../../api/builtin.ts';
import type { DeepReadonly } from '../../api/object.ts';
import type { EventRecorder } from '../../record/event-recorder.ts';
import { LruMap } from '../../util/lru-map.ts';
import type { ContainerState } from './container-state.ts';
import type { StartProblem } from './pod-environment.ts';
import { podText } from './pod-status.ts';

/** Number of Pods and images that are remembered; events of older ones may be recorded again. */
const MAX_REMEMBERED = 10_000;

/** Number of containers of a Pod with events. The recorder drops most events of one object anyway. */
const MAX_CONTAINERS = 250;

/** Records the events of a kubelet about the containers of Pods. */
export class ContainerEvents {
  readonly #recorder: EventRecorder;
  /** Last state of the containers by the uid of the Pod. */
  readonly #states = new LruMap<string, ReadonlyMap<string, ContainerState>>(MAX_REMEMBERED);
  readonly #images = new LruMap<string, true>(MAX_REMEMBERED);

  constructor(recorder: EventRecorder) {
    this.#recorder = recorder;
  }

  /** Records what changed since the last call for the Pod. */
  changed(pod: DeepReadonly<Pod>, states: ReadonlyMap<string, ContainerState>): void {
    const { uid } = pod.metadata;
    const before = this.#states.get(uid);
    this.#states.set(uid, states);
    const reported = new Map([...reportedStates(pod), ...(before ?? [])]);
    const { initContainers = [], containers = [] } = pod.spec ?? {};
    const all = [...initContainers, ...containers].slice(0, MAX_CONTAINERS);
    for (const [index, container] of all.entries()) {
      const { name, image = '', imagePullPolicy } = container;
      const state = states.get(name);
      if (!state) continue;
      const list = index < initContainers.length ? 'initContainers' : 'containers';
      const options = { fieldPath: `spec.${list}{${name}}` };
      const normal = (reason: string, message: string) =>
        this.#recorder.normal(pod, reason, message, options);
      const known = reported.get(name);
      if (known?.restarts !== state.restarts) {
        const isPresent = this.#images.get(image) && imagePullPolicy !== 'Always';
        this.#images.set(image, true);
        if (isPresent) {
          const message = `Container image "${image}" already present on machine and can be accessed by the pod`;
          normal('Pulled', message);
        } else {
          normal('Pulling', `Pulling image "${image}"`);
          const message = `Successfully pulled image "${image}" in 0s (0s including waiting). Image size: 0 bytes.`;
          normal('Pulled', message);
        }
        normal('Created', 'Container created');
        normal('Started', 'Container started');
      }
      if (state.kind !== 'backingOff') continue;
      if (known?.kind === 'backingOff' && known.restarts === state.restarts) continue;
      if (state.ended.isKilled) {
        this.#recorder.warning(pod, 'Unhealthy', 'Liveness probe failed', options);
        normal('Killing', `Container ${name} failed liveness probe, will be restarted`);
      }
      const message = `Back-off restarting failed container ${name} in pod ${podText(pod.metadata)}`;
      this.#recorder.warning(pod, 'BackOff', message, options);
    }
  }

  /** Records that the containers of a deleted Pod are stopped. */
  killing(pod: DeepReadonly<Pod>): void {
    for (const { name, state } of (pod.status?.containerStatuses ?? []).slice(0, MAX_CONTAINERS)) {
      if (!state?.running) continue;
      const options = { fieldPath: `spec.containers{${name}}` };
      this.#recorder.normal(pod, 'Killing', `Stopping container ${name}`, options);
    }
  }

  cannotStart(pod: DeepReadonly<Pod>, problems: readonly StartProblem[]): void {
    for (const problem of problems.slice(0, MAX_CONTAINERS)) {
      if (problem.kind === 'volume') {
        this.#recorder.warning(pod, 'FailedMount', problem.message);
      } else {
        const options = { fieldPath: `spec.containers{${problem.container}}` };
        this.#recorder.warning(pod, 'Failed', `Error: ${problem.message}`, options);
      }
    }
  }
}

/** Returns the states that an earlier kubelet has reported. */
function reportedStates({
  status,
}: DeepReadonly<Pod>): ReadonlyMap<string, Pick<ContainerState, 'kind' | 'restarts'>> {
  const { initContainerStatuses = [], containerStatuses = [] } = status ?? {};
  const reported = [...initContainerStatuses, ...containerStatuses].filter(
    ({ containerID }) => containerID,
  );
  return new Map(
    reported.map(({ name, state, restartCount }) => [
      name,
      { kind: state?.waiting ? 'backingOff' : 'running', restarts: restartCount },
    ]),
  );
}
