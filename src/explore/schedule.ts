import { LEASES } from '../api/builtin.ts';
import type { Client } from '../client/client.ts';
import { nextTurn } from '../util/next-turn.ts';
import { isBackground, isBackgroundResource } from './api-call.ts';
import { startAdmission } from './admission.ts';
import { LEASE_NAME } from './explored-process.ts';
import type { ExploredProcess, ProcessRecorder } from './explored-process.ts';
import type { ExploredServer } from './explored-server.ts';
import { isStepFault } from './faults.ts';
import type { Fault, Upheaval } from './faults.ts';
import { emptyNamespaces } from './garbage.ts';
import type { History, ObservedState } from './history.ts';
import { interfere, OTHER_CLIENT } from './other-client.ts';
import { isByProcess } from './rule.ts';
import type { FinalObjects, ScenarioAction, ScenarioActions } from './scenario-objects.ts';
import type { Scheduler } from './scheduler.ts';
import { ServerTroubles } from './server-troubles.ts';
import type { Step } from './step.ts';
import { actionsOf, foregroundClient } from './upheaval.ts';
import type { UpheavalDeps } from './upheaval.ts';

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

/** Dependencies of `Schedule`. */
export interface ScheduleDeps {
  readonly scheduler: Scheduler;
  readonly server: ExploredServer;
  readonly history: History;
  readonly actions: ScenarioActions;
  /** CRDs of the scenario. */
  readonly crds: UpheavalDeps['crds'];
  readonly final: FinalObjects;
  /** Names of cluster controllers. */
  readonly cluster: readonly string[];
  readonly invariants: Readonly<Record<string, Invariant>>;
  /** Maximum number of steps of a part of the schedule. */
  readonly maxSteps: number;
  readonly recorder: StepRecorder | undefined;
}

/** By how much a wall clock jumps, in milliseconds. */
const JUMP_MS = 3_600_000;

/** Maximum number of requests that the server forgets when it returns to an older state. */
const MAX_LOST = 3;

/** Faults that create objects like those of the scenario. */
const COPYING: ReadonlySet<Fault> = new Set<Fault>(['twin', 'lookalike', 'occupy']);

/** Time without activity after which the next action starts, in milliseconds. */
export const ACTION_PAUSE_MS = 5_000;

/** One schedule. It runs one step after another; between two steps, all promise reactions run. */
export class Schedule {
  readonly trace: TraceEntry[] = [];
  /** Errors that the processes logged. */
  readonly errors: LoggedError[] = [];
  /** The first invariant that did not hold. */
  broken: BrokenInvariant | undefined;
  readonly #deps: ScheduleDeps;
  readonly #scheduler: Scheduler;
  readonly #server: ExploredServer;
  readonly #history: History;
  readonly #troubles: ServerTroubles;
  readonly #counts = new Map<string, number>();
  #processes: readonly ExploredProcess[] = [];
  #actions: [string, ScenarioAction][];
  #runningActions = 0;
  #failedAction: Error | undefined;
  #lastActivityMs: number;
  #checkedWrites = 0;
  #hasTerminating = false;
  #hasCopies = false;
  /** Whether the next action deletes in the foreground. */
  #isForeground = false;
  #hasActed = false;
  #hasEnded = false;

  constructor(deps: ScheduleDeps) {
    this.#deps = deps;
    this.#scheduler = deps.scheduler;
    this.#server = deps.server;
    this.#history = deps.history;
    this.#troubles = new ServerTroubles(() => deps.scheduler.time.elapsedMs);
    this.#actions = Object.entries(deps.actions);
    this.#lastActivityMs = deps.scheduler.time.elapsedMs;
  }

  /** Starts the processes. */
  start(processes: readonly ExploredProcess[]): void {
    this.#processes = processes;
    for (const process of processes) process.postStart(() => this.#staleRevision());
  }

  /** Ends the processes. */
  stop(): void {
    for (const process of this.#processes) process.kill();
  }

  /**
   * Runs steps until all actions are done and nothing has happened for `quietMs`, or until `limitMs` have passed. Returns
   * `endless` after too many steps.
   */
  async run(
    plan: Plan,
    { quietMs, limitMs }: { readonly quietMs: number; readonly limitMs: number },
  ): Promise<'quiet' | 'busy' | 'endless'> {
    const { time } = this.#scheduler;
    const endMs = time.elapsedMs + limitMs;
    const endSteps = this.trace.length + this.#deps.maxSteps;
    while (this.trace.length < endSteps) {
      await settled();
      if (this.#failedAction) throw this.#failedAction;
      const step = this.#scheduler.take();
      if (step) {
        await this.#step(step, plan);
        await this.#afterStep();
        if (this.broken) return 'busy';
        continue;
      }
      const isWaiting = this.#scheduler.isBusy || this.#runningActions > 0;
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
        if (this.#scheduler.isReady) continue;
        this.#history.writer = time.nextOwner ?? 'server';
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
    const [atMs, writes] = [this.#scheduler.time.elapsedMs, this.#history.changes.length];
    const isAlone = !this.#scheduler.isReady;
    const entry = { step, at, nth, atMs, fault, writes, isAlone };
    this.trace.push(entry);
    this.#deps.recorder?.step(entry);
    const isHeartbeat = kind === 'event' && label.endsWith(': BOOKMARK');
    if (!isHeartbeat && !(step.call && isBackground(step.call))) this.#lastActivityMs = atMs;
    const targets = this.#processes.filter(({ name }) => name === owner || kind === 'end');
    const runs = await this.#strike(fault, step, targets, plan);
    if (!runs) return;
    this.#history.writer = owner;
    this.#history.sentMs = step.postedMs ?? this.#scheduler.time.elapsedMs;
    step.run(isStepFault(fault) ? fault : this.#troubles.consequenceFor(step));
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
        this.#scheduler.postpone(step);
        return false;
      case 'delay':
        this.#scheduler.delay(step, targets[0]?.aliveness() ?? (() => true));
        return false;
      case 'freeze':
        this.#scheduler.freeze(step.owner);
        if (step.kind === 'request') return true;
        this.#scheduler.putBack(step);
        return false;
      case 'jump':
        for (const { name } of targets) this.#scheduler.time.jump(name, JUMP_MS);
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
        await interfere(client, this.#history, fault, step.call);
        await settled();
        return true;
      case 'mutate':
        this.#history.writer = 'scenario';
        if (step.call?.info) await startAdmission(client, step.call.info);
        return true;
      case 'depose':
        this.#history.writer = OTHER_CLIENT;
        await depose(client);
        await settled();
        return true;
      case 'outage':
        this.#troubles.startOutage();
        return true;
      case 'refuse':
        this.#troubles.startRefusal(step);
        return true;
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
    const { crds, final, cluster } = this.#deps;
    const actions = actionsOf(upheaval, {
      client: this.#server.client,
      clock: this.#scheduler.time.clock('scenario'),
      history: this.#history,
      crds,
      final,
      collects: !cluster.includes('garbage-collector'),
    });
    if (upheaval === 'fresh') this.#actions = actions;
    else this.#actions.unshift(...actions);
    return upheaval !== 'fresh';
  }

  /** Forgets the last writes that are not of users. */
  #rollBack(): void {
    const { changes } = this.#history;
    const since = changes.findLastIndex((each) => each.by !== 'cluster' && !isByProcess(each)) + 1;
    const requests = new Set(changes.slice(since).map(({ request }) => request));
    const forgotten = new Set([...requests].slice(-MAX_LOST));
    const lost = changes.slice(since).filter(({ request }) => forgotten.has(request));
    if (lost.length === 0) return;
    this.#server.undo(lost);
    this.#troubles.startRestore();
  }

  /** Deletes namespaces, and checks the invariants after a write. */
  async #afterStep(): Promise<void> {
    const { changes } = this.#history;
    if (changes.length === this.#checkedWrites) return;
    const isDeleting = changes
      .slice(this.#checkedWrites)
      .some(
        ({ resource, object: { metadata } }) =>
          resource === '/namespaces' && metadata.deletionTimestamp,
      );
    this.#hasTerminating ||= isDeleting && !this.#deps.cluster.includes('namespace');
    if (this.#hasTerminating) {
      this.#hasTerminating = await emptyNamespaces(this.#server.client, this.#history);
    }
    this.#checkedWrites = this.#history.changes.length;
    // Invariants are about the objects of the scenario.
    if (this.#hasCopies) return;
    for (const [name, holds] of Object.entries(this.#deps.invariants)) {
      const result = holds(this.#history);
      if (result === undefined || result === true) continue;
      this.broken ??= { name, detail: result === false ? '' : result };
    }
  }

  /** Runs the action that was posted last. */
  async #interpose(plan: Plan): Promise<void> {
    const action = this.#scheduler.nextAction;
    if (!action) return;
    this.#scheduler.withdraw(action);
    await this.#step(action, plan);
    await settled();
  }

  #postAction(): void {
    const [next] = this.#actions.splice(0, 1);
    if (!next) return;
    const [label, action] = next;
    const clock = this.#scheduler.time.clock('scenario');
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
    this.#scheduler.post({ kind, owner: 'scenario', label, isFaulty: true, run });
  }

  #postEnd(): void {
    this.#hasEnded = true;
    const end = { kind: 'end', owner: 'scenario', label: 'end' } as const;
    this.#scheduler.post({ ...end, isFaulty: true, run: () => undefined });
  }

  /** The revision before the last write of a process. */
  #staleRevision(): number {
    const last = this.#history.changes.findLast(
      (change) => isByProcess(change) && !isBackgroundResource(change.resource),
    );
    const revision = last
      ? Number(last.object.metadata.resourceVersion) - 1
      : this.#server.revision;
    return Math.max(1, revision);
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
