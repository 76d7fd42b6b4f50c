import { isApiError } from '../../api/api-error.ts';
import { PODS } from '../../api/builtin.ts';
import type { Pod } from '../../api/builtin.ts';
import { objectKey } from '../../api/object-key.ts';
import type { ObjectKey } from '../../api/object-key.ts';
import type { DeepReadonly, KubernetesObject } from '../../api/object.ts';
import { isFinished } from '../../api/workloads.ts';
import { Controller } from '../../manager/controller.ts';
import type { SyncContext } from '../../manager/controller-options.ts';
import type { Clock } from '../../util/clock.ts';
import { goQuote } from '../../util/go-quote.ts';
import { untilAborted } from '../../util/abort.ts';
import { done, requeueAfter } from '../../workqueue/outcome.ts';
import type { Outcome } from '../../workqueue/outcome.ts';
import type { ClusterDeps } from '../support/resource-monitors.ts';
import { ContainerEvents } from './container-events.ts';
import { loggedRun, streamLog } from './container-log.ts';
import type { LogFollowing, LogOptions } from './container-log.ts';
import { LIVE, programOf } from './simulated-program.ts';
import type { SimulatedProgram } from './simulated-program.ts';
import { kubeletApi } from './kubelet-api.ts';
import type { LogRequest, LogResponse } from './kubelet-api.ts';
import { podEnvironment } from './pod-environment.ts';
import type { PodEnvironment } from './pod-environment.ts';
import { containersAt } from './pod-containers.ts';
import type { PodContainer } from './pod-containers.ts';
import { hasContainerStates, podStatus, waitingStatus } from './pod-status.ts';
import type {
  ContainerProcess,
  Kubelet,
  KubeletAnswer,
  ProcessRequest,
} from '../../api/kubelet.ts';
import { ContainerFiles } from '../shell/container-files.ts';
import { podPorts } from './container-port.ts';
import { runSession } from '../shell/exec-session.ts';
import { OverBudget, WorkBudget } from '../shell/work-budget.ts';

/** Options of `FakeKubelet`. */
export interface FakeKubeletOptions {
  readonly nodeName: string;
  /**
   * Time from the first observation of a Pod until its containers run, in milliseconds.
   * @default 0
   */
  readonly startupMs?: number | undefined;
  /**
   * Maximum time from the deletion of a Pod until it is removed, in milliseconds. A shorter grace
   * period of the Pod applies. The default is not 0, because `kubectl delete` waits by name and can
   * miss a Pod that is replaced immediately.
   * @default 1000
   */
  readonly terminationMs?: number | undefined;
}

/**
 * Simulated kubelet of one node. Pods bound to the node get an address, run and become ready, unless a
 * ConfigMap or Secret is missing. Containers with a supported command exit and log like that command.
 * Deleted Pods are removed after their grace period. Nothing is executed: `kubectl exec` interprets its command, too.
 *
 * An API server forwards requests for logs and connections to `kubelet`.
 */
export function fakeKubelet(
  deps: ClusterDeps,
  options: FakeKubeletOptions,
): { readonly controller: Controller; readonly kubelet: Kubelet } {
  const pods = deps.informers.for(PODS);
  const events = new ContainerEvents(deps.events.recorder('kubelet'));
  pods.addIndexers({
    [ADDRESS_INDEX]: ({ status }) => (status?.podIP ? [status.podIP] : []),
  });
  const isUsed = (address: string) => pods.lister.byIndex(ADDRESS_INDEX, address).length > 0;
  const kubelet = new FakeKubelet(deps.clock, events, { ...options, isUsed });
  const podOf = (namespace: string, name: string) => {
    const pod = pods.lister.get(objectKey(namespace, name));
    return pod?.spec?.nodeName === options.nodeName ? pod : undefined;
  };
  const controller = new Controller(deps, {
    name: 'fake-kubelet',
    kind: PODS.kind,
    concurrency: 10,
    sync: async (key, context) => {
      const pod = pods.lister.get(key);
      if (pod?.spec?.nodeName === options.nodeName) return kubelet.sync(key, pod, context);
      kubelet.forget(key);
      return done();
    },
  }).for(pods);
  const readLog = (request: LogRequest) => {
    const pod = podOf(request.namespace, request.pod);
    return pod
      ? kubelet.readLog(pod, request)
      : logError(404, `pod ${goQuote(request.pod)} does not exist\n`);
  };
  const connections: Pick<Kubelet, 'exec' | 'ports'> = {
    exec: (request) => {
      const pod = podOf(request.namespace, request.pod);
      return pod ? kubelet.exec(pod, request) : NO_POD;
    },
    ports: (namespace, name) => {
      const pod = podOf(namespace, name);
      return pod ? { kind: 'connected', target: podPorts(pod) } : NO_POD;
    },
  };
  const api = kubeletApi(readLog, () => deps.clock.now());
  return { controller, kubelet: Object.assign(api, connections) };
}

const NO_POD = { kind: 'error', status: 404, message: 'pod does not exist' } as const;

function logError(status: 400 | 404, message: string): LogResponse {
  return { kind: 'error', status, message };
}

const ADDRESS_INDEX = 'podIP';
const MAX_ADDRESSES = 65_000;

/** Interval at which the kubelet looks for a missing ConfigMap or Secret, in milliseconds. */
const RETRY_MS = 5000;

/** Stage of a Pod, with its start. */
interface Stage {
  readonly name: 'starting' | 'running' | 'terminating';
  /** `Clock.monotonic()`. */
  readonly sinceMs: number;
}

/** State of a Pod in the kubelet. */
interface KnownPod {
  readonly uid: string;
  /** Measured here, because timestamps of objects have a resolution of one second. */
  stage: Stage | undefined;
  /** Kept here, because the response to the status update can be lost. */
  address: string | undefined;
  /** Undefined until the ConfigMaps and Secrets of the Pod were found. */
  environment: PodEnvironment['variables'] | undefined;
  budget: WorkBudget;
  /** Programs by the name of their container. */
  readonly programs: Map<string, SimulatedProgram>;
  /** Files by the name of their container, of its run with this number. */
  readonly files: Map<string, { readonly restarts: number; readonly files: ContainerFiles }>;
  /** Times at which the Pod was not live, in milliseconds since its start. */
  readonly failures: { readonly fromMs: number; toMs: number }[];
  /** Times at which ephemeral containers were added, in milliseconds since the start of the Pod. */
  readonly added: Map<string, number>;
  /** Aborted when the Pod is removed, which ends followed logs. */
  readonly gone: AbortController;
}

class FakeKubelet {
  readonly #clock: Clock;
  readonly #events: ContainerEvents;
  readonly #startupMs: number;
  readonly #terminationMs: number;
  readonly #isUsed: (address: string) => boolean;
  readonly #known = new Map<ObjectKey, KnownPod>();
  #addresses = 0;

  constructor(
    clock: Clock,
    events: ContainerEvents,
    {
      startupMs = 0,
      terminationMs = 1000,
      isUsed,
    }: FakeKubeletOptions & { readonly isUsed: (address: string) => boolean },
  ) {
    this.#isUsed = isUsed;
    this.#clock = clock;
    this.#events = events;
    this.#startupMs = startupMs;
    this.#terminationMs = terminationMs;
  }

  async sync(key: ObjectKey, pod: DeepReadonly<Pod>, context: SyncContext): Promise<Outcome> {
    const known = this.#stateOf(key, pod);
    if (pod.metadata.deletionTimestamp !== undefined) {
      const graceMs = (pod.metadata.deletionGracePeriodSeconds ?? 0) * 1000;
      if (known.stage?.name !== 'terminating') this.#events.killing(pod);
      const waitMs = this.#left(known, 'terminating', Math.min(this.#terminationMs, graceMs));
      if (waitMs > 0) return requeueAfter(waitMs);
      // As in a kubelet, clients see that the containers have stopped before the Pod is removed.
      if (graceMs > 0 && pod.status?.phase === 'Running') {
        const { status } = this.#statusOf(known, pod, this.#elapsed(known, pod) ?? 0, true);
        await this.#writeStatus(pod, status, context);
      }
      await this.#remove(pod, context);
      return done();
    }
    if (isFinished(pod)) return done();
    if ((pod.status?.phase ?? 'Pending') === 'Pending' && known.stage?.name !== 'running') {
      const waitMs = this.#left(known, 'starting', this.#startupMs);
      if (waitMs > 0) return requeueAfter(waitMs);
    }
    if (!known.environment && !(await this.#prepare(known, pod, context))) {
      return requeueAfter(RETRY_MS);
    }
    return this.#updateStatus(known, pod, context);
  }

  /** Reads the environment of the containers. Reports in the status why the Pod cannot start. */
  async #prepare(known: KnownPod, pod: DeepReadonly<Pod>, context: SyncContext): Promise<boolean> {
    // Each attempt has its own budget, because a Pod can wait for its data for any time.
    const budget = new WorkBudget();
    const { variables, problems } = await podEnvironment(pod, context, budget).catch(withoutData);
    if (problems.length > 0 && (pod.status?.phase ?? 'Pending') === 'Pending') {
      this.#events.cannotStart(pod, problems);
      const status = waitingStatus(pod, problems, this.#clock.now());
      if (!hasContainerStates(pod, status)) await this.#writeStatus(pod, status, context);
      return false;
    }
    known.environment = variables;
    known.budget = budget;
    return true;
  }

  #program(
    known: KnownPod,
    pod: DeepReadonly<Pod>,
    { container, kind }: Pick<PodContainer, 'container' | 'kind'>,
  ): SimulatedProgram {
    const { name } = container;
    const present = known.programs.get(name);
    if (present) return present;
    // The annotations describe the containers that the test is about.
    const annotations = kind === 'app' ? pod.metadata.annotations : undefined;
    const program = programOf(container, {
      annotations,
      environment: known.environment?.get(name),
      budget: known.budget,
      isInit: kind === 'init',
      startedMs: this.#clock.now() - (this.#elapsed(known, pod) ?? 0),
    });
    if (known.environment) known.programs.set(name, program);
    return program;
  }

  /** Forgets a Pod that was removed or belongs to another node. */
  forget(key: ObjectKey): void {
    this.#known.get(key)?.gone.abort();
    this.#known.delete(key);
  }

  readLog(pod: DeepReadonly<Pod>, request: LogRequest): LogResponse {
    const { options, follow, signal } = request;
    const description = `container ${goQuote(request.container)} in pod ${goQuote(request.pod)}`;
    const { initContainers = [], containers = [], ephemeralContainers = [] } = pod.spec ?? {};
    const all = [...initContainers, ...containers, ...ephemeralContainers];
    if (!all.some(({ name }) => name === request.container)) {
      return logError(400, `${description} is not available`);
    }
    const { known, elapsedMs, found: logged } = this.#find(pod, request.container);
    if (elapsedMs === undefined || !logged?.state) {
      const current = pod.status?.containerStatuses?.find(({ name }) => name === request.container);
      const reason = current?.state?.waiting?.reason ?? 'ContainerCreating';
      return logError(400, `${description} is waiting to start: ${reason}`);
    }
    const { state, offsetMs } = logged;
    const program = this.#program(known, pod, logged);
    const run = loggedRun(state, options.previous);
    if (!run) return logError(400, `previous terminated ${description} not found`);
    const isFollowed = follow && !options.previous && state.kind === 'running';
    return {
      kind: 'log',
      body: streamLog(program, run, {
        nowMs: this.#clock.now(),
        elapsedMs: elapsedMs - offsetMs,
        options,
        signal,
        follow: isFollowed ? this.#follow(known, signal) : undefined,
      }),
    };
  }

  /** Starts a command in a running container, or attaches to its program. */
  exec(
    pod: DeepReadonly<Pod>,
    { container: name, command, tty }: ProcessRequest,
  ): KubeletAnswer<ContainerProcess> {
    const { known, elapsedMs, found } = this.#find(pod, name);
    if (elapsedMs === undefined || found?.state?.kind !== 'running') {
      return { kind: 'error', status: 500, message: `container not found (${goQuote(name)})` };
    }
    const { container, state, offsetMs } = found;
    const target: ContainerProcess = async (streams) => {
      if (command) {
        const clock = this.#clock;
        const gone = known.gone.signal;
        const environment = new Map([
          ['HOME', '/root'],
          ['HOSTNAME', pod.spec?.hostname ?? pod.metadata.name],
          ['PATH', '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
          ...(known.environment?.get(name) ?? []),
        ]);
        const files = filesOf(known, container, state.restarts);
        return runSession({ command, environment, files, tty, clock, gone }, streams);
      }
      const { signal } = streams;
      const program = this.#program(known, pod, found);
      const run = { fromMs: state.sinceMs };
      const output = streamLog(program, run, {
        nowMs: this.#clock.now(),
        elapsedMs: elapsedMs - offsetMs,
        options: NEW_OUTPUT,
        signal,
        follow: this.#follow(known, signal),
      });
      for await (const bytes of output) await streams.stdout?.(bytes);
      return 0;
    };
    return { kind: 'connected', target };
  }

  /** Returns the container with a name; `elapsedMs` is undefined if the Pod was not started. */
  #find(pod: DeepReadonly<Pod>, name: string) {
    const known = this.#stateOf(objectKey(pod.metadata.namespace, pod.metadata.name), pod);
    const elapsedMs = this.#elapsed(known, pod);
    const containers =
      elapsedMs === undefined ? [] : containersAt(pod, this.#runOf(known, pod, elapsedMs));
    const found = containers.find(({ container }) => container.name === name);
    return { known, elapsedMs, found };
  }

  /** Returns how a response follows the log of a Pod until it is removed. */
  #follow(known: KnownPod, signal: AbortSignal | undefined): LogFollowing {
    const untilOver = (ms: number) => this.#untilOver(known, ms, signal);
    return { gone: known.gone.signal, untilOver };
  }

  /** Returns the state of this Pod, not of an earlier Pod with the same name. */
  #stateOf(key: ObjectKey, { metadata: { uid } }: DeepReadonly<Pod>): KnownPod {
    const known = this.#known.get(key);
    if (known?.uid === uid) return known;
    this.forget(key);
    const added = {
      uid,
      stage: undefined,
      address: undefined,
      environment: undefined,
      budget: new WorkBudget(),
      programs: new Map<string, SimulatedProgram>(),
      files: new Map<string, { restarts: number; files: ContainerFiles }>(),
      failures: [],
      added: new Map<string, number>(),
      gone: new AbortController(),
    };
    this.#known.set(key, added);
    return added;
  }

  /** Returns how long the Pod has run, in milliseconds, or undefined if it was not started. */
  #elapsed({ stage }: KnownPod, { status, metadata }: DeepReadonly<Pod>): number | undefined {
    if (stage?.name === 'running') return this.#clock.monotonic() - stage.sinceMs;
    // Another process started the Pod, or it is terminating: use its start time.
    const startedMs =
      (status?.phase ?? 'Pending') === 'Pending' ? Number.NaN : Date.parse(status?.startTime ?? '');
    if (Number.isNaN(startedMs)) return undefined;
    // Clients can write any start time, which must not lead to restarts without number.
    const sinceMs = Math.max(startedMs, Date.parse(metadata.creationTimestamp ?? '') || 0);
    return Math.max(0, this.#clock.now() - sinceMs);
  }

  /** Resolves after `ms`, when the Pod is removed, or when `signal` aborts. */
  async #untilOver({ gone }: KnownPod, ms: number, signal: AbortSignal | undefined): Promise<void> {
    const over = signal ? AbortSignal.any([signal, gone.signal]) : gone.signal;
    await (ms === Infinity ? untilAborted(over) : this.#clock.sleep(ms, over));
  }

  /** Returns the remaining part of `totalMs` in this stage. */
  #left(known: KnownPod, name: Stage['name'], totalMs: number): number {
    return this.#since(known, name, this.#clock.monotonic()) + totalMs - this.#clock.monotonic();
  }

  /** Returns when the Pod entered the stage; enters it at `sinceMs` if it is in another stage. */
  #since(known: KnownPod, name: Stage['name'], sinceMs: number): number {
    if (known.stage?.name !== name) known.stage = { name, sinceMs };
    return known.stage.sinceMs;
  }

  async #remove(pod: DeepReadonly<Pod>, { client, signal }: SyncContext): Promise<void> {
    const { name, namespace, uid } = pod.metadata;
    try {
      await client.delete(PODS, { name, namespace }, { uid, gracePeriodSeconds: 0, signal });
    } catch (error) {
      if (!isApiError(error, 'notFound', 'conflict')) throw error;
    }
  }

  /** Updates the status of the Pod from the states of its containers. */
  async #updateStatus(
    known: KnownPod,
    pod: DeepReadonly<Pod>,
    context: SyncContext,
  ): Promise<Outcome> {
    const monotonic = this.#clock.monotonic();
    const sinceMs = monotonic - (this.#elapsed(known, pod) ?? 0);
    const elapsedMs = monotonic - this.#since(known, 'running', sinceMs);
    const { status, nextMs, states } = this.#statusOf(known, pod, elapsedMs);
    this.#events.changed(pod, states);
    if (pod.status?.phase !== status.phase || !hasContainerStates(pod, status)) {
      await this.#writeStatus(pod, status, context);
    }
    return nextMs === undefined ? done() : requeueAfter(nextMs);
  }

  #statusOf(known: KnownPod, pod: DeepReadonly<Pod>, elapsedMs: number, isStopped = false) {
    return podStatus(pod, {
      startedMs: this.#clock.now() - elapsedMs,
      address: pod.status?.podIP ?? (known.address ??= this.#nextAddress()),
      isStopped,
      ...this.#runOf(known, pod, elapsedMs),
    });
  }

  /** Observes the annotations and the ephemeral containers of a Pod that runs. */
  #runOf(known: KnownPod, pod: DeepReadonly<Pod>, elapsedMs: number) {
    const { failures, added } = known;
    const last = failures.at(-1);
    const isFailing = last?.toMs === Infinity;
    const isLive = pod.metadata.annotations?.[LIVE] !== 'false';
    if (isLive && isFailing) last.toMs = elapsedMs;
    if (!isLive && !isFailing) failures.push({ fromMs: elapsedMs, toMs: Infinity });
    for (const { name } of pod.spec?.ephemeralContainers ?? []) {
      if (!added.has(name)) added.set(name, elapsedMs);
    }
    return {
      elapsedMs,
      failures,
      addedMs: (name: string) => added.get(name) ?? elapsedMs,
      programOf: (container: Pick<PodContainer, 'container' | 'kind'>) =>
        this.#program(known, pod, container),
    };
  }

  async #writeStatus(
    { metadata }: DeepReadonly<Pod>,
    status: PodStatus,
    { client, signal }: SyncContext,
  ): Promise<void> {
    const { uid } = metadata;
    // A strategic merge keeps the fields of a condition that are absent.
    const conditions = (status.conditions ?? []).map((condition): object =>
      Object.assign({ reason: null, message: null }, condition),
    );
    const body = { metadata: { uid }, status: { ...status, conditions } };
    try {
      await client.patch<KubernetesObject>(
        PODS,
        metadata,
        { type: 'strategic', body },
        { subresource: 'status', fieldManager: 'kubelet', signal },
      );
    } catch (error) {
      if (!isApiError(error, 'notFound', 'conflict')) throw error;
    }
  }

  /** Returns the next address of 10.244.0.0/16 that no Pod has, also none of an earlier process. */
  #nextAddress(): string {
    for (let attempt = 1; ; attempt++) {
      const host = (this.#addresses++ % MAX_ADDRESSES) + 2;
      const address = `10.244.${host >> 8}.${host & 255}`;
      if (attempt === MAX_ADDRESSES || !this.#isUsed(address)) return address;
    }
  }
}

/** Only what a program writes from now on. */
const NEW_OUTPUT: LogOptions = {
  previous: false,
  timestamps: false,
  sinceMs: undefined,
  tailLines: 0,
  limitBytes: undefined,
};

/** Returns the files of a container, which are lost when it restarts. */
function filesOf(
  known: KnownPod,
  { name, volumeMounts = [], workingDir = '/' }: PodContainer['container'],
  restarts: number,
): ContainerFiles {
  const present = known.files.get(name);
  if (present?.restarts === restarts) return present.files;
  const folders = [...volumeMounts.map(({ mountPath }) => mountPath), workingDir];
  const files = new ContainerFiles(folders);
  known.files.set(name, { restarts, files });
  return files;
}

/** Returns no variables for a Pod that needs too much work: its containers report it. */
function withoutData(error: unknown): PodEnvironment {
  if (!(error instanceof OverBudget)) throw error;
  return { variables: new Map(), problems: [] };
}

type PodStatus = NonNullable<Pod['status']>;
