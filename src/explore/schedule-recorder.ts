import { AsyncLocalStorage } from 'node:async_hooks';
import { writeFile } from 'node:fs/promises';
import type { KubernetesObject } from '../api/object.ts';
import type { ObjectKey } from '../api/object-key.ts';
import type { ProgramTap } from '../manager/program-tap.ts';
import { describeFailure, eventSummary } from '../replay/flight-recorder.ts';
import { RECORDING_FORMAT, RECORDING_VERSION } from '../replay/format.ts';
import type { Header, RecordingLine } from '../replay/format.ts';
import { untilAborted } from '../util/abort.ts';
import { CompleteBody } from '../util/complete-body.ts';
import type { HttpHandler, HttpRequest, HttpResponse, ResponseBody } from '../util/http.ts';
import { jsonIfValid } from '../util/json-value.ts';
import { isRecord, messageOf } from '../util/values.ts';
import type { KeyHandler } from '../workqueue/worker-pool.ts';
import { apiCallOf, isBackground } from './api-call.ts';
import type { ApiCall } from './api-call.ts';
import type { ChangeRecord } from './history.ts';
import { describeChange } from './rule.ts';
import type { FailedRun } from './shrink.ts';
import { describeFault, isRenewal, replayOf } from './story.ts';
import { START_MS } from './virtual-time.ts';
import type { StepRecorder, TraceEntry } from './schedule.ts';

type RequestInfo = NonNullable<ApiCall['info']>;

/** Dependencies of `ScheduleRecorder`. */
export interface ScheduleRecorderDeps {
  readonly elapsedMs: () => number;
  /** All writes of the schedule. */
  readonly changes: () => readonly ChangeRecord[];
}

/**
 * Records one schedule as a recording that `replay FILE --web` shows: what each process saw and did, the writes of the server, the
 * faults and the actions of users. It only listens, so that the schedule is the same without it.
 */
export class ScheduleRecorder implements StepRecorder {
  readonly #deps: ScheduleRecorderDeps;
  readonly #lines: RecordingLine[] = [];
  readonly #current = new AsyncLocalStorage<number>();
  readonly #caches = new Map<string, number>();
  #cacheIds = 0;
  #syncs = 0;
  #requests = 0;
  #writes = 0;

  constructor(deps: ScheduleRecorderDeps) {
    this.#deps = deps;
  }

  /** Records a step before it runs, and the writes since the step before. */
  step(entry: TraceEntry): void {
    const { step, fault, atMs: ms } = entry;
    this.#addWrites(entry.writes);
    if (fault !== undefined) {
      this.#lines.push({ kind: 'fault', ms, text: describeFault(fault, entry) });
    }
    if (step.owner === 'scenario' && step.kind !== 'end') {
      this.#lines.push({ kind: 'action', ms, text: step.label });
    }
  }

  /** Returns a handler that records the requests of a process. */
  handler(process: string, handler: HttpHandler): HttpHandler {
    return (request) => {
      const call = apiCallOf(request);
      const answer = handler(request);
      if (!call.info || isBackground(call)) return answer;
      const sync = this.#current.getStore();
      // Reads outside of syncs fill the caches.
      if (sync === undefined && !call.isWrite) return this.#readCache(process, call.info, answer);
      this.#exchange(process, sync, request, answer);
      return answer;
    };
  }

  /** Returns what records the syncs of a process that starts. */
  tap(process: string): ProgramTap {
    // Its caches are empty.
    for (const name of this.#caches.keys()) {
      if (name.startsWith(`${process} `)) this.#caches.delete(name);
    }
    const term = (state: 'started' | 'stopped', lease: boolean) =>
      this.#lines.push({ kind: 'term', ms: this.#ms, process, state, lease });
    return {
      name: 'schedule recorder',
      run: untilAborted,
      clock: (clock) => clock,
      random: (random) => random,
      client: (client) => client,
      fetch: (send) => send,
      informer: () => undefined,
      event: (event) => {
        const sync = this.#current.getStore();
        this.#lines.push({ kind: 'event', ms: this.#ms, sync, event: eventSummary(event) });
      },
      sync: (controller, sync) => this.#sync(process, controller, sync),
      term: (isElected) => ({
        name: 'schedule recorder',
        run: async (signal) => {
          term('started', isElected);
          await untilAborted(signal);
          term('stopped', isElected);
        },
      }),
    };
  }

  /** Writes the recording of a schedule that violates a rule. */
  async write(file: string, { run, violation }: FailedRun): Promise<void> {
    this.#addWrites(this.#deps.changes().length);
    const { rule, detail } = violation;
    const header: Header = {
      kind: 'header',
      format: RECORDING_FORMAT,
      version: RECORDING_VERSION,
      program: { name: 'explore', version: '' },
      controllers: [],
      namespaces: [],
      startMs: START_MS,
      ms: 0,
      salt: '',
      redacted: [],
      schedule: { rule, detail, replay: replayOf(run) },
    };
    const lines = [header, ...this.#lines].map((line) => `${JSON.stringify(line)}\n`);
    await writeFile(file, lines.join(''));
  }

  get #ms(): number {
    return this.#deps.elapsedMs();
  }

  #addWrites(until: number): void {
    for (const change of this.#deps.changes().slice(this.#writes, until)) {
      if (isRenewal(change)) continue;
      const { atMs: ms, by: process, object } = change;
      this.#lines.push({ kind: 'write', ms, process, text: describeChange(change), object });
    }
    this.#writes = until;
  }

  #sync(process: string, controller: string, handle: KeyHandler<ObjectKey>): KeyHandler<ObjectKey> {
    return (key, context) => {
      const sync = ++this.#syncs;
      const { reconcileID, attempt, causes } = context;
      const line = { kind: 'sync', sync, process, controller, key, reconcileID } as const;
      this.#lines.push({ ...line, ms: this.#ms, atMs: START_MS + this.#ms, attempt, causes });
      const end = (ending: Extract<RecordingLine, { readonly kind: 'end' }>['ending']) =>
        this.#lines.push({ kind: 'end', ms: this.#ms, sync, ending, now: [], random: [] });
      const result = this.#current.run(sync, () => handle(key, context));
      result.then(
        (outcome) => end({ outcome }),
        (error: unknown) => end({ error: describeFailure(error) }),
      );
      return result;
    };
  }

  #exchange(
    process: string,
    sync: number | undefined,
    { method, path, body }: HttpRequest,
    answer: Promise<HttpResponse>,
  ): void {
    const request = ++this.#requests;
    const sent = typeof body === 'string' ? jsonIfValid(body) : undefined;
    const line = { kind: 'request', request, process, sync, method, path } as const;
    this.#lines.push({ ...line, ms: this.#ms, body: sent });
    answer.then(
      (response) => {
        const { status } = response;
        const received = { kind: 'response', request, status, headers: {} } as const;
        this.#lines.push({ ...received, ms: this.#ms, body: contentOf(response) });
      },
      (error: unknown) => {
        const failure = { kind: 'failure', request, error: 'unreachable' } as const;
        this.#lines.push({ ...failure, ms: this.#ms, message: messageOf(error) });
      },
    );
  }

  /** Records the objects of a list, and the events of a watch when the process receives them. */
  #readCache(
    process: string,
    info: RequestInfo,
    answer: Promise<HttpResponse>,
  ): Promise<HttpResponse> {
    const seen = (type: string, object: unknown) => {
      if (type === 'BOOKMARK' || !isObject(object)) return;
      const kind = type === 'DELETED' ? 'drop' : 'set';
      this.#lines.push({ kind, ms: this.#ms, cache: this.#cacheOf(process, info), object });
    };
    const decoder = new TextDecoder();
    let list = '';
    const see = (chunk: Uint8Array | undefined) => {
      const text = decoder.decode(chunk);
      if (info.verb !== 'watch') {
        // A list ends with its last piece.
        list += text;
        if (chunk) return;
        const content = jsonIfValid(list);
        const items = isRecord(content) ? content['items'] : undefined;
        for (const item of Array.isArray(items) ? items : []) seen('ADDED', item);
        return;
      }
      for (const line of text.split('\n')) {
        const event = jsonIfValid(line);
        if (isRecord(event)) seen(String(event['type']), event['object']);
      }
    };
    return answer.then((response) => ({ ...response, body: observed(response.body, see) }));
  }

  #cacheOf(process: string, { group, version, resource }: RequestInfo): number {
    const name = `${process} ${group}/${resource}`;
    const known = this.#caches.get(name);
    if (known !== undefined) return known;
    const id = this.#cacheIds++;
    this.#caches.set(name, id);
    const kind = { group, version, plural: resource, metadataOnly: false };
    this.#lines.push({ kind: 'cache', ms: this.#ms, id, process, name: resource, ...kind });
    return id;
  }
}

/** Returns a body that passes each piece to `see`, and undefined at its end. */
function observed(body: ResponseBody, see: (chunk: Uint8Array | undefined) => void): ResponseBody {
  return {
    [Symbol.asyncIterator]: () => {
      const chunks = body[Symbol.asyncIterator]();
      return {
        next: () => {
          const next = chunks.next();
          next.then(
            ({ done, value }) => see(done ? undefined : value),
            () => undefined,
          );
          return next;
        },
        return: () => chunks.return?.() ?? Promise.resolve({ done: true, value: undefined }),
      };
    },
  };
}

function contentOf({ body }: HttpResponse): unknown {
  if (!(body instanceof CompleteBody)) return undefined;
  const { content } = body;
  // It can be the end of a piece, or an error that is not JSON.
  return jsonIfValid(typeof content === 'string' ? content : new TextDecoder().decode(content));
}

function isObject(value: unknown): value is KubernetesObject {
  return isRecord(value) && isRecord(value['metadata']) && 'name' in value['metadata'];
}
