import { ConnectionReset } from '../apiserver/http/faults.ts';
import { completeResponse, jsonResponse } from '../apiserver/http/response.ts';
import { faultStatus } from '../apiserver/objects/status-error.ts';
import { responseOf } from '../util/fake-fetch.ts';
import type { FakeAnswer } from '../util/fake-fetch.ts';
import type { HttpHandler, HttpRequest, HttpResponse, ResponseBody } from '../util/http.ts';
import { apiCallOf, describeEvents, isBackground, serviceCallOf } from './api-call.ts';
import type { ApiCall } from './api-call.ts';
import type { Scheduler } from './scheduler.ts';
import type { Step, StepFault, StepKind } from './step.ts';

/** `Retry-After` of rejections that a client should repeat, in seconds. */
const RETRY_AFTER_SECONDS = 1;

/** Answers a request to a service outside of the cluster: a status, a response, or the error of a failed connection. */
export type ExploredService = (request: Request) => FakeAnswer | Promise<FakeAnswer>;

/** Dependencies of `SteppedTransport`. */
export interface TransportDeps {
  readonly owner: string;
  readonly scheduler: Scheduler;
  readonly handler: HttpHandler;
  /**
   * Answers requests to services outside of the cluster.
   * @default status 200
   */
  readonly service?: ExploredService | undefined;
  /** Whether faults can strike. Otherwise only requests are steps. */
  readonly isFaulty: boolean;
  /** The revision of an older state, which first reads get; undefined for the current one. */
  readonly staleRevision: number | undefined;
  /** Ends the history, so that no watch can resume. */
  readonly expireHistory: () => void;
}

/** Connects one process with the server and other services, so that each request, response and watch event is a step. */
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
    const call = apiCallOf(request);
    const stale = this.#staleVersion(request, call);
    const isRefused = stale === 'refused';
    const sent = isRefused ? request : (stale ?? request);
    return this.#exchange(request, call, {
      rejection,
      refusal: isRefused ? 400 : undefined,
      answer: (exchange) => this.#answer(sent, call, exchange),
    });
  };

  /** The function `fetch` of the process. */
  readonly fetch: typeof globalThis.fetch = (input, init) => {
    const request = new Request(input, init);
    const { service = () => 200 } = this.#deps;
    return this.#exchange(request, serviceCallOf(request), {
      rejection: serviceRejection,
      answer: async () => responseOf(await service(request)),
    });
  };

  /** Sends a request in one step, and delivers its response in another. */
  #exchange<T>(
    { signal }: { readonly signal?: AbortSignal | undefined },
    call: ApiCall,
    { rejection: rejected, refusal, answer }: Peer<T>,
  ): Promise<T> {
    if (!this.#isOpen) return new Promise(() => undefined);
    return new Promise((resolve, reject) => {
      const exchange = new Exchange(signal, reject);
      this.#exchanges.push(exchange);
      const receive = (response: T) => {
        if (exchange.isAborted) return;
        if (!this.#deps.isFaulty) return resolve(response);
        this.#post('response', call, `response to ${call.text}`, exchange, (fault) => {
          if (fault !== undefined) exchange.lose();
          if (fault === 'reset') exchange.fail(new ConnectionReset());
          else if (fault === 'silence') this.#await(exchange);
          else resolve(response);
        });
      };
      const send = (fault?: StepFault) => {
        if (fault === 'silence') this.#await(exchange);
        else if (fault === 'reset') reject(new ConnectionReset());
        else if (typeof fault === 'number') resolve(rejected(fault));
        else if (refusal !== undefined) resolve(rejected(refusal));
        else
          answer(exchange).then(receive, (error: unknown) => {
            if (this.#isOpen) exchange.fail(error);
          });
      };
      this.#post('request', call, call.text, exchange, send);
    });
  }

  #answer(request: HttpRequest, call: ApiCall, exchange: Exchange): Promise<HttpResponse> {
    const { handler } = this.#deps;
    const { signal: _, ...sent } = request;
    if (call.info?.verb !== 'watch') return handler(sent);
    const watch = this.#openWatch(exchange);
    // An error has a body of its own, such as "404 page not found".
    return handler({ ...sent, signal: watch.signal }).then((response) =>
      response.status === 200
        ? { ...response, body: this.#events(response.body, call, exchange, watch) }
        : response,
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
    exchange.onLoss(() => watch.abort(CUT));
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

/** The other side of an exchange. */
interface Peer<T> {
  /** Returns the response to a rejected request. */
  readonly rejection: (code: number) => T;
  /** Status code with which the request is rejected. */
  readonly refusal?: number | undefined;
  /** Executes the request. */
  readonly answer: (exchange: Exchange) => Promise<T>;
}

/** A request until its client has the response, or the end of the watch. */
class Exchange {
  readonly #signal: AbortSignal | undefined;
  #listeners: (() => void)[] = [];
  /** Whether the client does not wait any more. */
  isAborted = false;
  #reject: (error: unknown) => void;
  #withdraw: () => void = () => undefined;
  #lose: () => void = () => undefined;

  constructor(signal: AbortSignal | undefined, reject: (error: unknown) => void) {
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

  /** @param lose is called when the response is lost */
  onLoss(lose: () => void): void {
    this.#lose = lose;
  }

  lose(): void {
    this.#lose();
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

/** Returns whether a rejected request can be repeated soon. */
function isTemporary(code: number): boolean {
  return code === 429 || code === 503;
}

function serviceRejection(status: number): Response {
  const headers = isTemporary(status) ? { 'retry-after': String(RETRY_AFTER_SECONDS) } : {};
  return new Response(null, { status, headers });
}

function rejection(code: number): HttpResponse {
  const repeats = isTemporary(code);
  const { status } = faultStatus(code, repeats ? RETRY_AFTER_SECONDS : undefined);
  if (!repeats) return jsonResponse(code, status);
  const response = completeResponse(code, JSON.stringify(status), 'application/json');
  return {
    ...response,
    headers: { ...response.headers, 'retry-after': String(RETRY_AFTER_SECONDS) },
  };
}
