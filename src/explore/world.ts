import type { KubernetesObject, NewObject } from '../api/object.ts';
import type { Client } from '../client/client.ts';
import { HttpClient } from '../client/http-client.ts';
import { ClusterControllers } from '../cluster/cluster-controllers.ts';
import type { ControllerManagerOptions } from '../manager/run-controllers.ts';
import type { Clock } from '../util/clock.ts';
import { silentLogger } from '../util/logger.ts';
import { nextTurn } from '../util/next-turn.ts';
import { seededRandom } from '../util/seeded-random.ts';
import { ExploredProcess, PROCESS } from './explored-process.ts';
import { isBackground, isBackgroundResource } from './api-call.ts';
import type { Fault } from './faults.ts';
import { ExploredServer, SERVER } from './explored-server.ts';
import { startAdmission } from './admission.ts';
import { History } from './history.ts';
import { interfere } from './other-client.ts';
import type { ObservedState } from './history.ts';
import { Scheduler } from './scheduler.ts';
import type { Step } from './step.ts';
import { SteppedTransport } from './transport.ts';

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

/** Sends requests as a user or another program. Waits with `clock` only. */
export type ScenarioAction = (client: Client, clock: Clock) => Promise<unknown>;

export interface WorldOptions {
  readonly controllers: ControllerManagerOptions['controllers'];
  readonly scenario: ExploredScenario;
  readonly replicas: number;
  /** Names of cluster controllers. */
  readonly cluster: readonly string[];
  readonly seed: number;
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
  #broken: BrokenInvariant | undefined;

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

  /** Starts another schedule from the same objects. */
  restart(): void {
    const { seed, replicas, controllers, scenario } = this.#options;
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
    this.#broken = undefined;
    if (this.#options.cluster.length > 0) this.#startCluster();
    this.#processes = Array.from({ length: replicas }, (_, index) => {
      const process = new ExploredProcess({
        name: replicas === 1 ? PROCESS : `${PROCESS}-${index + 1}`,
        seed: seed + index + 1,
        scheduler: this.scheduler,
        handler: this.#server.handler,
        controllers,
        isElected: replicas > 1,
        expireHistory: () => this.#server.expireHistory(),
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
        this.#afterStep();
        if (this.#broken) return 'busy';
        continue;
      }
      const isWaiting = this.scheduler.isBusy || this.#runningActions > 0;
      const hasAction = this.#actions.length > 0 && this.#runningActions === 0;
      const pauseMs = hasAction ? ACTION_PAUSE_MS : quietMs;
      const quietAtMs = isWaiting ? Infinity : this.#lastActivityMs + pauseMs;
      const dueMs = time.nextDueMs ?? Infinity;
      if (quietAtMs < dueMs && quietAtMs <= endMs) {
        time.advanceTo(quietAtMs);
        if (!hasAction) return 'quiet';
        this.#postAction();
      } else if (dueMs > endMs) {
        time.advanceTo(endMs);
        return 'busy';
      } else {
        // Work in time slices continues in the next turn of the event loop.
        await nextTurn();
        if (this.scheduler.pending.length > 0) continue;
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
    const isFirst = !this.scheduler.wasPostponed(step);
    const nth = (this.#counts.get(at) ?? 0) + (isFirst ? 1 : 0);
    if (isFirst) this.#counts.set(at, nth);
    if (step.isFaulty && isFirst) fault = plan(step, at, nth);
    const [atMs, writes] = [this.elapsedMs, this.history.changes.length];
    this.#trace.push({ step, at, nth, atMs, fault, writes });
    const isHeartbeat = kind === 'event' && label.endsWith(': BOOKMARK');
    if (!isHeartbeat && !(step.call && isBackground(step.call))) this.#lastActivityMs = atMs;
    const process = this.#processes.find(({ name }) => name === owner);
    switch (fault) {
      case 'crash':
        process?.kill();
        process?.postStart(() => this.#staleRevision());
        return;
      case 'late':
        this.scheduler.postpone(step);
        return;
      case 'delay':
        this.scheduler.delay(step, process?.aliveness() ?? (() => true));
        return;
      case 'hurry':
        this.#postAction();
        await this.#interpose(plan);
        break;
      case 'delete':
      case 'recreate':
      case 'orphan':
        await interfere(this.#server.client, this.history, fault);
        await settled();
        break;
      case 'mutate':
        this.history.writer = 'scenario';
        if (step.call?.info) await startAdmission(this.#server.client, step.call.info);
        break;
      default:
        this.history.writer = owner;
        step.run(fault);
        return;
    }
    this.history.writer = owner;
    step.run();
  }

  /** Checks the invariants after a write. */
  #afterStep(): void {
    const writes = this.history.changes.length;
    if (writes === this.#checkedWrites) return;
    this.#checkedWrites = writes;
    for (const [name, holds] of Object.entries(this.#options.invariants)) {
      const result = holds(this.history);
      if (result === undefined || result === true) continue;
      this.#broken ??= { name, detail: result === false ? '' : result };
    }
  }

  /** Runs the action that was posted last. */
  async #interpose(plan: Plan): Promise<void> {
    const action = this.scheduler.pending.find(({ kind }) => kind === 'action');
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
      action(this.#server.client, clock).then(
        () => this.#runningActions--,
        (cause: unknown) => {
          this.#failedAction = new Error(`The action "${label}" of the scenario failed`, { cause });
        },
      );
    };
    this.scheduler.post({ kind: 'action', owner: 'scenario', label, isFaulty: false, run });
  }

  /** The revision before the last write of a process. */
  #staleRevision(): number {
    const names = new Set(this.#processes.map(({ name }) => name));
    const last = this.history.changes.findLast(
      ({ by, resource }) => names.has(by) && !isBackgroundResource(resource),
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

/** Runs all promise reactions that are possible without I/O. */
function settled(): Promise<void> {
  return new Promise((resolve) => {
    process.nextTick(resolve);
  });
}
