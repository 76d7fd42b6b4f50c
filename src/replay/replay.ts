import { AsyncLocalStorage } from 'node:async_hooks';
import type { ObjectKey } from '../api/object-key.ts';
import { WatchListSupport } from '../cache/reflector-watch.ts';
import { hookedClient } from '../client/client-calls.ts';
import type { Client } from '../client/client.ts';
import { HttpClient } from '../client/http-client.ts';
import { controllerManager } from '../manager/run-controllers.ts';
import type { ControllerManagerOptions } from '../manager/run-controllers.ts';
import type { ProgramTap } from '../manager/program-tap.ts';
import type { RecordedEvent } from '../record/recorded-event.ts';
import { untilAborted } from '../util/abort.ts';
import { checkOptions } from '../util/check-options.ts';
import type { Clock } from '../util/clock.ts';
import { FakeClock } from '../util/fake-clock.ts';
import type { HttpHandler, HttpRequest } from '../util/http.ts';
import { silentLogger } from '../util/logger.ts';
import type { Logger } from '../util/logger.ts';
import type { Runnable } from '../util/runnable.ts';
import { done } from '../workqueue/outcome.ts';
import type { KeyHandler } from '../workqueue/worker-pool.ts';
import { isOfEvents, jsonAnswer } from './exchange.ts';
import { describeFailure, eventSummary } from './flight-recorder.ts';
import type { Header, RecordingLine, SyncLine } from './format.ts';
import { lineOf, readRecording, RecordingError } from './read-recording.ts';
import type { Recording } from './read-recording.ts';
import { Redaction } from './redaction.ts';
import { ReplayCaches } from './replay-caches.ts';
import { ReplayedSync } from './replayed-sync.ts';
import type { SyncDifference } from './replayed-sync.ts';
import { tappedClock } from './tapped-clock.ts';

/** Options of {@link replay}. */
export interface ReplayOptions extends Pick<ControllerManagerOptions, 'controllers'> {
  /** Path of the recording. */
  readonly file: string;
  /** @default silentLogger */
  readonly log?: Logger | undefined;
}

/** Result of {@link replay}. */
export interface ReplayReport {
  /** The recorded program. */
  readonly program: Header['program'];
  /** Syncs whose writes, events or results differ, in the order of the recording. */
  readonly differences: readonly SyncDifference[];
  /** Number of syncs that were compared. */
  readonly compared: number;
  /** Number of syncs that were not compared, by reason. */
  readonly skipped: ReadonlyMap<string, number>;
  /** Number of lines that are missing in the recording or cannot be read. */
  readonly missingLines: number;
  /** Whether the last line is cut off: the recorded program ended without a stop. */
  readonly isCut: boolean;
  /** Resources with an informer in the program and no cache in the recording. */
  readonly missingCaches: readonly string[];
}

/**
 * Runs controllers offline in virtual time against a recording, and compares what each sync writes. The caches get the
 * recorded changes, each sync runs when it ran in the recording, and its requests get the recorded responses.
 *
 * After the first difference in a sync, further requests still get the recorded responses if they are equal or of the same object.
 *
 * @throws {RecordingError} if the file cannot be read, is no recording, or has another version
 */
export async function replay(options: ReplayOptions): Promise<ReplayReport> {
  checkOptions(options, { file: true, controllers: true, log: true }, 'replay');
  return replayRecording(await readRecording(options.file), options);
}

/** @throws {RecordingError} if it is a schedule of `explore` */
export function replayRecording(
  recording: Recording,
  options: Omit<ReplayOptions, 'file'>,
): Promise<ReplayReport> {
  if (recording.header.schedule) {
    throw new RecordingError(
      'A schedule of explore is not replayed: show it with replay FILE --web, and repeat it with the option replay of explore',
    );
  }
  return new Replay(recording, options).run();
}

/** Maximum virtual time in which the program stops, in milliseconds. */
const STOP_MS = 60_000;

/** Runs a program against a recording. */
class Replay {
  readonly #recording: Recording;
  readonly #options: Omit<ReplayOptions, 'file'>;
  readonly #clock: FakeClock;
  readonly #caches: ReplayCaches;
  readonly #redaction: Redaction;
  readonly #current = new AsyncLocalStorage<ReplayedSync>();
  readonly #controllers = new Map<string, KeyHandler<ObjectKey>>();
  readonly #syncs = new Map<number, ReplayedSync>();
  /** Syncs by the number of a request. */
  readonly #byRequest = new Map<number, ReplayedSync>();
  readonly #skipped = new Map<string, number>();
  readonly #stop = new AbortController();
  /** Whether the caches have all objects. */
  #isComplete = false;
  #missingLines: number;

  constructor(recording: Recording, options: Omit<ReplayOptions, 'file'>) {
    const { header, caches, unreadable } = recording;
    this.#recording = recording;
    this.#options = options;
    this.#clock = new FakeClock(header.startMs);
    this.#caches = new ReplayCaches(caches, this.#clock);
    this.#redaction = new Redaction(header.salt, header.redacted);
    this.#missingLines = unreadable;
  }

  async run(): Promise<ReplayReport> {
    const { header, lines, isCut } = this.#recording;
    await this.#clock.advance(header.ms);
    const ending: { hasEnded: boolean; failure?: { readonly cause: unknown } } = {
      hasEnded: false,
    };
    this.#start().then(
      () => void (ending.hasEnded = true),
      (cause: unknown) => void Object.assign(ending, { hasEnded: true, failure: { cause } }),
    );
    for (const each of lines) {
      const line = lineOf(each);
      if (!line) {
        this.#missingLines++;
        continue;
      }
      await this.#clock.advance(Math.max(0, line.ms - this.#clock.monotonic()));
      this.#apply(line);
    }
    await this.#clock.advance(0);
    this.#stop.abort();
    for (let ms = 0; ms < STOP_MS && !ending.hasEnded; ms += 1000) await this.#clock.advance(1000);
    if (ending.failure) throw ending.failure.cause;
    const all = [...this.#syncs.values()];
    const compared = all.filter((sync) => this.#isDecided(sync));
    return {
      program: header.program,
      differences: compared.map((sync) => sync.compare()).filter((each) => each !== undefined),
      compared: compared.length,
      skipped: this.#skipped,
      missingLines: this.#missingLines,
      isCut,
      missingCaches: [...this.#caches.missing],
    };
  }

  #start(): Promise<void> {
    const { controllers, log = silentLogger } = this.#options;
    const clock = this.#clock;
    const { namespaces } = this.#recording.header;
    const client = new HttpClient({
      handler: this.#answer,
      server: 'https://recording',
      clock,
      userAgent: 'replay',
      requestTimeoutMs: 0,
    });
    const manager = controllerManager({
      client,
      controllers,
      clock,
      log,
      informers: { namespaces, watchList: new WatchListSupport(clock, { enabled: false }) },
      recorder: this.#tap(client),
    });
    return manager.run(this.#stop.signal);
  }

  #tap(http: Client): ProgramTap {
    const current = this.#current;
    const passed = hookedClient(http, ({ options, send }) => send(options));
    const runnable = (name: string): Runnable => ({ name, run: untilAborted });
    return {
      ...runnable('replay'),
      clock: (clock: Clock) => tappedClock(clock, current, (sync, ms) => sync.now(ms)),
      random: (random) => () => {
        const value = random();
        return current.getStore()?.random(value) ?? value;
      },
      // The program's own clients of other clusters are not used.
      client: (_, cluster) => ({
        ...passed,
        // The resource determines the type.
        list: (resource, options = {}) =>
          current.getStore()
            ? http.list(resource, options)
            : (this.#caches.list(resource, options, cluster) as ReturnType<
                typeof http.list<never>
              >),
        watch: (resource, options = {}) =>
          Promise.resolve(
            this.#caches.watch(resource, options, cluster) as unknown as Awaited<
              ReturnType<typeof http.watch<never>>
            >,
          ),
      }),
      fetch: () => () => {
        const sync = current.getStore();
        if (sync) sync.isUndecided = true;
        return Promise.reject(new Error('A recording has no calls of other services'));
      },
      informer: () => undefined,
      event: (event: RecordedEvent) => current.getStore()?.event(eventSummary(event)),
      sync: (controller, sync) => {
        this.#controllers.set(controller, sync);
        // Syncs run when they ran in the recording, and not when a key is due.
        return () => Promise.resolve(done());
      },
      term: () => runnable('replay'),
    };
  }

  readonly #answer: HttpHandler = async (request: HttpRequest) => {
    const { method, path } = request;
    const text = request.body === undefined ? '' : Buffer.from(request.body).toString('utf8');
    const sent: unknown = text === '' ? undefined : JSON.parse(text);
    if (isOfEvents(request)) return jsonAnswer(method === 'POST' ? 201 : 200, sent ?? {});
    const body: unknown = JSON.parse(this.#redaction.body(path, text) ?? 'null') ?? undefined;
    const sync = this.#current.getStore() ?? this.#outside;
    return sync.answer({ method, path, body, sent }, this.#caches);
  };

  /** Requests outside of syncs. They are not compared. */
  get #outside(): ReplayedSync {
    const line = {
      kind: 'sync',
      ms: 0,
      sync: 0,
      controller: '',
      key: '',
      atMs: 0,
      reconcileID: '',
    } as const;
    return new ReplayedSync({ ...line, attempt: 1, causes: [] }, undefined, []);
  }

  #apply(line: RecordingLine): void {
    switch (line.kind) {
      case 'set':
        return this.#caches.set(line.cache, line.object);
      case 'drop':
        return this.#caches.drop(line.cache, line.object);
      case 'synced':
        return this.#caches.synced(line.cache);
      case 'sync':
        return this.#sync(line);
      case 'request': {
        const sync = line.sync === undefined ? undefined : this.#syncs.get(line.sync);
        if (sync) this.#byRequest.set(line.request, sync);
        return undefined;
      }
      case 'response':
      case 'failure':
        this.#byRequest.get(line.request)?.answered(line);
        this.#byRequest.delete(line.request);
        return undefined;
      case 'event':
        if (line.sync !== undefined) this.#syncs.get(line.sync)?.recordedEvent(line.event);
        return undefined;
      case 'gap':
        this.#missingLines += line.lines;
        this.#isComplete = false;
        return this.#caches.lose();
      case 'complete':
        this.#isComplete = true;
        return this.#caches.confirm();
      case 'cache':
      case 'end':
      case 'term':
      case 'write':
      case 'fault':
      case 'action':
        return undefined;
    }
  }

  #sync(line: SyncLine): void {
    const handle = this.#controllers.get(line.controller);
    if (!handle) return this.#skip(`the program has no controller ${line.controller}`);
    if (!this.#isComplete) return this.#skip('the recording did not have all objects yet');
    const { ends, requests } = this.#recording;
    const sync = new ReplayedSync(line, ends.get(line.sync), requests.get(line.sync) ?? []);
    this.#syncs.set(line.sync, sync);
    const byMs = line.atMs - this.#clock.now();
    if (Math.abs(byMs) >= 1000) this.#clock.jump(byMs);
    const { key, reconcileID, attempt, causes } = line;
    const context = {
      reconcileID,
      attempt,
      causes,
      omittedCauses: 0,
      delayedMs: 0,
      queuedMs: 0,
      signal: this.#stop.signal,
      log: this.#options.log ?? silentLogger,
    };
    this.#current
      .run(sync, () => handle(key as ObjectKey, context))
      .then(
        (outcome) => sync.ended({ outcome }),
        (error: unknown) => sync.ended({ error: describeFailure(error) }),
      );
  }

  #skip(reason: string): void {
    this.#skipped.set(reason, (this.#skipped.get(reason) ?? 0) + 1);
  }

  #isDecided(sync: ReplayedSync): boolean {
    if (!sync.isComplete) this.#skip('the recording does not have their ends');
    else if (sync.isUndecided) this.#skip('they call other services');
    else return true;
    return false;
  }
}
