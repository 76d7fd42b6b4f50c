import { LEASES } from '../api/builtin.ts';
import type { KubernetesObject, NewObject } from '../api/object.ts';
import type { Client } from '../client/client.ts';
import { HttpClient } from '../client/http-client.ts';
import { ClusterControllers } from '../cluster/cluster-controllers.ts';
import type { ControllerManagerOptions } from '../manager/run-controllers.ts';
import { silentLogger } from '../util/logger.ts';
import { nextTurn } from '../util/next-turn.ts';
import { seededRandom } from '../util/seeded-random.ts';
import { ExploredProcess, LEASE_NAME, PROCESS } from './explored-process.ts';
import type { ProcessRecorder } from './explored-process.ts';
import { isBackground, isBackgroundResource } from './api-call.ts';
import { isStepFault } from './faults.ts';
import type { Fault, Upheaval } from './faults.ts';
import { ExploredServer, SERVER } from './explored-server.ts';
import { startAdmission } from './admission.ts';
import { emptyNamespaces } from './garbage.ts';
import { History } from './history.ts';
import { interfere, OTHER_CLIENT } from './other-client.ts';
import type { ObservedState } from './history.ts';
import { isByProcess } from './rule.ts';
import { Scheduler } from './scheduler.ts';
import type { Step, StepFault } from './step.ts';
import { SteppedTransport } from './transport.ts';
import type { ExploredService } from './transport.ts';
import { changesOwnObjectsOnly, scenarioObjects } from './scenario-objects.ts';
import type { ScenarioAction } from './scenario-objects.ts';
import { actionsOf, foregroundClient, isCrd } from './upheaval.ts';
import type { UpheavalDeps } from './upheaval.ts';

/** What happens in each schedule. */
export interface ExploredScenario {
  /** Objects that exist before the controllers start: CRDs, and others in the order of their creation. */
  readonly objects: readonly NewObject<KubernetesObject>[];
  /**
   * Actions by name: `'a user scales the Count to 1'`. Each starts when nothing happens any more after the previous one, or
   * earlier.
   */
  readonly actions: Readonly<Record<string, ScenarioAction>>;
}

export interface WorldOptions {
  readonly controllers: ControllerManagerOptions['controllers'];
  readonly scenario: ExploredScenario;
  readonly replicas: number;
  /** Names of cluster controllers. */
  readonly cluster: readonly string[];
  readonly seed: number;
  /** Called before each schedule. */
  readonly service: (() => ExploredService) | undefined;
  readonly invariants: Readonly<Record<string, Invariant>>;
}

/** A step of a finished schedule. */
export interface TraceEntry {
  readonly step: Step;
  /** Participant and label. */
  readonly at: string;
  readonly nth: number;
  readonly atMs: number;
  readonly fault: Fault | undefined;
  /** Number of writes before it. */
  readonly writes: number;
  /** Whether no other step could run instead. */
  readonly isAlone: boolean;
}

/** Listens to a schedule. */
export interface StepRecorder extends ProcessRecorder {
  /** Records a step before it runs, and the writes since the step before. */
  step(entry: TraceEntry): void;
}

/** Decides what goes wrong in a step that faults can strike. */
export type Plan = (step: Step, at: string, nth: number) => Fault | undefined;

/** The plan of the undisturbed schedule. */
export const withoutFaults: Plan = () => undefined;

/** Must hold after each write. A text or `false` says that it does not. */
export type Invariant = (state: ObservedState) => boolean | string | void;

/** An invariant that did not hold. */
export interface BrokenInvariant {
  readonly name: string;
  readonly detail: string;
}

/** An error that a process logged. */
export interface LoggedError {
  readonly by: string;
  readonly message: string;
}

/**
 * Durations of troubles of the server, in milliseconds. A restore takes the start of etcd and of an API server: informers
 * rely on more than 2 s.
 */
const OUTAGE_MS = 60_000;
const REFUSAL_MS = 120_000;
const RESTORE_MS = 3_000;

/** By how much a wall clock jumps, in milliseconds. */
const JUMP_MS = 3_600_000;

/** Maximum number of requests that the server forgets when it returns to an older state. */
const MAX_LOST = 3;

/** Faults that create objects like those of the scenario. */
const COPYING: ReadonlySet<Fault> = new Set<Fault>(['twin', 'lookalike', 'occupy']);

/** Time without activity after which the next action starts, in milliseconds. */
const ACTION_PAUSE_MS = 5_000;

/**
 * API server, cluster controllers and processes in virtual time. Each schedule starts from the same objects, and runs one
 * step after another. Between two steps, all promise reactions run.
 */
export class World {
  readonly scheduler: Scheduler = new Scheduler();
  readonly history: History = new History(() => this.elapsedMs);
  /** Maximum number of steps of a part of a schedule. */
  maxSteps = 20_000;
  /** Records the next schedule. */
  recorder: StepRecorder | undefined;
  readonly #options: WorldOptions;
  readonly #server: ExploredServer;
  #startMs = 0;
  #processes: ExploredProcess[] = [];
  #clusterTransport: SteppedTransport | undefined;
  #trace: TraceEntry[] = [];
  #counts = new Map<string, number>();
  #actions: [string, ScenarioAction][] = [];
  #runningActions = 0;
  #failedAction: Error | undefined;
  #lastActivityMs = 0;
  #checkedWrites = 0;
  #hasTerminating = false;
  #broken: BrokenInvariant | undefined;
  #errors: LoggedError[] = [];
  #hasCopies = false;
  /** Whether the next action deletes in the foreground. */
  #isForeground = false;
  #hasActed = false;
  #hasEnded = false;
  #final: UpheavalDeps['final'] = { objects: [], durationMs: 0 };
  #outageEndMs = 0;
  #restoreEndMs = 0;
  #refused: { readonly resource: string; readonly endMs: number } | undefined;

  private constructor(options: WorldOptions) {
    this.#options = options;
    this.#server = new ExploredServer(options.seed, this.scheduler.time, this.history);
  }

  /** Creates the objects of the scenario, and lets the cluster controllers see them. */
  static async create(options: WorldOptions): Promise<World> {
    const world = new World(options);
    for (const object of options.scenario.objects) await world.#server.create(object);
    if (options.cluster.length > 0) {
      world.#startCluster();
      await world.run(withoutFaults, { quietMs: ACTION_PAUSE_MS, limitMs: Infinity });
      world.#clusterTransport?.cut();
    }
    world.#startMs = world.elapsedMs;
    world.#server.save();
    return world;
  }

  get elapsedMs(): number {
    return this.scheduler.time.elapsedMs;
  }

  get trace(): readonly TraceEntry[] {
    return this.#trace;
  }

  /** The first invariant that did not hold. */
  get broken(): BrokenInvariant | undefined {
    return this.#broken;
  }

  /** Errors that the processes logged. */
  get errors(): readonly LoggedError[] {
    return this.#errors;
  }

  /** Whether a Lease decides which process works. */
  get isElected(): boolean {
    return this.#options.replicas > 1;
  }

  /** Returns whether the final objects can be created at once instead. Remembers them. */
  rememberFinal(): boolean {
    const objects = scenarioObjects(this.history);
    this.#final = { objects, durationMs: this.elapsedMs - this.#startMs };
    const isLong = Object.keys(this.#options.scenario.actions).length > 1;
    return isLong && changesOwnObjectsOnly(this.history);
  }

  /** Starts another schedule from the same objects. */
  restart(): void {
    const { seed, replicas, controllers, scenario } = this.#options;
    const service = this.#options.service?.();
    for (const process of this.#processes) process.kill();
    this.#clusterTransport?.cut();
    this.scheduler.reset(this.#startMs);
    this.#server.restore();
    // Timers of the watches that ended.
    this.scheduler.reset(this.#startMs);
    this.#trace = [];
    this.#counts = new Map();
    this.#actions = Object.entries(scenario.actions);
    this.#runningActions = 0;
    this.#failedAction = undefined;
    this.#lastActivityMs = this.#startMs;
    this.#checkedWrites = 0;
    this.#hasTerminating = false;
    this.#broken = undefined;
    this.#errors = [];
    this.#hasCopies = false;
    this.#isForeground = false;
    this.#hasActed = false;
    this.#hasEnded = false;
    this.#outageEndMs = 0;
    this.#restoreEndMs = 0;
    this.#refused = undefined;
    if (this.#options.cluster.length > 0) this.#startCluster();
    this.#processes = Array.from({ length: replicas }, (_, index) => {
      const name = replicas === 1 ? PROCESS : `${PROCESS}-${index + 1}`;
      const process = new ExploredProcess({
        name,
        seed: seed + index + 1,
        scheduler: this.scheduler,
        handler: this.#server.handler,
        service,
        controllers,
        isElected: replicas > 1,
        expireHistory: () => this.#server.expireHistory(),
        onError: (message) => this.#errors.push({ by: name, message }),
        recorder: this.recorder,
      });
      process.postStart(() => this.#staleRevision());
      return process;
    });
  }

  /**
   * Runs steps until all actions are done and nothing has happened for `quietMs`, or until `limitMs` have passed. Returns
   * `endless` after too many steps.
   */
  async run(
    plan: Plan,
    { quietMs, limitMs }: { readonly quietMs: number; readonly limitMs: number },
  ): Promise<'quiet' | 'busy' | 'endless'> {
    const { time } = this.scheduler;
    const endMs = this.elapsedMs + limitMs;
    const endSteps = this.#trace.length + this.maxSteps;
    while (this.#trace.length < endSteps) {
      await settled();
      if (this.#failedAction) throw this.#failedAction;
      const step = this.scheduler.take();
      if (step) {
        await this.#step(step, plan);
        await this.#afterStep();
        if (this.#broken) return 'busy';
        continue;
      }
      const isWaiting = this.scheduler.isBusy || this.#runningActions > 0;
      const hasAction = this.#actions.length > 0 || !this.#hasEnded;
      const pauseMs = hasAction ? ACTION_PAUSE_MS : quietMs;
      const quietAtMs = isWaiting ? Infinity : this.#lastActivityMs + pauseMs;
      const dueMs = time.nextDueMs ?? Infinity;
      if (quietAtMs < dueMs && quietAtMs <= endMs) {
        time.advanceTo(quietAtMs);
        if (!hasAction) return 'quiet';
        if (this.#actions.length > 0) this.#postAction();
        else this.#postEnd();
      } else if (dueMs > endMs) {
        time.advanceTo(endMs);
        return 'busy';
      } else {
        // Work in time slices continues in the next turn of the event loop.
        await nextTurn();
        if (this.scheduler.isReady) continue;
        this.history.writer = time.nextOwner ?? 'server';
        time.fireNext();
      }
    }
    return 'endless';
  }

  async #step(step: Step, plan: Plan): Promise<void> {
    const { kind, owner, label } = step;
    const at = `${owner}: ${label}`;
    let fault: Fault | undefined;
    const isFirst = step.isPostponed !== true;
    const nth = (this.#counts.get(at) ?? 0) + (isFirst ? 1 : 0);
    if (isFirst) this.#counts.set(at, nth);
    if (step.isFaulty && isFirst) fault = plan(step, at, nth);
    if (fault && COPYING.has(fault)) this.#hasCopies = true;
    const [atMs, writes] = [this.elapsedMs, this.history.changes.length];
    const isAlone = !this.scheduler.isReady;
    const entry = { step, at, nth, atMs, fault, writes, isAlone };
    this.#trace.push(entry);
    this.recorder?.step(entry);
    const isHeartbeat = kind === 'event' && label.endsWith(': BOOKMARK');
    if (!isHeartbeat && !(step.call && isBackground(step.call))) this.#lastActivityMs = atMs;
    const targets = this.#processes.filter(({ name }) => name === owner || kind === 'end');
    const runs = await this.#strike(fault, step, targets, plan);
    if (!runs) return;
    this.history.writer = owner;
    this.history.sentMs = step.postedMs ?? this.elapsedMs;
    step.run(isStepFault(fault) ? fault : this.#trouble(step));
  }

  /** Lets a fault strike. Returns whether the step runs now. */
  async #strike(
    fault: Fault | undefined,
    step: Step,
    targets: readonly ExploredProcess[],
    plan: Plan,
  ): Promise<boolean> {
    const { client } = this.#server;
    switch (fault) {
      case 'crash':
        for (const process of targets) {
          process.kill();
          process.postStart(() => this.#staleRevision());
        }
        return step.kind === 'end';
      case 'late':
        this.scheduler.postpone(step);
        return false;
      case 'delay':
        this.scheduler.delay(step, targets[0]?.aliveness() ?? (() => true));
        return false;
      case 'freeze':
        this.scheduler.freeze(step.owner);
        if (step.kind === 'request') return true;
        this.scheduler.putBack(step);
        return false;
      case 'jump':
        for (const { name } of targets) this.scheduler.time.jump(name, JUMP_MS);
        return true;
      case 'hurry':
        this.#postAction();
        await this.#interpose(plan);
        return true;
      case 'delete':
      case 'recreate':
      case 'orphan':
      case 'annotate':
      case 'lookalike':
      case 'occupy':
        await interfere(client, this.history, fault, step.call);
        await settled();
        return true;
      case 'mutate':
        this.history.writer = 'scenario';
        if (step.call?.info) await startAdmission(client, step.call.info);
        return true;
      case 'depose':
        this.history.writer = OTHER_CLIENT;
        await depose(client);
        await settled();
        return true;
      case 'outage':
        this.#outageEndMs = this.elapsedMs + OUTAGE_MS;
        return true;
      case 'refuse': {
        const { group, resource } = step.call?.info ?? {};
        this.#refused = { resource: `${group}/${resource}`, endMs: this.elapsedMs + REFUSAL_MS };
        return true;
      }
      case 'rollback':
        this.#rollBack();
        return true;
      case 'foreground':
        if (step.kind === 'end') return this.#overturn(fault);
        this.#isForeground = true;
        return this.#overturn('collect');
      case 'fresh':
      case 'twin':
      case 'teardown':
      case 'uninstall':
        return this.#overturn(fault);
      default:
        return true;
    }
  }

  /** Continues with other actions. Returns whether the step still runs. */
  #overturn(upheaval: Upheaval | 'collect'): boolean {
    const { scenario, cluster } = this.#options;
    const actions = actionsOf(upheaval, {
      client: this.#server.client,
      clock: this.scheduler.time.clock('scenario'),
      history: this.history,
      crds: scenario.objects.filter(isCrd),
      final: this.#final,
      collects: !cluster.includes('garbage-collector'),
    });
    if (upheaval === 'fresh') this.#actions = actions;
    else this.#actions.unshift(...actions);
    return upheaval !== 'fresh';
  }

  /** Forgets the last writes that are not of users. */
  #rollBack(): void {
    const { changes } = this.history;
    const since = changes.findLastIndex((each) => each.by !== 'cluster' && !isByProcess(each)) + 1;
    const requests = new Set(changes.slice(since).map(({ request }) => request));
    const forgotten = new Set([...requests].slice(-MAX_LOST));
    const lost = changes.slice(since).filter(({ request }) => forgotten.has(request));
    if (lost.length === 0) return;
    this.#server.undo(lost);
    this.#restoreEndMs = this.elapsedMs + RESTORE_MS;
  }

  /** Returns the consequence of an outage, a restore or a refusal for a request. */
  #trouble({ kind, isFaulty, call }: Step): StepFault | undefined {
    if (kind !== 'request' || !call?.info) return undefined;
    if (this.elapsedMs < this.#restoreEndMs) return 'reset';
    if (!isFaulty) return undefined;
    if (this.elapsedMs < this.#outageEndMs) return 'reset';
    const { group, resource, verb } = call.info;
    const isRefused =
      this.#refused !== undefined &&
      this.elapsedMs < this.#refused.endMs &&
      this.#refused.resource === `${group}/${resource}` &&
      call.isWrite &&
      verb !== 'delete';
    return isRefused ? 403 : undefined;
  }

  /** Deletes namespaces, and checks the invariants after a write. */
  async #afterStep(): Promise<void> {
    const { changes } = this.history;
    if (changes.length === this.#checkedWrites) return;
    const isDeleting = changes
      .slice(this.#checkedWrites)
      .some(
        ({ resource, object: { metadata } }) =>
          resource === '/namespaces' && metadata.deletionTimestamp,
      );
    this.#hasTerminating ||= isDeleting && !this.#options.cluster.includes('namespace');
    if (this.#hasTerminating) {
      this.#hasTerminating = await emptyNamespaces(this.#server.client, this.history);
    }
    this.#checkedWrites = this.history.changes.length;
    // Invariants are about the objects of the scenario.
    if (this.#hasCopies) return;
    for (const [name, holds] of Object.entries(this.#options.invariants)) {
      const result = holds(this.history);
      if (result === undefined || result === true) continue;
      this.#broken ??= { name, detail: result === false ? '' : result };
    }
  }

  /** Runs the action that was posted last. */
  async #interpose(plan: Plan): Promise<void> {
    const action = this.scheduler.nextAction;
    if (!action) return;
    this.scheduler.withdraw(action);
    await this.#step(action, plan);
    await settled();
  }

  #postAction(): void {
    const [next] = this.#actions.splice(0, 1);
    if (!next) return;
    const [label, action] = next;
    const clock = this.scheduler.time.clock('scenario');
    const run = () => {
      this.#runningActions++;
      const { client } = this.#server;
      const isForeground = this.#isForeground;
      this.#isForeground = false;
      action(isForeground ? foregroundClient(client) : client, clock).then(
        () => this.#runningActions--,
        (cause: unknown) => {
          this.#failedAction = new Error(`The action "${label}" of the scenario failed`, { cause });
        },
      );
    };
    const kind = this.#hasActed ? 'action' : 'first action';
    this.#hasActed = true;
    this.scheduler.post({ kind, owner: 'scenario', label, isFaulty: true, run });
  }

  #postEnd(): void {
    this.#hasEnded = true;
    const end = { kind: 'end', owner: 'scenario', label: 'end' } as const;
    this.scheduler.post({ ...end, isFaulty: true, run: () => undefined });
  }

  /** The revision before the last write of a process. */
  #staleRevision(): number {
    const last = this.history.changes.findLast(
      (change) => isByProcess(change) && !isBackgroundResource(change.resource),
    );
    const revision = last
      ? Number(last.object.metadata.resourceVersion) - 1
      : this.#server.revision;
    return Math.max(1, revision);
  }

  #startCluster(): void {
    const transport = new SteppedTransport({
      owner: 'cluster',
      scheduler: this.scheduler,
      handler: this.#server.handler,
      isFaulty: false,
      staleRevision: undefined,
      expireHistory: () => undefined,
    });
    this.#clusterTransport = transport;
    const clock = this.scheduler.time.clock('cluster', () => transport.isOpen);
    const client = new HttpClient({
      handler: transport.handle,
      server: SERVER,
      clock,
      userAgent: 'cluster',
    });
    const random = seededRandom(this.#options.seed);
    const cluster = new ClusterControllers(
      { client, clock, log: silentLogger, random },
      { controllers: [...this.#options.cluster] },
    );
    void cluster.run(new AbortController().signal);
  }
}

/** Gives the Lease to a process that does not exist. */
async function depose(client: Client): Promise<void> {
  const { items } = await client.list(LEASES);
  const lease = items.find(({ metadata }) => metadata.name === LEASE_NAME);
  if (!lease) return;
  const body = { spec: { holderIdentity: OTHER_CLIENT, leaseTransitions: 100 } };
  await client.patch(LEASES, lease.metadata, { type: 'merge', body });
}

/** Runs all promise reactions that are possible without I/O. */
function settled(): Promise<void> {
  return new Promise((resolve) => {
    process.nextTick(resolve);
  });
}
