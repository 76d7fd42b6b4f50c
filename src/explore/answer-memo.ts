import { CompleteBody } from '../util/complete-body.ts';
import type { StoredObject } from '../apiserver/objects/resource-definition.ts';
import type { HttpHandler, HttpRequest, HttpResponse } from '../util/http.ts';

/** Maximum number of answers that are remembered. Each has the objects that it wrote. */
const MAX_ANSWERS = 4000;

/** More promise reactions than there are between a write and the events of all watches. */
const EVENT_REACTIONS = 50;

/** Groups whose objects the server reads into a state of its own, besides the store. */
const STATEFUL = /^(apiextensions|apiregistration|rbac\.authorization)\.k8s\.io\//;

/** A write of the store. */
interface StoreWrite {
  /** Group and plural. */
  readonly resource: string;
  readonly object: StoredObject;
  readonly removed: boolean;
}

/** The answer to one request in one state. */
interface Answer {
  readonly status: number;
  readonly headers: HttpResponse['headers'];
  readonly content: string | Uint8Array;
  readonly writes: readonly StoreWrite[];
  readonly uids: number;
  readonly draws: number;
  readonly next: ServerState;
}

/** A state of the server: the writes that led to it. */
interface ServerState {
  readonly answers: Map<string, Answer>;
}

/** Dependencies of `AnswerMemo`. */
export interface AnswerMemoDeps {
  readonly handler: HttpHandler;
  /** Virtual time, which times of objects depend on. */
  readonly elapsedMs: () => number;
  /** Numbers of uids and random numbers that the server has used. */
  readonly used: { uids: number; draws: number };
  /** Uses as many random numbers. */
  readonly draw: (count: number) => void;
  /** Repeats a write of the store. */
  readonly repeat: (write: StoreWrite) => void;
}

/**
 * Remembers the answers to writes by the state of the server, and repeats their effects in the store. Schedules start from the
 * same state and differ in few steps, so most of their writes have been validated and admitted before.
 *
 * A state is the sequence of writes since the start of the schedule. An answer depends on it, on the time, on the uids and random
 * numbers that were used, and on the request. Answers are not remembered if another request ran meanwhile, if they took a turn of
 * the event loop, or if the server derives more than the stored object from a write.
 */
export class AnswerMemo {
  readonly handler: HttpHandler;
  readonly #deps: AnswerMemoDeps;
  #start = stateWithoutAnswers();
  #state = this.#start;
  #size = 0;
  /** Requests that the server executes. */
  readonly #running = new Set<object>();
  /** Writes of the only request that runs; undefined if there are others. */
  #writes: StoreWrite[] | undefined;

  constructor(deps: AnswerMemoDeps) {
    this.#deps = deps;
    this.handler = (request) => this.#handle(request);
  }

  /** Makes the current state that of the start, of which nothing is known. */
  save(): void {
    this.#start = stateWithoutAnswers();
    this.#size = 0;
    this.restart();
  }

  /** Returns to the state of the start. */
  restart(): void {
    if (this.#size > MAX_ANSWERS) {
      this.#start.answers.clear();
      this.#size = 0;
    }
    this.#state = this.#start;
    this.#running.clear();
    this.#writes = undefined;
  }

  /** Enters a state that no other schedule has. */
  leave(): void {
    this.#enter(stateWithoutAnswers());
  }

  /** Records a write of the store, before it takes effect. */
  readonly written = (resource: string, object: StoredObject, removed: boolean): void => {
    if (this.#writes && !STATEFUL.test(resource)) this.#writes.push({ resource, object, removed });
    else this.leave();
  };

  async #handle(request: HttpRequest): Promise<HttpResponse> {
    const token = {};
    this.#running.add(token);
    try {
      if (request.method === 'GET') {
        this.#writes = undefined;
        return await this.#deps.handler(request);
      }
      const response = await this.#write(request);
      // Whether it is remembered or not, the events of a write precede its response.
      for (let reactions = 0; reactions < EVENT_REACTIONS; reactions++) await Promise.resolve();
      return response;
    } finally {
      this.#running.delete(token);
    }
  }

  async #write(request: HttpRequest): Promise<HttpResponse> {
    const { handler, used } = this.#deps;
    const state = this.#state;
    const key = this.#keyOf(request);
    const known = key === undefined ? undefined : state.answers.get(key);
    if (known) return this.#repeat(known);
    const writes: StoreWrite[] = [];
    this.#writes = key === undefined ? undefined : writes;
    const before = { ...used };
    let isLate = false;
    const late = setImmediate(() => (isLate = true));
    let next: ServerState | undefined;
    try {
      const response = await handler(request);
      const { status, headers, body } = response;
      if (key === undefined || isLate || this.#writes !== writes || !(body instanceof CompleteBody))
        return response;
      next = stateWithoutAnswers();
      const uids = used.uids - before.uids;
      const draws = used.draws - before.draws;
      const answer = { status, headers, content: body.content, writes, uids, draws, next };
      state.answers.set(key, answer);
      this.#size++;
      return response;
    } finally {
      clearImmediate(late);
      if (next) this.#enter(next);
      else this.leave();
    }
  }

  /** Returns what an answer depends on besides the state; undefined if it cannot be remembered. */
  #keyOf({ method, path, headers, body = '' }: HttpRequest): string | undefined {
    if (this.#running.size > 1 || typeof body !== 'string') return undefined;
    const { used, elapsedMs } = this.#deps;
    const position = `${elapsedMs()} ${used.uids} ${used.draws}`;
    return `${position} ${method} ${path}\n${JSON.stringify(headers)}\n${body}`;
  }

  #repeat({ status, headers, content, writes, uids, draws, next }: Answer): HttpResponse {
    const { used, draw, repeat } = this.#deps;
    this.#writes = [];
    for (const write of writes) repeat(write);
    used.uids += uids;
    draw(draws);
    this.#enter(next);
    return { status, headers, body: new CompleteBody(content) };
  }

  #enter(state: ServerState): void {
    this.#state = state;
    this.#writes = undefined;
  }
}

function stateWithoutAnswers(): ServerState {
  return { answers: new Map() };
}
