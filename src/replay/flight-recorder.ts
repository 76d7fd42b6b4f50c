import { AsyncLocalStorage } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import { ApiError } from '../api/api-error.ts';
import type { KubernetesObject } from '../api/object.ts';
import { keyOf } from '../api/object-key.ts';
import type { ObjectKey } from '../api/object-key.ts';
import type { Informer } from '../cache/informer.ts';
import type { CacheSelection } from '../cache/informer-set.ts';
import { hookedClient } from '../client/client-calls.ts';
import type { Client } from '../client/client.ts';
import { readBody } from '../client/response.ts';
import type { ProgramTap } from '../manager/program-tap.ts';
import type { RecordedEvent } from '../record/recorded-event.ts';
import { untilAborted } from '../util/abort.ts';
import { checkOptions } from '../util/check-options.ts';
import { systemClock } from '../util/clock.ts';
import { CompleteBody } from '../util/complete-body.ts';
import type { Clock } from '../util/clock.ts';
import type { CallTrace, HttpRequest, HttpResponse } from '../util/http.ts';
import { redactText } from '../util/redact.ts';
import type { Runnable } from '../util/runnable.ts';
import { messageOf } from '../util/values.ts';
import type { KeyHandler } from '../workqueue/worker-pool.ts';
import { isOfEvents } from './exchange.ts';
import { RECORDING_FORMAT, RECORDING_VERSION } from './format.ts';
import type { CacheLine, Ending, EventSummary, Header } from './format.ts';
import { RecordingFile } from './recording-file.ts';
import { Redaction } from './redaction.ts';
import { SeparateTurns } from './separate-turns.ts';
import { tappedClock } from './tapped-clock.ts';

/** Options of {@link FlightRecorder}. */
export interface FlightRecorderOptions {
  /** Path of the file. An existing file becomes `FILE.1`, and replaces that. */
  readonly file: string;
  /**
   * Size after which a new file starts and the former one becomes `FILE.1`, in bytes. Each file starts with the objects of
   * all caches, and can be replayed without the other.
   * @default 104_857_600 (100 MiB)
   */
  readonly maxBytes?: number | undefined;
  /**
   * Resources of which only metadata and a hash are recorded, as of Secrets: `configmaps`, `databases.example.com`.
   * @default Secrets and tokens only
   */
  readonly redact?: readonly string[] | undefined;
  /**
   * Name and version of the program, its controllers and namespaces.
   * @default unknown; the names of the controllers
   */
  readonly program?: RecordedProgram | undefined;
}

/** The program of a recording. */
export interface RecordedProgram {
  readonly name: string;
  readonly version: string;
  readonly controllers?: readonly string[] | undefined;
  readonly namespaces?: readonly string[] | undefined;
}

const DEFAULT_MAX_BYTES = 100 * 1024 * 1024;

/** Maximum number of characters of a part of the caches that is written at once. */
const PART_LENGTH = 256 * 1024;

/** Response headers that matter to the client. */
const HEADERS = ['content-type', 'retry-after', 'warning'];

/** A sync that runs. */
interface RunningSync {
  readonly id: number;
  readonly atMs: number;
  readonly now: number[];
  readonly random: number[];
  hasEnded: boolean;
}

interface RecordedCache {
  readonly id: number;
  readonly informer: Informer;
  readonly selection: CacheSelection;
  isSynced: boolean;
}

/**
 * Records what the controllers of a program see and do, for `replay`: the objects of the caches, the syncs with their requests, events
 * and results, and the times at which they happened. Pass it to `runControllers` as the option `recorder`. It records one run.
 *
 * The contents of Secrets and tokens, and credentials are not recorded. Lines are written in the background. If the disk is
 * too slow or full, lines are lost, and the file says how many.
 *
 * @example
 * ```ts
 * import { FlightRecorder } from 'crd-controller';
 *
 * const recorder = new FlightRecorder({ file: '/tmp/recording.ndjson' });
 * console.log(recorder.name); // prints: flight recorder
 * ```
 */
export class FlightRecorder implements ProgramTap {
  readonly name = 'flight recorder';
  readonly #file: RecordingFile;
  readonly #redaction: Redaction;
  readonly #program: RecordedProgram;
  readonly #controllers = new Set<string>();
  readonly #current = new AsyncLocalStorage<RunningSync>();
  readonly #caches: RecordedCache[] = [];
  readonly #turns = new SeparateTurns();
  #clock: Clock = systemClock;
  #originMs = 0;
  #startMs = 0;
  #syncs = 0;
  #requests = 0;
  /** The rest of the objects that a new file must have. */
  #objects: Iterator<string> | undefined;

  /** @throws {RangeError} if `maxBytes` is not positive */
  constructor(options: FlightRecorderOptions) {
    const names = { file: true, maxBytes: true, redact: true, program: true } as const;
    checkOptions(options, names, 'FlightRecorder');
    const { file, maxBytes = DEFAULT_MAX_BYTES, redact, program } = options;
    if (!(maxBytes > 0)) {
      throw new RangeError(`FlightRecorder: maxBytes must be positive: got ${maxBytes}`);
    }
    this.#redaction = new Redaction(randomBytes(8).toString('hex'), redact);
    this.#program = program ?? { name: '', version: '' };
    this.#file = new RecordingFile({
      path: file,
      maxBytes,
      now: () => this.#elapsedMs,
      header: (sinceMs) => JSON.stringify(this.#header(sinceMs)),
      gap: (lines, reason) => this.#textOf('gap', { lines, reason }),
      onStart: () => {
        this.#objects = this.#describe();
        this.#describeMore();
      },
      onWritten: () => this.#describeMore(),
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    try {
      await this.#file.open();
    } catch (cause) {
      throw new Error(`Cannot record: ${messageOf(cause)}`, { cause });
    }
    await untilAborted(signal);
    await this.#file.close();
  }

  /** Resolves when the lines recorded so far have been written. */
  flush(): Promise<void> {
    return this.#file.flush();
  }

  clock(clock: Clock): Clock {
    this.#clock = clock;
    this.#originMs = clock.monotonic();
    this.#startMs = clock.now();
    // All changes of the caches follow.
    this.#line('complete', {});
    return tappedClock(clock, this.#current, (sync, ms) => {
      if (!sync.hasEnded) sync.now.push(ms - sync.atMs);
      return ms;
    });
  }

  random(random: () => number): () => number {
    return () => {
      const value = random();
      const sync = this.#current.getStore();
      if (sync && !sync.hasEnded) sync.random.push(value);
      return value;
    };
  }

  fetch(send: typeof fetch | undefined): typeof fetch | undefined {
    return send;
  }

  client(client: Client): Client {
    return hookedClient(client, ({ call, options, isWrite, send }) => {
      const sync = this.#current.getStore();
      if (call.verb === 'watch' || (!sync && !isWrite)) return send(options);
      return send({ ...options, trace: this.#trace(sync, options.trace) });
    });
  }

  informer(informer: Informer, selection: CacheSelection): void {
    const cache: RecordedCache = { id: this.#caches.length, informer, selection, isSynced: false };
    this.#caches.push(cache);
    this.#line('cache', declarationOf(cache));
    const set = (object: KubernetesObject) => this.#file.write(this.#setLine(cache, object));
    const { synced } = informer.addHandler(
      {
        onAdd: (object) => set(object as KubernetesObject),
        onUpdate: (old, object) => {
          if (old !== object) set(object as KubernetesObject);
        },
        onDelete: ({ apiVersion, kind, metadata }) => {
          const { name, namespace, uid, resourceVersion } = metadata;
          const object = { apiVersion, kind, metadata: { name, namespace, uid, resourceVersion } };
          this.#line('drop', { cache: cache.id, object });
        },
      },
      { name: this.name },
    );
    synced.then(
      () => {
        cache.isSynced = true;
        this.#line('synced', { cache: cache.id });
      },
      // The informer stopped first.
      () => undefined,
    );
  }

  event(event: RecordedEvent): void {
    this.#line('event', { sync: this.#current.getStore()?.id, event: eventSummary(event) });
  }

  sync(controller: string, sync: KeyHandler<ObjectKey>): KeyHandler<ObjectKey> {
    this.#controllers.add(controller);
    return async (key, context) => {
      // In a turn of its own, so that the order of lines is that in which the sync saw the caches.
      await this.#turns.next();
      const running = this.#startSync();
      const { reconcileID, attempt, causes, signal } = context;
      const { id, atMs } = running;
      this.#line('sync', { sync: id, controller, key, atMs, reconcileID, attempt, causes });
      try {
        const outcome = await this.#current.run(running, () => sync(key, context));
        this.#end(running, { outcome });
        return outcome;
      } catch (error) {
        this.#end(running, signal.aborted ? { aborted: true } : { error: describeFailure(error) });
        throw error;
      }
    };
  }

  term(isElected: boolean): Runnable {
    return {
      name: this.name,
      run: async (signal) => {
        this.#line('term', { state: 'started', lease: isElected });
        await untilAborted(signal);
        this.#line('term', { state: 'stopped', lease: isElected });
      },
    };
  }

  #startSync(): RunningSync {
    return {
      id: ++this.#syncs,
      atMs: this.#clock.now(),
      now: [],
      random: [],
      hasEnded: false,
    };
  }

  #end(running: RunningSync, ending: Ending): void {
    running.hasEnded = true;
    const { id: sync, now, random } = running;
    this.#line('end', { sync, ending, now, random });
  }

  #trace(sync: RunningSync | undefined, inner: CallTrace | undefined): CallTrace {
    return {
      send: (handler, request, server) => {
        const send = () => (inner ? inner.send(handler, request, server) : handler(request));
        return isOfEvents(request) ? send() : this.#exchange(sync, request, send);
      },
    };
  }

  async #exchange(
    sync: RunningSync | undefined,
    { method, path, body }: HttpRequest,
    send: () => Promise<HttpResponse>,
  ): Promise<HttpResponse> {
    const id = ++this.#requests;
    const head = { request: id, sync: sync?.id, method, path };
    const text = body === undefined ? '' : Buffer.from(body).toString('utf8');
    this.#line('request', head, this.#redaction.body(path, text));
    try {
      const response = await send();
      const bytes = await readBody(response);
      await this.#turns.next();
      const { status, headers } = response;
      const kept = HEADERS.filter((name) => headers[name] !== undefined);
      this.#line(
        'response',
        {
          request: id,
          status,
          headers: Object.fromEntries(kept.map((each) => [each, headers[each]])),
        },
        this.#redaction.body(path, bytes.toString('utf8')),
      );
      return { ...response, body: new CompleteBody(bytes) };
    } catch (error) {
      await this.#turns.next();
      const kind = error instanceof ApiError ? error.kind : 'unreachable';
      this.#line('failure', { request: id, error: kind, message: redactText(messageOf(error)) });
      throw error;
    }
  }

  get #elapsedMs(): number {
    return rounded(this.#clock.monotonic() - this.#originMs);
  }

  #header(ms: number): Header {
    const { name, version, controllers = [...this.#controllers], namespaces = [] } = this.#program;
    const { salt, redacted } = this.#redaction;
    return {
      kind: 'header',
      format: RECORDING_FORMAT,
      version: RECORDING_VERSION,
      program: { name, version },
      controllers,
      namespaces,
      startMs: this.#startMs,
      ms,
      salt,
      redacted,
    };
  }

  #line(kind: string, fields: object, body?: string): void {
    this.#file.write(this.#textOf(kind, fields, body));
  }

  /** @param body JSON of the member `body` */
  #textOf(kind: string, fields: object, body?: string): string {
    const text = JSON.stringify({ kind, ms: this.#elapsedMs, ...fields });
    return body === undefined ? text : `${text.slice(0, -1)},"body":${body}}`;
  }

  #setLine({ id, selection }: RecordedCache, object: KubernetesObject): string {
    const text = this.#redaction.object(selection.resource, object);
    return `{"kind":"set","ms":${this.#elapsedMs},"cache":${id},"object":${text}}`;
  }

  /** Yields lines with the objects of all caches. */
  *#describe(): Generator<string, void, undefined> {
    const caches = [...this.#caches];
    for (const cache of caches) yield this.#textOf('cache', declarationOf(cache));
    for (const cache of caches) {
      const { lister } = cache.informer;
      for (const { metadata } of lister.list()) {
        // The object may have changed since.
        const object = lister.get(keyOf({ metadata }));
        if (object) yield this.#setLine(cache, object as KubernetesObject);
      }
      if (cache.isSynced) yield this.#textOf('synced', { cache: cache.id });
    }
    yield this.#textOf('complete', {});
  }

  #describeMore(): void {
    let length = 0;
    while (this.#objects && length < PART_LENGTH) {
      const next = this.#objects.next();
      if (next.done) {
        this.#objects = undefined;
        this.#file.complete();
        return;
      }
      this.#file.write(next.value);
      length += next.value.length;
    }
  }
}

function declarationOf({ id, informer, selection }: RecordedCache): Omit<CacheLine, 'kind' | 'ms'> {
  const { resource, cluster, namespace, labelSelector, fieldSelector, metadataOnly } = selection;
  const { group, version, plural } = resource;
  const { name } = informer;
  return {
    id,
    name,
    cluster,
    group,
    version,
    plural,
    namespace,
    labelSelector,
    fieldSelector,
    metadataOnly,
  };
}

/** Returns the part of an event that is recorded. */
export function eventSummary(event: RecordedEvent): EventSummary {
  const { type, reason, message, action, involvedObject } = event;
  const { kind, namespace, name } = involvedObject;
  const object = `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`;
  return { type, reason, message: redactText(message), object, ...(action && { action }) };
}

/** Microseconds are enough, and shorter. */
function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}

/** Returns the message of an error, with the name of its class. */
export function describeFailure(error: unknown): string {
  const name = error instanceof Error ? error.name : typeof error;
  return redactText(`${name}: ${messageOf(error)}`);
}
