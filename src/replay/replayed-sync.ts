import { ApiError } from '../api/api-error.ts';
import { equalJson } from '../api/equal.ts';
import type { HttpResponse } from '../util/http.ts';
import { textIn } from '../util/json-value.ts';
import { isRecord } from '../util/values.ts';
import { compareEndings, compareWrites, eventWrite, isEqual, requestWrite } from './comparison.ts';
import type { FieldDifference, Write, WriteDifference } from './comparison.ts';
import { CompleteBody } from '../util/complete-body.ts';
import { jsonAnswer } from './exchange.ts';
import type {
  EndLine,
  Ending,
  EventSummary,
  FailureLine,
  RequestLine,
  ResponseLine,
  SyncLine,
} from './format.ts';
import { parseApiPath } from './redaction.ts';
import type { ReplayCaches } from './replay-caches.ts';

/** A sync whose replay differs from the recording. */
export interface SyncDifference {
  readonly controller: string;
  readonly key: string;
  /** Number of the sync in the recording. */
  readonly sync: number;
  /** Wall-clock time of its start. */
  readonly at: Date;
  /** Why the key was synced. */
  readonly causes: readonly string[];
  readonly writes: readonly WriteDifference[];
  /** How it ended, if that differs. */
  readonly result?: Omit<FieldDifference, 'field'> | undefined;
  /** Reads that the recording does not have. They were answered from the recorded caches. */
  readonly reads: readonly string[];
}

interface RecordedRequest {
  readonly line: RequestLine;
  readonly write: Write;
  readonly answer: PromiseWithResolvers<ResponseLine | FailureLine>;
  isUsed: boolean;
}

/** A request of the replayed program. */
export interface ReplayedRequest {
  readonly method: string;
  readonly path: string;
  /** The body as it would have been recorded. */
  readonly body: unknown;
  /** The body itself. */
  readonly sent: unknown;
}

/** One sync of the recording and of the replay. Answers requests, and collects what is written. */
export class ReplayedSync {
  readonly line: SyncLine;
  readonly #end: EndLine | undefined;
  readonly #requests: readonly RecordedRequest[];
  readonly #recordedEvents: EventSummary[] = [];
  readonly #writes: Write[] = [];
  readonly #reads: string[] = [];
  readonly #taken = { now: 0, random: 0 };
  #ending: Ending | undefined;
  #created = 0;
  /** Whether the sync called something that the recording does not have. */
  isUndecided = false;

  constructor(line: SyncLine, end: EndLine | undefined, requests: readonly RequestLine[]) {
    this.line = line;
    this.#end = end;
    this.#requests = requests.map((each) => ({
      line: each,
      write: requestWrite(each.method, each.path, each.body),
      answer: Promise.withResolvers(),
      isUsed: false,
    }));
  }

  /** Whether the recording has its end, so that it can be compared. */
  get isComplete(): boolean {
    return this.#end !== undefined && !('aborted' in this.#end.ending);
  }

  get hasEnded(): boolean {
    return this.#ending !== undefined;
  }

  /** Returns the next recorded value of the wall clock, or `ms` if the recording has none. */
  now(ms: number): number {
    const value = this.#end?.now[this.#taken.now++];
    return value === undefined || this.hasEnded ? ms : this.line.atMs + value;
  }

  random(value: number): number {
    const recorded = this.#end?.random[this.#taken.random++];
    return recorded === undefined || this.hasEnded ? value : recorded;
  }

  ended(ending: Ending): void {
    this.#ending = ending;
  }

  /** Records an event of the recording. */
  recordedEvent(event: EventSummary): void {
    this.#recordedEvents.push(event);
  }

  /** Records an event of the replay. */
  event(event: EventSummary): void {
    this.#writes.push(eventWrite(event));
  }

  /** The recording has reached the end of a request. */
  answered(line: ResponseLine | FailureLine): void {
    this.#requests.find((each) => each.line.request === line.request)?.answer.resolve(line);
  }

  /** Answers a request as in the recording, or else from the caches. */
  async answer(request: ReplayedRequest, caches: ReplayCaches): Promise<HttpResponse> {
    const { method, path, body } = request;
    const write = requestWrite(method, path, body);
    const isWrite = method !== 'GET';
    if (isWrite) this.#writes.push(write);
    const free = this.#requests.filter(({ isUsed }) => !isUsed);
    const recorded =
      free.find((each) => isEqual(each.write, write)) ??
      free.find((each) => each.write.identity === write.identity) ??
      (isWrite ? undefined : this.#requests.find((each) => isEqual(each.write, write)));
    if (recorded) {
      recorded.isUsed = true;
      return responseOf(await recorded.answer.promise);
    }
    if (!isWrite) this.#reads.push(write.text);
    return this.#invented(request, caches);
  }

  /** Compares the sync; undefined if it does not differ. */
  compare(): SyncDifference | undefined {
    const { controller, key, sync, atMs, causes } = this.line;
    if (!this.#end) return undefined;
    const recorded = [
      ...this.#requests.filter(({ line }) => line.method !== 'GET').map(({ write }) => write),
      ...this.#recordedEvents.map(eventWrite),
    ];
    const writes = compareWrites(recorded, this.#writes);
    const result = compareEndings(this.#end.ending, this.#ending);
    if (writes.length === 0 && !result) return undefined;
    return {
      controller,
      key,
      sync,
      at: new Date(atMs),
      causes: causes.map(({ text }) => text),
      writes,
      result,
      reads: this.#reads,
    };
  }

  /** Answers a request that the recording does not have. */
  #invented({ method, path, sent }: ReplayedRequest, caches: ReplayCaches): HttpResponse {
    const target = parseApiPath(path);
    const known = target && caches.find(target);
    const body = isRecord(sent) ? sent : {};
    switch (method) {
      case 'GET':
        if (known) return jsonAnswer(200, known);
        if (target && target.name === undefined) {
          return jsonAnswer(200, {
            apiVersion: 'v1',
            kind: 'List',
            metadata: { resourceVersion: '1' },
            items: caches.all(target),
          });
        }
        return jsonAnswer(404, {
          apiVersion: 'v1',
          kind: 'Status',
          status: 'Failure',
          reason: 'NotFound',
          code: 404,
          message: `${path} is not in the recording`,
        });
      case 'DELETE':
        return jsonAnswer(200, { apiVersion: 'v1', kind: 'Status', status: 'Success' });
      case 'POST':
        return jsonAnswer(201, this.#newObject(body));
      case 'PUT':
        return jsonAnswer(200, body);
      default:
        return jsonAnswer(200, merged(known ?? this.#newObject(body), body));
    }
  }

  #newObject(body: Readonly<Record<string, unknown>>): Record<string, unknown> {
    const given = isRecord(body['metadata']) ? body['metadata'] : {};
    const id = `replayed-${this.line.sync}-${++this.#created}`;
    const name = textIn(given, 'name') || `${textIn(given, 'generateName')}${id}`;
    const creationTimestamp = new Date(this.line.atMs).toISOString().replace(/\.\d+Z$/, 'Z');
    const metadata = { ...given, name, uid: id, resourceVersion: '1', creationTimestamp };
    return { ...body, metadata };
  }
}

function responseOf(line: ResponseLine | FailureLine): HttpResponse {
  if (line.kind === 'failure') {
    throw new ApiError({ kind: line.error as ApiError['kind'], message: line.message });
  }
  const { status, headers, body } = line;
  const bytes = Buffer.from(body === undefined ? '' : JSON.stringify(body));
  return { status, headers, body: new CompleteBody(bytes) };
}

/** Applies a merge patch: the likely result of any patch. */
function merged(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  const result: Record<string, unknown> = isRecord(target) ? { ...target } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else if (!equalJson(result[name], value)) result[name] = merged(result[name], value);
  }
  return result;
}
