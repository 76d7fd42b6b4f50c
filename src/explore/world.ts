import type { KubernetesObject, NewObject } from '../api/object.ts';
import { HttpClient } from '../client/http-client.ts';
import { ClusterControllers } from '../cluster/cluster-controllers.ts';
import type { ControllerManagerOptions } from '../manager/run-controllers.ts';
import { silentLogger } from '../util/logger.ts';
import { seededRandom } from '../util/seeded-random.ts';
import { ExploredProcess, PROCESS } from './explored-process.ts';
import { ExploredServer, SERVER } from './explored-server.ts';
import { History } from './history.ts';
import { scenarioObjects } from './scenario-objects.ts';
import type { FinalObjects, ScenarioActions } from './scenario-objects.ts';
import { ACTION_PAUSE_MS, Schedule, withoutFaults } from './schedule.ts';
import type { Invariant, StepRecorder } from './schedule.ts';
import { Scheduler } from './scheduler.ts';
import { SteppedTransport } from './transport.ts';
import type { ExploredService } from './transport.ts';
import { isCrd } from './upheaval.ts';

const NO_OBJECTS: FinalObjects = { objects: [], durationMs: 0 };

export interface WorldOptions {
  readonly controllers: ControllerManagerOptions['controllers'];
  /** Objects that exist before the controllers start: CRDs, and others in the order of their creation. */
  readonly objects: readonly NewObject<KubernetesObject>[];
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

  private constructor(options: WorldOptions) {
    this.#options = options;
    this.#server = new ExploredServer(options.seed, this.scheduler.time, this.history);
  }

  /** Creates the objects of the scenario, and lets the cluster controllers see them. */
  static async create(options: WorldOptions): Promise<World> {
    const world = new World(options);
    for (const object of options.objects) await world.#server.create(object);
    if (options.cluster.length > 0) {
      world.#startCluster();
      await world
        .#newSchedule({}, NO_OBJECTS)
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

  /** Returns the objects of the scenario that the current schedule left. */
  finalObjects(): FinalObjects {
    const objects = scenarioObjects(this.history);
    return { objects, durationMs: this.elapsedMs - this.#startMs };
  }

  /**
   * Ends the schedule, and starts another one from the same objects.
   *
   * @param final what the actions leave without faults
   */
  startSchedule(actions: ScenarioActions, final: FinalObjects = NO_OBJECTS): Schedule {
    const { seed, replicas, controllers, cluster } = this.#options;
    const service = this.#options.service?.();
    this.#schedule?.stop();
    this.#clusterTransport?.cut();
    this.scheduler.reset(this.#startMs);
    this.#server.restore();
    // Timers of the watches that ended.
    this.scheduler.reset(this.#startMs);
    const schedule = this.#newSchedule(actions, final);
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

  #newSchedule(actions: ScenarioActions, final: FinalObjects): Schedule {
    const { objects, cluster, invariants } = this.#options;
    return new Schedule({
      scheduler: this.scheduler,
      server: this.#server,
      history: this.history,
      actions,
      crds: objects.filter(isCrd),
      final,
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
