import type { KubernetesObject } from '../api/object.ts';
import { apiVersionOf, groupResourceOf } from '../api/resource.ts';
import type { Resource } from '../api/resource.ts';
import type { Client, Selection } from '../client/client.ts';
import type { ReflectorMetrics } from '../metrics/reflector-metrics.ts';
import { systemClock } from '../util/clock.ts';
import type { Clock } from '../util/clock.ts';
import { Deferred } from '../util/deferred.ts';
import { silentLogger } from '../util/logger.ts';
import type { Logger } from '../util/logger.ts';
import type { Runnable } from '../util/runnable.ts';
import { Informer } from './informer.ts';
import type { Transform } from './intake.ts';
import { listerWatcher } from './lister-watcher.ts';
import type { ReflectorOptions } from './reflector-options.ts';
import { WatchListSupport } from './watch-list-support.ts';

export interface InformerSetOptions extends ReflectorOptions {
  /** @default systemClock */
  readonly clock?: Clock;
  /** @default silentLogger */
  readonly log?: Logger;
  /**
   * Numbers in [0, 1), for jitter.
   * @default Math.random
   */
  readonly random?: () => number;
  readonly metrics?: ReflectorMetrics;
  /**
   * What is known of the server's ability to stream initial state.
   * @default nothing yet
   */
  readonly watchList?: WatchListSupport;
  /**
   * Freeze what is cached, so that whoever changes a shared object is thrown at. For tests.
   * @default false
   */
  readonly freeze?: boolean;
}

/** What of a resource an informer keeps. */
export interface InformerRequest<T extends KubernetesObject> extends Selection {
  /** Cache `PartialObjectMetadata` only; the resource's type should say so. */
  readonly metadataOnly?: boolean;
  /** Run once on each object before anyone sees it. */
  readonly transform?: Transform<T>;
}

/** First pause between two lines about a cache that is not there yet, in milliseconds; it doubles. */
const WAITING_LINE_MS = 10_000;
const WAITING_LINE_MAX_MS = 5 * 60_000;

/**
 * One informer for each resource and selection, however many ask for it. `run` runs them all, also
 * those asked for later.
 */
export class InformerSet implements Runnable {
  readonly name = 'informers';
  readonly #client: Pick<Client, 'list' | 'watch'>;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #options: InformerSetOptions & { readonly watchList: WatchListSupport };
  readonly #informers = new Map<string, Informer>();
  readonly #transforms = new Map<string, unknown>();
  #running: { start(informer: Informer): void } | undefined;

  constructor(client: Pick<Client, 'list' | 'watch'>, options: InformerSetOptions = {}) {
    const { clock = systemClock, log = silentLogger } = options;
    this.#client = client;
    this.#clock = clock;
    this.#log = log;
    this.#options = { ...options, watchList: options.watchList ?? new WatchListSupport(clock) };
  }

  /** The informers asked for so far. */
  get informers(): readonly Informer[] {
    return [...this.#informers.values()];
  }

  /** True if every informer asked for so far has synced. */
  get hasSynced(): boolean {
    return this.informers.every((informer) => informer.hasSynced);
  }

  /** Resolves when every informer asked for so far has synced; rejects if one stops before. */
  get synced(): Promise<void> {
    return Promise.all(this.informers.map((informer) => informer.synced)).then(() => undefined);
  }

  /**
   * The informer of `resource` and this selection; the first to ask determines the transform.
   *
   * @throws {Error} if it is there already with another transform
   */
  for<T extends KubernetesObject>(
    resource: Resource<T>,
    request: InformerRequest<T> = {},
  ): Informer<T> {
    const { metadataOnly = false, transform, ...selection } = request;
    const id = identityOf(resource, selection, metadataOnly);
    const present = this.#informers.get(id);
    if (present) {
      if (transform !== this.#transforms.get(id)) {
        throw new Error(`The informer of ${id} is shared and has another transform`);
      }
      // The identity holds the resource, and with it the type.
      return present as Informer<T>;
    }
    const source = listerWatcher(this.#client, resource, selection, { metadataOnly });
    const informer = new Informer<T>(resource, source, {
      ...this.#options,
      name: nameOf(resource, selection, metadataOnly),
      ...(transform ? { transform } : {}),
    });
    this.#informers.set(id, informer);
    this.#transforms.set(id, transform);
    this.#running?.start(informer);
    return informer;
  }

  async run(signal: AbortSignal): Promise<void> {
    const stop = new AbortController();
    const stopped = new Deferred();
    const end = () => {
      stop.abort(signal.reason);
      stopped.resolve();
    };
    if (signal.aborted) end();
    signal.addEventListener('abort', end, { once: true });
    const tasks: Promise<void>[] = [];
    let fault: { readonly cause: unknown } | undefined;
    const start = async (task: Promise<void>) => {
      try {
        await task;
      } catch (cause) {
        fault ??= { cause };
        end();
      }
    };
    this.#running = {
      start: (informer) => {
        tasks.push(
          start(informer.run(stop.signal)),
          start(this.#tellWaiting(informer, stop.signal)),
        );
      },
    };
    for (const informer of this.informers) this.#running.start(informer);
    await stopped.promise;
    this.#running = undefined;
    await Promise.all(tasks);
    signal.removeEventListener('abort', end);
    if (fault) throw fault.cause;
  }

  /**
   * A line now and then while a cache is not there. A resource that the server does not have is
   * not mentioned: its reflector has said so, and how to mend it.
   */
  async #tellWaiting(informer: Informer, signal: AbortSignal): Promise<void> {
    const sinceMs = this.#clock.monotonic();
    for (
      let pauseMs = WAITING_LINE_MS;
      !informer.hasSynced && !signal.aborted;
      pauseMs = Math.min(2 * pauseMs, WAITING_LINE_MAX_MS)
    ) {
      await this.#clock.sleep(pauseMs, signal);
      const { progress } = informer;
      if (informer.hasSynced || signal.aborted || progress.missing) continue;
      const { lastError } = progress;
      this.#log.info('Still waiting for a cache', {
        cache: informer.name,
        forSeconds: Math.round((this.#clock.monotonic() - sinceMs) / 1000),
        phase: progress.phase,
        ...(lastError instanceof Error ? { err: lastError.message } : {}),
      });
    }
  }
}

function identityOf(resource: Resource, selection: Selection, metadataOnly: boolean): string {
  return `${apiVersionOf(resource)} ${nameOf(resource, selection, metadataOnly)}`;
}

/** `pods`, or `pods in demo with labels app=web`: unique, and legible in a log line. */
function nameOf(resource: Resource, selection: Selection, metadataOnly: boolean): string {
  const { namespace, labelSelector, fieldSelector } = selection;
  return [
    groupResourceOf(resource),
    ...(namespace ? [`in ${namespace}`] : []),
    ...(labelSelector ? [`with labels ${labelSelector}`] : []),
    ...(fieldSelector ? [`with fields ${fieldSelector}`] : []),
    ...(metadataOnly ? ['as metadata'] : []),
  ].join(' ');
}
