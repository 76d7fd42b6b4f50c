import type { Pod } from '../../api/builtin.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { untilAborted } from '../../util/abort.ts';
import type { Clock } from '../../util/clock.ts';
import { ContainerFiles } from '../shell/container-files.ts';
import { WorkBudget } from '../shell/work-budget.ts';
import type { LogFollowing } from './container-log.ts';
import { containersAt } from './pod-containers.ts';
import type { PodContainer, PodRun } from './pod-containers.ts';
import type { PodEnvironment } from './pod-environment.ts';
import { LIVE, programOf } from './simulated-program.ts';
import type { SimulatedProgram } from './simulated-program.ts';

/** Stage of a Pod in the kubelet. */
type Stage = 'starting' | 'running' | 'terminating';

/** State of a Pod in the kubelet, which no object of the API server has. */
export class KubeletPod {
  readonly uid: string | undefined;
  readonly clock: Clock;
  /** Kept here, because the response to the status update can be lost. */
  address: string | undefined;
  /** With its start, `Clock.monotonic()`: timestamps of objects have a resolution of one second. */
  #stage: { readonly name: Stage; readonly sinceMs: number } | undefined;
  #environment: PodEnvironment['variables'] | undefined;
  #budget = new WorkBudget();
  /** Programs by the name of their container. */
  readonly #programs = new Map<string, SimulatedProgram>();
  /** Files by the name of their container, of its run with this number. */
  readonly #files = new Map<
    string,
    { readonly restarts: number; readonly files: ContainerFiles }
  >();
  /** Times at which the Pod was not live, in milliseconds since its start. */
  readonly #failures: { readonly fromMs: number; toMs: number }[] = [];
  /** Times at which ephemeral containers were added, in milliseconds since the start of the Pod. */
  readonly #added = new Map<string, number>();
  readonly #gone = new AbortController();

  constructor(uid: string | undefined, clock: Clock) {
    this.uid = uid;
    this.clock = clock;
  }

  /** Aborts when the Pod is removed, which ends followed logs. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  remove(): void {
    this.#gone.abort();
  }

  get stage(): Stage | undefined {
    return this.#stage?.name;
  }

  /** Returns when the Pod entered a stage; enters it at `sinceMs` if it is in another stage. */
  enter(name: Stage, sinceMs: number): number {
    if (this.#stage?.name !== name) this.#stage = { name, sinceMs };
    return this.#stage.sinceMs;
  }

  /** Returns the remaining part of `totalMs` in a stage. */
  left(name: Stage, totalMs: number): number {
    const now = this.clock.monotonic();
    return this.enter(name, now) + totalMs - now;
  }

  /** Returns how long the Pod has run, in milliseconds, or undefined if it was not started. */
  elapsed({ status, metadata }: DeepReadonly<Pod>): number | undefined {
    if (this.#stage?.name === 'running') return this.clock.monotonic() - this.#stage.sinceMs;
    // Another process started the Pod, or it is terminating: use its start time.
    const startedMs =
      (status?.phase ?? 'Pending') === 'Pending' ? Number.NaN : Date.parse(status?.startTime ?? '');
    if (Number.isNaN(startedMs)) return undefined;
    // Clients can write any start time, which must not lead to restarts without number.
    const sinceMs = Math.max(startedMs, Date.parse(metadata.creationTimestamp ?? '') || 0);
    return Math.max(0, this.clock.now() - sinceMs);
  }

  /** Variables by the name of their container. Undefined until the ConfigMaps and Secrets of the Pod were found. */
  get environment(): PodEnvironment['variables'] | undefined {
    return this.#environment;
  }

  /** @param budget what is left for the programs of the Pod */
  setEnvironment(variables: PodEnvironment['variables'], budget: WorkBudget): void {
    this.#environment = variables;
    this.#budget = budget;
  }

  program(
    pod: DeepReadonly<Pod>,
    { container, kind }: Pick<PodContainer, 'container' | 'kind'>,
  ): SimulatedProgram {
    const { name } = container;
    const present = this.#programs.get(name);
    if (present) return present;
    // The annotations describe the containers that the test is about.
    const annotations = kind === 'app' ? pod.metadata.annotations : undefined;
    const program = programOf(container, {
      annotations,
      environment: this.#environment?.get(name),
      budget: this.#budget,
      isInit: kind === 'init',
      startedMs: this.clock.now() - (this.elapsed(pod) ?? 0),
    });
    if (this.#environment) this.#programs.set(name, program);
    return program;
  }

  /** Returns the files of a container, which are lost when it restarts. */
  files(
    { name, volumeMounts = [], workingDir = '/' }: PodContainer['container'],
    restarts: number,
  ): ContainerFiles {
    const present = this.#files.get(name);
    if (present?.restarts === restarts) return present.files;
    const folders = [...volumeMounts.map(({ mountPath }) => mountPath), workingDir];
    const files = new ContainerFiles(folders);
    this.#files.set(name, { restarts, files });
    return files;
  }

  /** Observes the annotations and the ephemeral containers of a Pod that runs. */
  observe(
    pod: DeepReadonly<Pod>,
    elapsedMs: number,
  ): Omit<PodRun, 'startedMs' | 'address' | 'isStopped'> {
    const last = this.#failures.at(-1);
    const isFailing = last?.toMs === Infinity;
    const isLive = pod.metadata.annotations?.[LIVE] !== 'false';
    if (isLive && isFailing) last.toMs = elapsedMs;
    if (!isLive && !isFailing) this.#failures.push({ fromMs: elapsedMs, toMs: Infinity });
    for (const { name } of pod.spec?.ephemeralContainers ?? []) {
      if (!this.#added.has(name)) this.#added.set(name, elapsedMs);
    }
    return {
      elapsedMs,
      failures: this.#failures,
      addedMs: (name) => this.#added.get(name) ?? elapsedMs,
      programOf: (container) => this.program(pod, container),
    };
  }

  /** Returns the container with a name; `elapsedMs` is undefined if the Pod was not started. */
  find(
    pod: DeepReadonly<Pod>,
    name: string,
  ): { readonly elapsedMs: number | undefined; readonly found: PodContainer | undefined } {
    const elapsedMs = this.elapsed(pod);
    const containers =
      elapsedMs === undefined ? [] : containersAt(pod, this.observe(pod, elapsedMs));
    return { elapsedMs, found: containers.find(({ container }) => container.name === name) };
  }

  /** Returns how a response follows the log of the Pod until it is removed. */
  follow(signal: AbortSignal | undefined): LogFollowing {
    const over = signal ? AbortSignal.any([signal, this.gone]) : this.gone;
    const untilOver = (ms: number) =>
      ms === Infinity ? untilAborted(over) : this.clock.sleep(ms, over);
    return { gone: this.gone, untilOver };
  }
}
