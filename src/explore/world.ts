import type { KubernetesObject, NewObject } from '../api/object.ts';
import { HttpClient } from '../client/http-client.ts';
import { ClusterControllers } from '../cluster/cluster-controllers.ts';
import type { ControllerManagerOptions } from '../manager/run-controllers.ts';
import { silentLogger } from '../util/logger.ts';
import { seededRandom } from '../util/seeded-random.ts';
import { ExploredProcess, PROCESS } from './explored-process.ts';
import { ExploredServer, SERVER } from './explored-server.ts';
import { History } from './history.ts';
import { changesOwnObjectsOnly, scenarioObjects } from './scenario-objects.ts';
import type { ScenarioAction } from './scenario-objects.ts';
import { ACTION_PAUSE_MS, Schedule, withoutFaults } from './schedule.ts';
import type { Invariant, StepRecorder } from './schedule.ts';
import { Scheduler } from './scheduler.ts';
import { SteppedTransport } from './transport.ts';
import type { ExploredService } from './transport.ts';
import { isCrd } from './upheaval.ts';
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

/** API server, cluster controllers and processes in virtual time. Each schedule starts from the same objects. */
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
  #schedule: Schedule | undefined;
  #clusterTransport: SteppedTransport | undefined;
  #final: UpheavalDeps['final'] = { objects: [], durationMs: 0 };

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
      await world
        .#newSchedule({})
        .run(withoutFaults, { quietMs: ACTION_PAUSE_MS, limitMs: Infinity });
      world.#clusterTransport?.cut();
    }
    world.#startMs = world.elapsedMs;
    world.#server.save();
    return world;
  }

  get elapsedMs(): number {
    return this.scheduler.time.elapsedMs;
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

  /** Ends the schedule, and starts another one from the same objects. */
  startSchedule(): Schedule {
    const { seed, replicas, controllers, scenario, cluster } = this.#options;
    const service = this.#options.service?.();
    this.#schedule?.stop();
    this.#clusterTransport?.cut();
    this.scheduler.reset(this.#startMs);
    this.#server.restore();
    // Timers of the watches that ended.
    this.scheduler.reset(this.#startMs);
    const schedule = this.#newSchedule(scenario.actions);
    if (cluster.length > 0) this.#startCluster();
    const processes = Array.from({ length: replicas }, (_, index) => {
      const name = replicas === 1 ? PROCESS : `${PROCESS}-${index + 1}`;
      return new ExploredProcess({
        name,
        seed: seed + index + 1,
        scheduler: this.scheduler,
        handler: this.#server.handler,
        service,
        controllers,
        isElected: this.isElected,
        expireHistory: () => this.#server.expireHistory(),
        onError: (message) => schedule.errors.push({ by: name, message }),
        recorder: this.recorder,
      });
    });
    schedule.start(processes);
    this.#schedule = schedule;
    return schedule;
  }

  #newSchedule(actions: ExploredScenario['actions']): Schedule {
    const { scenario, cluster, invariants } = this.#options;
    return new Schedule({
      scheduler: this.scheduler,
      server: this.#server,
      history: this.history,
      actions,
      crds: scenario.objects.filter(isCrd),
      final: this.#final,
      cluster,
      invariants,
      maxSteps: this.maxSteps,
      recorder: this.recorder,
    });
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
