import { createHash } from 'node:crypto';
import type { KubernetesObject, NewObject } from '../api/object.ts';
import type { ControllerManagerOptions } from '../manager/run-controllers.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';
import { seededRandom } from '../util/seeded-random.ts';
import type { Fault } from './faults.ts';
import { FAULTS, parseDeviation, parseStop } from './faults.ts';
import type { Baseline, FinishedRun } from './finished-run.ts';
import { baselineOf, historyOf, planOf, runSchedule } from './finished-run.ts';
import { violationOf } from './oracles.ts';
import type { Violation } from './oracles.ts';
import { ScheduleRecorder } from './schedule-recorder.ts';
import { search } from './search.ts';
import { shrink } from './shrink.ts';
import type { FailedRun } from './shrink.ts';
import { replayOf, replayOption, storyOf } from './story.ts';
import { isCrd } from './upheaval.ts';
import type { ScenarioAction, ScenarioPart } from './scenario-objects.ts';
import { partsOf } from './scenario-objects.ts';
import type { ExploredService } from './transport.ts';
import type { Invariant, Plan } from './schedule.ts';
import { withoutFaults } from './schedule.ts';
import { World } from './world.ts';

const EXPLORE_OPTIONS: OptionNames<ExploreOptions> = {
  controllers: true,
  objects: true,
  scenario: true,
  service: true,
  invariants: true,
  faults: true,
  cluster: true,
  replicas: true,
  budget: true,
  seed: true,
  replay: true,
  recording: true,
};

/** Options of {@link explore}. */
export interface ExploreOptions {
  /** The controllers, as for `runControllers`. They use the clock, the client and the random numbers of the kit only. */
  readonly controllers: ControllerManagerOptions['controllers'];
  /**
   * Objects that exist before the controllers start: CRDs, and others in the order of their creation.
   * @default none
   */
  readonly objects?: readonly NewObject<KubernetesObject>[] | undefined;
  /**
   * What users and other programs do: actions by name. Each starts when nothing happens any more after the previous one,
   * or earlier in schedules with the fault `hurry`.
   */
  readonly scenario: Readonly<Record<string, ScenarioAction>>;
  /**
   * Returns a stand-in for the services that controllers call by `callService`, before each schedule. It answers each request
   * with a status, a response or an error, as `respond` of a `FakeFetch` does. Faults strike these requests, too.
   * @default each request is answered with status 200 and no body
   */
  readonly service?: (() => ExploredService) | undefined;
  /**
   * Invariants by name, in addition to the rules for all controllers. Each is called after every write.
   * @default none
   */
  readonly invariants?: Readonly<Record<string, Invariant>> | undefined;
  /**
   * Faults that can strike.
   * @default all
   */
  readonly faults?: readonly Fault[] | undefined;
  /**
   * Cluster controllers that run, as in `Cluster`: `['kubelet', 'scheduler', 'garbage-collector']`. They cost most of the time.
   * @default none: Pods stay pending
   */
  readonly cluster?: readonly string[] | undefined;
  /**
   * Number of processes with the controllers. More than one elect a leader.
   * @default 1
   */
  readonly replicas?: number | undefined;
  /** When the search ends. */
  readonly budget?: ExploreBudget | undefined;
  /**
   * Determines the random numbers. The same seed explores the same schedules.
   * @default 1
   */
  readonly seed?: number | undefined;
  /**
   * Faults of the only schedule to run, and the action before which it ends, as an error of `explore` shows them.
   * @default a search
   */
  readonly replay?: readonly string[] | undefined;
  /**
   * File that gets the schedule that violates a rule. `crd-controller replay FILE --web` shows it as a timeline.
   * @default none
   */
  readonly recording?: string | undefined;
}

/** When a search ends. */
export interface ExploreBudget {
  /**
   * Maximum number of schedules.
   * @default 500
   */
  readonly schedules?: number;
  /**
   * Maximum time in seconds. Which schedules are explored then depends on the machine.
   * @default no limit
   */
  readonly seconds?: number;
}

/** The result of a search without violations. */
export interface Exploration {
  /** Number of schedules that were run. */
  readonly schedules: number;
  /** Number of schedules with different sequences of writes. */
  readonly distinctHistories: number;
  /** Number of steps of the schedule without faults. */
  readonly steps: number;
  /** Digest of all schedules: equal for equal options on all machines. */
  readonly traceHash: string;
}

/** A schedule in which a rule or an invariant did not hold. */
export class ViolationError extends Error {
  override readonly name = 'ViolationError';
  readonly rule: string;
  readonly detail: string;
  /** The shortest schedule that was found, for the option `replay`. */
  readonly replay: readonly string[];
  /** Number of schedules until the violation was found. */
  readonly schedules: number;

  constructor(failed: FailedRun, schedules: number, recording?: string) {
    const { rule, detail }: Violation = failed.violation;
    const repeat = `Found after ${schedules} schedules. Repeat it with the option\n  ${replayOption(failed)}`;
    const show =
      recording === undefined
        ? ''
        : `\nShow it as a timeline\n  crd-controller replay ${recording} --web`;
    super(`${storyOf(failed)}\n\n${repeat}${show}`);
    this.rule = rule;
    this.detail = detail;
    this.replay = replayOf(failed.run);
    this.schedules = schedules;
  }
}

const DEFAULT_SCHEDULES = 500;

/** Steps that a schedule may have beyond those of the one without faults, and a multiple of those. */
const MORE_STEPS = 1000;
const STEPS_FACTOR = 5;

/**
 * Searches for a schedule in which controllers violate a rule. The API server, the controllers and the actors of the
 * scenario run in this process and in virtual time. In each schedule, requests, responses and watch events happen in another
 * order, or faults strike: crashes, lost responses, errors, broken watches and caches that are behind. Schedules end after each
 * action by turns.
 *
 * These rules hold for all controllers:
 *
 * - The final state is that of a run without faults, except for identities and times.
 * - No owner has more objects at once than without faults.
 * - Objects without an owner that the controllers did not create are not changed.
 * - The writes of each object are bounded, and nothing is written in steady state.
 *
 * @example
 * ```ts
 * import { Controller, done, splitKey } from 'crd-controller';
 * import type { ControllerKit } from 'crd-controller';
 * import { CONFIG_MAPS } from 'crd-controller/kinds';
 * import { explore } from 'crd-controller/testing';
 *
 * const controllers = (kit: ControllerKit) => {
 *   const maps = kit.informers.for(CONFIG_MAPS);
 *   const controller = new Controller(kit, {
 *     name: 'label',
 *     kind: 'ConfigMap',
 *     sync: async (key, { client }) => {
 *       if (maps.lister.get(key)?.metadata.labels?.['seen'] === undefined) {
 *         const body = { metadata: { labels: { seen: 'true' } } };
 *         await client.patch(CONFIG_MAPS, splitKey(key), { type: 'merge', body });
 *       }
 *       return done();
 *     },
 *   });
 *   return [controller.for(maps)];
 * };
 * const metadata = { namespace: 'default', name: 'settings' };
 * const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata };
 * const { schedules } = await explore({
 *   controllers,
 *   scenario: { 'a user creates a ConfigMap': (client) => client.create(CONFIG_MAPS, map) },
 *   budget: { schedules: 20 },
 * });
 * console.log(schedules); // prints: 20
 * ```
 *
 * @throws {ViolationError} with the shortest schedule that was found, and a line that repeats it
 * @throws {SyntaxError} if `replay` has another form, or names an action that the scenario does not have
 * @throws {Error} if two runs of one schedule differ, because the controllers use another clock or other random numbers
 * @experimental
 */
export async function explore(options: ExploreOptions): Promise<Exploration> {
  checkOptions(options, EXPLORE_OPTIONS, 'explore');
  const { seed = 1, faults = FAULTS, budget = {}, replay } = options;
  const world = await World.create({
    controllers: options.controllers,
    objects: options.objects ?? [],
    replicas: options.replicas ?? 1,
    cluster: options.cluster ?? [],
    seed,
    service: options.service,
    invariants: options.invariants ?? {},
  });
  const report = new Report(budget);
  const violation = async (failed: FailedRun, baseline: Baseline, schedules: number) => {
    const { recording: file } = options;
    if (file !== undefined) await recordSchedule(world, failed, baseline, file);
    return new ViolationError(failed, schedules, file);
  };
  const baselines: Baseline[] = [];
  const parts = partsOf(options.scenario);
  for (const part of replay ? [replayedPart(parts, replay)] : parts) {
    const baseline = await baselineOf(world, part);
    const { expected } = baseline;
    report.add(expected);
    // Syncs can fail until the next action.
    if (!replay && part.stop !== undefined && expected.steadyErrors.length > 0) continue;
    const failed = failureOf(expected, expected);
    if (failed) throw await violation(failed, baseline, report.schedules);
    // The other parts are the first steps of the whole scenario.
    if (replay || part.stop === undefined) await requireDeterminism(world, baseline);
    baselines.push(baseline);
  }
  const attempt = async (plan: Plan, baseline: Baseline) => {
    const { expected } = baseline;
    world.maxSteps = MORE_STEPS + STEPS_FACTOR * expected.trace.length;
    const run = await runSchedule(world, baseline, plan, baseline);
    report.add(run);
    return { run, failed: failureOf(run, expected) };
  };
  const [replayed] = baselines;
  if (replay && replayed) {
    const deviations = replay.filter((text) => parseStop(text) === undefined).map(parseDeviation);
    const { failed } = await attempt(planOf(deviations), replayed);
    if (failed) throw await violation(failed, replayed, report.schedules);
    return report.result(baselines);
  }
  const hasCrds = (options.objects ?? []).some((object) => isCrd(object));
  const random = seededRandom(seed);
  const searches = baselines.map((baseline) => {
    const isPossible = (fault: Fault) =>
      (fault !== 'fresh' || baseline.canStartFresh) &&
      (fault !== 'uninstall' || hasCrds) &&
      (fault !== 'depose' || world.isElected);
    const plans = search(baseline.expected, faults.filter(isPossible), random);
    return { baseline, plans, next: plans.next() };
  });
  for (let turn = 0; !report.isOver; turn++) {
    const current = searches[turn % searches.length];
    if (!current || current.next.done) break;
    const { baseline, plans, next } = current;
    const { run, failed } = await attempt(next.value, baseline);
    if (failed) {
      const count = report.schedules;
      const again = async (plan: Plan) => (await attempt(plan, baseline)).failed;
      throw await violation(await shrink(failed, again), baseline, count);
    }
    current.next = plans.next(run);
  }
  return report.result(baselines);
}

/** Returns the part of the scenario at whose end a replayed schedule ends. */
function replayedPart(parts: readonly ScenarioPart[], replay: readonly string[]): ScenarioPart {
  const [stop] = replay.flatMap((text) => parseStop(text) ?? []);
  const part = parts.find((each) => each.stop === stop);
  if (!part) throw new SyntaxError(`replay: the scenario has no action "${stop}" to stop at`);
  return part;
}

/** Runs a schedule again, and records it. */
async function recordSchedule(
  world: World,
  failed: FailedRun,
  baseline: Baseline,
  file: string,
): Promise<void> {
  const { run } = failed;
  const recorder = new ScheduleRecorder({
    elapsedMs: () => world.elapsedMs,
    changes: () => world.history.changes,
  });
  world.recorder = recorder;
  await runSchedule(
    world,
    baseline,
    planOf(run.deviations),
    run === baseline.expected ? undefined : baseline,
  );
  await recorder.write(file, failed);
}

function failureOf(run: FinishedRun, expected: FinishedRun): FailedRun | undefined {
  const violation = violationOf(run, expected);
  return violation && { run, violation };
}

async function requireDeterminism(world: World, baseline: Baseline): Promise<void> {
  const { expected } = baseline;
  const again = await runSchedule(world, baseline, withoutFaults);
  if (again.hash === expected.hash) return;
  const textOf = ({ trace }: FinishedRun, index: number) => trace[index]?.at ?? 'the end';
  const at = expected.trace.findIndex(({ at: text }, index) => text !== textOf(again, index));
  const where =
    at < 0 ? 'in the written objects' : `${textOf(expected, at)} or ${textOf(again, at)}`;
  throw new Error(
    `explore: two runs of one schedule differ (${where}): use clock and random of the kit, and no I/O`,
  );
}

/** Counts schedules and digests them. */
class Report {
  schedules = 0;
  readonly #maxSchedules: number;
  readonly #endMs: number;
  readonly #histories = new Set<string>();
  readonly #hash = createHash('sha256');

  constructor({ schedules = DEFAULT_SCHEDULES, seconds = Infinity }: ExploreBudget) {
    this.#maxSchedules = schedules;
    this.#endMs = performance.now() + seconds * 1000;
  }

  get isOver(): boolean {
    return this.schedules >= this.#maxSchedules || performance.now() >= this.#endMs;
  }

  add(run: FinishedRun): void {
    this.schedules++;
    this.#hash.update(run.hash);
    this.#histories.add(historyOf(run));
  }

  result(baselines: readonly Baseline[]): Exploration {
    return {
      schedules: this.schedules,
      distinctHistories: this.#histories.size,
      steps: baselines.at(-1)?.expected.trace.length ?? 0,
      traceHash: this.#hash.digest('hex'),
    };
  }
}
