import { InformerSet } from '../cache/informer-set.ts';
import type { Client } from '../client/client.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { EventBroadcaster } from '../record/event-broadcaster.ts';
import { systemClock } from '../util/clock.ts';
import type { Clock } from '../util/clock.ts';
import { silentLogger } from '../util/logger.ts';
import type { Logger } from '../util/logger.ts';
import type { Controller, ControllerDeps } from './controller.ts';
import { withSyncBarrier } from './sync-barrier.ts';
import { partOf } from './leadership.ts';
import type { LeaderElectionOptions } from './leadership.ts';
import { Manager } from './manager.ts';
import type { RunHistory } from './history/run-history.ts';
import { terminationSignal } from './signals.ts';

/** What controllers are built from: pass it on to `new Controller`, and take informers from it. */
export interface ControllerKit extends ControllerDeps {
  /** Shared: however many controllers ask for the informer of a kind, there is one. */
  readonly informers: InformerSet;
  /** `events.recorder('web-controller')` tells users what happened to their objects. */
  readonly events: EventBroadcaster;
}

export type { LeaderElectionOptions } from './leadership.ts';

export interface ControllerManagerOptions {
  readonly client: Client;
  /** Builds the controllers. Called once; nothing has been sent to the server by then. */
  readonly controllers: (kit: ControllerKit) => readonly Controller[];
  /** @default silentLogger */
  readonly log?: Logger | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
  /**
   * Numbers in [0, 1), for jitter and the names of runs.
   * @default Math.random
   */
  readonly random?: (() => number) | undefined;
  /**
   * The machine or Pod that events come from.
   * @default none
   */
  readonly host?: string | undefined;
  /**
   * How often every object is looked at again although nothing happened, in milliseconds; 0: never.
   * @default 0
   */
  readonly resyncPeriodMs?: number | undefined;
  /**
   * How long stopping may take, in milliseconds; runs in flight get three quarters of it.
   * @default 30_000
   */
  readonly gracefulShutdownTimeoutMs?: number | undefined;
  /** @default none: this process is the only one */
  readonly leaderElection?: LeaderElectionOptions | undefined;
  /** @default none are counted */
  readonly metrics?: Metrics | undefined;
  /** @default none is kept */
  readonly history?: RunHistory | undefined;
  /**
   * Freeze what is cached, so that whoever changes a shared object is thrown at. For tests.
   * @default false
   */
  readonly freeze?: boolean;
}

/** Of the time to stop: what runs in flight get, and what is left for their events. */
const DRAIN_PART = 3 / 4;
const FLUSH_PART = 1 / 6;
const LONGEST_FLUSH_MS = 5000;

/**
 * Controllers and all they need, wired as they should be: shared informers that start once every
 * controller has added its handlers, events on their own lane, and, where asked for, a leadership
 * that is held before the first key runs. Add servers of your own to what it returns.
 */
export function controllerManager(options: ControllerManagerOptions): Manager {
  const { client, clock = systemClock, log = silentLogger, random = Math.random } = options;
  const { host, metrics, history, leaderElection, freeze = false, resyncPeriodMs = 0 } = options;
  const { gracefulShutdownTimeoutMs = 30_000 } = options;
  const flushTimeoutMs = Math.min(LONGEST_FLUSH_MS, FLUSH_PART * gracefulShutdownTimeoutMs);
  const informers = new InformerSet(client, {
    clock,
    log: log.named('cache'),
    random,
    freeze,
    ...(metrics && { metrics: metrics.reflector }),
  });
  const events = new EventBroadcaster(
    { client, clock, log: log.named('events') },
    { host, random, flushTimeoutMs, metrics: metrics?.events },
  );
  const part =
    leaderElection &&
    partOf(
      { clock, log, random, metrics: metrics?.leaderElection, events, flushTimeoutMs },
      leaderElection,
    );
  const controllers = options.controllers({
    client,
    clock,
    log,
    random,
    informers,
    events,
    metrics,
    history,
    sharding: part?.sharding,
    resyncPeriodMs,
    drainTimeoutMs: DRAIN_PART * gracefulShutdownTimeoutMs,
  });
  return new Manager({ clock, log }, { gracefulShutdownTimeoutMs, leadership: part?.leadership })
    .add('caches', informers)
    .add('events', events)
    .add(
      'controllers',
      ...controllers.map((controller) =>
        // Shards are caught up with one by one.
        part && !part.sharding ? withSyncBarrier(controller, { clock, log, random }) : controller,
      ),
    );
}

/**
 * Runs controllers until `signal` aborts; without one, until SIGTERM or SIGINT. Resolves after an
 * orderly stop, rejects with what made it impossible to go on.
 */
export async function runControllers(
  options: ControllerManagerOptions,
  signal?: AbortSignal,
): Promise<void> {
  const manager = controllerManager(options);
  if (signal) {
    await manager.run(signal);
    return;
  }
  const termination = terminationSignal(process, options.log ?? silentLogger);
  try {
    await manager.run(termination.signal);
  } finally {
    termination.dispose();
  }
}
