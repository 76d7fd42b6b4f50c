import { ApiError } from '../../src/api/api-error.ts';
import type { ManagerConfig } from '../../src/cli/commands/run.ts';
import { HttpClient } from '../../src/client/http-client.ts';
import { WriteFence } from '../../src/client/write-fence.ts';
import type { HttpHandler } from '../../src/util/http.ts';
import { LocalClock } from './local-clock.ts';
import type { LocalClockOptions } from './local-clock.ts';
import { recordingLogger } from './recording-logger.ts';
import { Simulation } from './simulation.ts';
import { newDaemon } from './test-cluster.ts';

/** A simulation with replicas that elect a leader, each on its own machine. */
export class Replicas extends Simulation {
  readonly replicas: Replica[] = [];

  startReplica(identity: string, options: ReplicaOptions = {}): Replica {
    const replica = new Replica(identity, options, {
      handler: this.server.handler,
      clock: new LocalClock(this.clock, options.clock),
      random: this.random,
    });
    this.replicas.push(replica);
    this.onEnd(async () => {
      if (replica.wasKilled) return this.leaveTimers();
      replica.resume();
      replica.network('up');
      replica.stop();
      await this.until('it ends', async () => replica.ending !== undefined);
    });
    return replica;
  }

  /** Identities of the replicas that may write now. */
  writers(): string[] {
    return this.replicas.filter(({ mayWrite }) => mayWrite).map(({ identity }) => identity);
  }

  /** Writes of a replica as `verb resource/subresource`, without leases and events. */
  writesOf({ identity }: Replica): string[] {
    return this.server.requests.recent.flatMap(({ method, info, userAgent }) =>
      userAgent !== identity || method === 'GET' || !info || info.resource === 'events'
        ? []
        : `${info.verb} ${info.resource}/${info.subresource ?? ''}`,
    );
  }
}

export interface ReplicaOptions {
  readonly config?: Partial<ManagerConfig>;
  /** @default a clock without error */
  readonly clock?: LocalClockOptions;
  /** Additional middleware between the daemon and the server. */
  readonly around?: (handler: HttpHandler) => HttpHandler;
}

interface Machine {
  readonly handler: HttpHandler;
  readonly clock: LocalClock;
  readonly random: () => number;
}

/** A write fence that tests can inspect. */
class InspectableFence extends WriteFence {
  mayWrite: () => boolean = () => false;

  override guardedBy(mayWrite: () => boolean, mayWriteEvents: () => boolean): void {
    this.mayWrite = mayWrite;
    super.guardedBy(mayWrite, mayWriteEvents);
  }
}

/** A daemon with leader election that can be stopped, killed, paused and continued. */
export class Replica {
  readonly identity: string;
  /** The result after its end. */
  ending: 'ended' | Error | undefined;
  wasKilled = false;
  readonly #clock: LocalClock;
  readonly #stop = new AbortController();
  readonly #fence = new InspectableFence();
  readonly #recording = recordingLogger();
  #network: 'up' | 'without leases' | 'down' = 'up';

  constructor(
    identity: string,
    { config, around = (handler) => handler }: ReplicaOptions,
    { handler, clock, random }: Machine,
  ) {
    this.identity = identity;
    this.#clock = clock;
    const { log } = this.#recording;
    const connect = (outermost: HttpHandler, userAgent: string, requestTimeoutMs: number) =>
      new HttpClient({
        handler: this.#onThisMachine(outermost),
        server: 'https://simulated',
        clock,
        userAgent,
        requestTimeoutMs,
      });
    const network = this.#wired(around(handler));
    const leases = connect(network, `${identity}/leader-election`, 5000);
    const whole = newDaemon(
      {
        client: connect(this.#fence.wrap(network), identity, 30_000),
        clock,
        log,
        random,
        host: identity,
        leaderElection: { client: leases, fence: this.#fence, identity, namespace: 'default' },
        freeze: true,
      },
      { leaderElection: LEADER_ELECTION, ...config },
    );
    void whole.run(this.#stop.signal).then(
      () => (this.ending = 'ended'),
      (error: unknown) => (this.ending = error as Error),
    );
  }

  /** Whether its write fence allows writes now. */
  get mayWrite(): boolean {
    return this.ending === undefined && !this.wasKilled && this.#fence.mayWrite();
  }

  /** Address of its probes, when they are served. */
  get address(): string | undefined {
    const line = this.#recording.lines.find(({ message }) => message === 'Listening');
    return line && String(line.fields['address']);
  }

  /** Its log lines at default verbosity. */
  get lines(): string[] {
    return this.#recording.lines
      .filter(({ level }) => level === 'error' || level === 0)
      .map(({ message }) => message);
  }

  /** Whether it has ended. */
  hasLogged(message: string): boolean {
    return this.#recording.lines.some((line) => line.message === message);
  }

  get errors(): string[] {
    return this.#recording.lines
      .filter(({ level }) => level === 'error')
      .map(({ message, error }) => `${message}: ${error instanceof Error ? error.message : ''}`);
  }

  /** Stops it like SIGTERM. */
  stop(): void {
    this.#stop.abort(new Error('SIGTERM'));
  }

  /** Kills it like SIGKILL. */
  kill(): void {
    this.wasKilled = true;
    this.#clock.pause();
  }

  /** Pauses it like SIGSTOP. */
  pause(): void {
    this.#clock.pause();
  }

  /** Continues it like SIGCONT. */
  resume(): void {
    if (!this.wasKilled) this.#clock.resume();
  }

  network(state: 'up' | 'without leases' | 'down'): void {
    this.#network = state;
  }

  /** A paused process sends nothing, and its incoming data waits. */
  #onThisMachine(handler: HttpHandler): HttpHandler {
    const clock = this.#clock;
    async function* held(body: AsyncIterable<Uint8Array>) {
      for await (const chunk of body) {
        await clock.awake();
        yield chunk;
      }
      await clock.awake();
    }
    return async (request) => {
      await clock.awake();
      try {
        const response = await handler(request);
        return { ...response, body: held(response.body) };
      } finally {
        await clock.awake();
      }
    };
  }

  #wired(handler: HttpHandler): HttpHandler {
    return async (request) => {
      const isCut =
        this.#network === 'down' ||
        (this.#network === 'without leases' && request.path.includes('/leases'));
      if (!isCut) return handler(request);
      const cause = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
      throw new ApiError({ kind: 'unreachable', message: 'connection refused', cause });
    };
  }
}

/** Default leader election options of replicas. */
export const LEADER_ELECTION = {
  name: 'crd-controller',
  namespace: undefined,
  leaseDurationMs: 15_000,
  renewDeadlineMs: 10_000,
  retryPeriodMs: 2_000,
};
