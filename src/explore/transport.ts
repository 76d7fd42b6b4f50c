import { ConnectionReset } from '../apiserver/http/faults.ts';
import { completeResponse, jsonResponse } from '../apiserver/http/response.ts';
import { faultStatus } from '../apiserver/objects/status-error.ts';
import type { HttpHandler, HttpRequest, HttpResponse, ResponseBody } from '../util/http.ts';
import { apiCallOf, describeEvents, isBackground } from './api-call.ts';
import type { ApiCall } from './api-call.ts';
import type { Scheduler } from './scheduler.ts';
import type { Step, StepFault, StepKind } from './step.ts';

/** `Retry-After` of rejections that a client should repeat, in seconds. */
const RETRY_AFTER_SECONDS = 1;

/** Dependencies of `SteppedTransport`. */
export interface TransportDeps {
  readonly owner: string;
  readonly scheduler: Scheduler;
  readonly handler: HttpHandler;
  /** Whether faults can strike. Otherwise only requests are steps. */
  readonly isFaulty: boolean;
  /** The revision of an older state, which first reads get; undefined for the current one. */
  readonly staleRevision: number | undefined;
  /** Ends the history, so that no watch can resume. */
  readonly expireHistory: () => void;
}

/** Connects one process with the server, so that each request, response and watch event is a step. */
export class SteppedTransport {
  readonly #deps: TransportDeps;
  readonly #watches = new Set<AbortController>();
  readonly #exchanges: Exchange[] = [];
  #isOpen = true;

  constructor(deps: TransportDeps) {
    this.#deps = deps;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Breaks all connections, without a sign to the process. */
  cut(): void {
    this.#isOpen = false;
    for (const exchange of this.#exchanges) exchange.leave();
    for (const watch of this.#watches) watch.abort(CUT);
    this.#deps.scheduler.withdrawAllOf(this.#deps.owner);
  }

  readonly handle: HttpHandler = (request) => {
    if (!this.#isOpen) return new Promise(() => undefined);
    const call = apiCallOf(request);
    const stale = this.#staleVersion(request, call);
    return new Promise((resolve, reject) => {
      const exchange = new Exchange(request, reject);
      this.#exchanges.push(exchange);
      const send = (fault?: StepFault) => {
        if (fault === 'silence') this.#await(exchange);
        else if (fault === 'reset') reject(new ConnectionReset());
        else if (typeof fault === 'number') resolve(rejection(fault));
        else if (stale === 'refused') resolve(rejection(400));
        else this.#execute(stale ?? request, call, exchange, resolve);
      };
      this.#post('request', call, call.text, exchange, send);
    });
  };

  #execute(
    request: HttpRequest,
    call: ApiCall,
    exchange: Exchange,
    resolve: (response: HttpResponse) => void,
  ): void {
    const watch = call.info?.verb === 'watch' ? this.#openWatch(exchange) : undefined;
    const { signal: _, ...sent } = request;
    const answer = this.#deps.handler(watch ? { ...sent, signal: watch.signal } : sent);
    answer.then(
      (response) => {
        if (exchange.isAborted) return;
        // An error has a body of its own, such as "404 page not found".
        const received =
          watch && response.status === 200
            ? { ...response, body: this.#events(response.body, call, exchange, watch) }
            : response;
        if (!this.#deps.isFaulty) return resolve(received);
        this.#post('response', call, `response to ${call.text}`, exchange, (fault) => {
          if (fault !== undefined) watch?.abort(CUT);
          if (fault === 'reset') exchange.fail(new ConnectionReset());
          else if (fault === 'silence') this.#await(exchange);
          else resolve(received);
        });
      },
      (error: unknown) => {
        if (this.#isOpen) exchange.fail(error);
      },
    );
  }

  /** Waits until the client gives up. */
  #await(exchange: Exchange): void {
    exchange.waits(this.#deps.scheduler.awaitTimeout(this.#deps.owner));
  }

  #openWatch(exchange: Exchange): AbortController {
    const watch = new AbortController();
    this.#watches.add(watch);
    watch.signal.addEventListener('abort', () => this.#watches.delete(watch), { once: true });
    exchange.onAbort((reason) => watch.abort(reason));
    return watch;
  }

  #events(
    body: ResponseBody,
    call: ApiCall,
    exchange: Exchange,
    watch: AbortController,
  ): ResponseBody {
    if (!this.#deps.isFaulty) return body;
    const chunks = body[Symbol.asyncIterator]();
    const next = () =>
      new Promise<IteratorResult<Uint8Array>>((resolve, reject) => {
        exchange.awaits(reject);
        const deliver = (result: IteratorResult<Uint8Array>) => {
          if (!this.#isOpen) return;
          if (result.done) return resolve(result);
          const label = `event of ${call.info?.resource}: ${describeEvents(result.value)}`;
          this.#post('event', call, label, exchange, (fault) => {
            if (fault === undefined) return resolve(result);
            watch.abort(new ConnectionReset());
            if (fault !== 'expire') return reject(new ConnectionReset());
            this.#deps.expireHistory();
            return resolve({ done: false, value: EXPIRED });
          });
        };
        chunks.next().then(deliver, (error: unknown) => this.#isOpen && reject(error));
      });
    const leave = () => {
      watch.abort(CUT);
      return Promise.resolve({ done: true as const, value: undefined });
    };
    return { [Symbol.asyncIterator]: () => ({ next, return: leave }) };
  }

  #post(
    kind: StepKind,
    call: ApiCall,
    label: string,
    exchange: Exchange,
    run: (fault?: StepFault) => void,
  ): void {
    if (!this.#isOpen) return;
    const { owner, scheduler } = this.#deps;
    const isFaulty = this.#deps.isFaulty && !isBackground(call);
    const step: Step = { kind, owner, label, call, isFaulty, run };
    // A view that is behind stays so for a while.
    const isBehind = kind === 'event' && this.#deps.staleRevision !== undefined;
    if (isBehind) scheduler.delay(step, () => this.#isOpen);
    else scheduler.post(step);
    // A write has left the process, so it arrives even if the process does not wait for the response any more.
    const isSent = kind === 'request' && call.isWrite;
    exchange.waits(() => isSent || scheduler.withdraw(step));
  }

  /** Returns the first read of a resource at the older state; `refused` if the client must list instead. */
  #staleVersion(request: HttpRequest, { info }: ApiCall): HttpRequest | 'refused' | undefined {
    const { staleRevision } = this.#deps;
    if (staleRevision === undefined || info?.query.get('resourceVersion') !== '0') return undefined;
    if (info.verb === 'watch') return 'refused';
    if (info.verb !== 'list') return undefined;
    const version = `resourceVersion=${staleRevision}&resourceVersionMatch=Exact`;
    return { ...request, path: request.path.replace('resourceVersion=0', version) };
  }
}

/** A request until its client has the response, or the end of the watch. */
class Exchange {
  readonly #signal: AbortSignal | undefined;
  #listeners: (() => void)[] = [];
  /** Whether the client does not wait any more. */
  isAborted = false;
  #reject: (error: unknown) => void;
  #withdraw: () => void = () => undefined;

  constructor({ signal }: HttpRequest, reject: (error: unknown) => void) {
    this.#signal = signal;
    this.#reject = reject;
    this.onAbort((reason) => {
      this.isAborted = true;
      this.#withdraw();
      this.#reject(reason);
    });
  }

  onAbort(callback: (reason: unknown) => void): void {
    const signal = this.#signal;
    if (!signal) return;
    if (signal.aborted) return callback(signal.reason);
    const listener = () => callback(signal.reason);
    this.#listeners.push(listener);
    signal.addEventListener('abort', listener, { once: true });
  }

  /** Removes the listeners, which would keep a signal of `AbortSignal.any`, and so the process, in memory. */
  leave(): void {
    for (const listener of this.#listeners) this.#signal?.removeEventListener('abort', listener);
    this.#listeners = [];
  }

  /** @param withdraw removes the pending step */
  waits(withdraw: () => void): void {
    this.#withdraw = withdraw;
  }

  /** @param reject rejects what the client waits for now */
  awaits(reject: (error: unknown) => void): void {
    this.#reject = reject;
  }

  fail(error: unknown): void {
    this.#reject(error);
  }
}

/** Reason of broken watches. The default reason, a DOMException with a stack, costs more than a request. */
const CUT = new ConnectionReset();

const EXPIRED = new TextEncoder().encode(
  `${JSON.stringify({ type: 'ERROR', object: faultStatus(410).status })}\n`,
);

function rejection(code: number): HttpResponse {
  const retries = code === 429 || code === 503;
  const { status } = faultStatus(code, retries ? RETRY_AFTER_SECONDS : undefined);
  if (!retries) return jsonResponse(code, status);
  const response = completeResponse(code, JSON.stringify(status), 'application/json');
  return {
    ...response,
    headers: { ...response.headers, 'retry-after': String(RETRY_AFTER_SECONDS) },
  };
}
