import { HttpClient } from '../client/http-client.ts';
import { controllerManager } from '../manager/run-controllers.ts';
import type { ControllerManagerOptions } from '../manager/run-controllers.ts';
import type { ProgramTap } from '../manager/program-tap.ts';
import type { HttpHandler } from '../util/http.ts';
import { silentLogger } from '../util/logger.ts';
import type { Logger } from '../util/logger.ts';
import { seededRandom } from '../util/seeded-random.ts';
import { messageOf } from '../util/values.ts';
import type { Scheduler } from './scheduler.ts';
import { SteppedTransport } from './transport.ts';
import type { ExploredService } from './transport.ts';

/** Delay before a process that ended by itself starts again, in milliseconds. */
const RESTART_DELAY_MS = 10_000;

/** Name of the only process, and the prefix of the names of several. */
export const PROCESS = 'controller';

/** Name of the Lease of several replicas. */
export const LEASE_NAME = 'explored';

/** Listens to a process. */
export interface ProcessRecorder {
  /** Returns a handler that records the requests of a process. */
  handler(process: string, handler: HttpHandler): HttpHandler;
  /** Returns what records the syncs of a process that starts. */
  tap(process: string): ProgramTap;
}

/** Dependencies of `ExploredProcess`. */
export interface ProcessDeps {
  readonly name: string;
  readonly seed: number;
  readonly scheduler: Scheduler;
  readonly handler: HttpHandler;
  readonly service: ExploredService | undefined;
  readonly controllers: ControllerManagerOptions['controllers'];
  /** Whether a Lease decides which process works. */
  readonly isElected: boolean;
  readonly expireHistory: () => void;
  /** Receives the messages of errors. */
  readonly onError: (message: string) => void;
  readonly recorder: ProcessRecorder | undefined;
}

/** A process with the explored controllers, which can crash between any two steps. */
export class ExploredProcess {
  readonly name: string;
  readonly #deps: ProcessDeps;
  readonly #random: () => number;
  #transport: SteppedTransport | undefined;
  #starts = 0;

  constructor(deps: ProcessDeps) {
    this.name = deps.name;
    this.#deps = deps;
    this.#random = seededRandom(deps.seed);
  }

  /** Posts the step in which the process starts. */
  postStart(staleRevision: () => number): void {
    const { name, scheduler } = this.#deps;
    const isFaulty = this.#starts++ > 0;
    const label = isFaulty ? 'restart' : 'start';
    scheduler.post({
      kind: 'start',
      owner: name,
      label,
      isFaulty,
      run: (fault) => this.#start(fault === undefined ? undefined : staleRevision(), staleRevision),
    });
  }

  /** Ends the process without a trace: it sends and receives nothing more, and its timers do nothing. */
  kill(): void {
    this.#transport?.cut();
    this.#transport = undefined;
  }

  /** Returns a function that reports whether the process has neither crashed nor ended since. */
  aliveness(): () => boolean {
    const transport = this.#transport;
    return () => transport === undefined || transport.isOpen;
  }

  #start(staleRevision: number | undefined, restartAt: () => number): void {
    const { name, scheduler, handler, service, controllers, isElected, expireHistory, recorder } =
      this.#deps;
    const transport = new SteppedTransport({
      owner: name,
      scheduler,
      handler,
      service,
      isFaulty: true,
      staleRevision,
      expireHistory,
    });
    this.#transport = transport;
    const clock = scheduler.time.clock(name, () => transport.isOpen);
    const server = 'https://explored';
    const namespace = 'default';
    const client = new HttpClient({
      handler: recorder?.handler(name, transport.handle) ?? transport.handle,
      server,
      clock,
      userAgent: name,
      namespace,
    });
    const manager = controllerManager({
      client,
      controllers,
      clock,
      fetch: transport.fetch,
      random: this.#random,
      log: errorLogger(this.#deps.onError),
      freeze: true,
      recorder: recorder?.tap(name),
      ...(isElected && { name: LEASE_NAME, leaderElection: { identity: name } }),
    });
    const ended = () => {
      if (!transport.isOpen) return;
      this.kill();
      scheduler.time.after(name, RESTART_DELAY_MS, () => this.postStart(restartAt));
    };
    manager.run(new AbortController().signal).then(ended, ended);
  }
}

/** Returns a logger of errors only. */
function errorLogger(onError: (message: string) => void): Logger {
  const logger: Logger = {
    info: () => undefined,
    error: (error, message) => onError(`${message}: ${messageOf(error)}`),
    enabled: false,
    v: () => silentLogger,
    with: () => logger,
    named: () => logger,
  };
  return logger;
}
