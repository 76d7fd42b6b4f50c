import { isApiError } from '../api/api-error.ts';
import { PODS } from '../api/builtin.ts';
import type { Pod } from '../api/builtin.ts';
import { objectKey } from '../api/object-key.ts';
import type { ObjectKey } from '../api/object-key.ts';
import type { DeepReadonly } from '../api/object.ts';
import { isFinished } from '../api/workloads.ts';
import { Controller } from '../manager/controller.ts';
import type { SyncContext } from '../manager/controller.ts';
import type { Clock } from '../util/clock.ts';
import { goQuote } from '../util/go-quote.ts';
import { untilAborted } from '../util/abort.ts';
import { done, requeueAfter } from '../workqueue/outcome.ts';
import type { Outcome } from '../workqueue/outcome.ts';
import type { ClusterDeps } from './resource-monitors.ts';
import { lifeAt, loggedRun, printed, programOf } from './fake-container.ts';
import { podStatus, restartPolicyOf } from './pod-status.ts';
import type { HttpHandler, HttpRequest, HttpResponse } from '../util/http.ts';
import type { LogOptions } from './fake-container.ts';

/** Options of `FakeKubelet`. */
export interface FakeKubeletOptions {
  readonly nodeName: string;
  /**
   * From seeing a Pod until its containers run, in milliseconds.
   * @default 0
   */
  readonly startupMs?: number | undefined;
  /**
   * From seeing a Pod's deletion until it is gone, in milliseconds; its own grace period if that is
   * less. kubectl waits for the deletion of a name: it can miss a Pod that is replaced within moments,
   * and then waits for ever. Real kubelets are never that quick.
   * @default 1000
   */
  readonly terminationMs?: number | undefined;
}

/**
 * Plays the kubelet of one node: Pods bound to it run, get an address and become ready; containers
 * whose command it understands end as that would, and print what it would; deleted Pods go away
 * after their grace. It executes nothing.
 *
 * `api` is where an API server asks for logs.
 */
export function fakeKubelet(
  deps: ClusterDeps,
  options: FakeKubeletOptions,
): { readonly controller: Controller; readonly api: HttpHandler } {
  const pods = deps.informers.for(PODS);
  const kubelet = new FakeKubelet(deps.clock, options);
  const controller = new Controller(deps, {
    name: 'fake-kubelet',
    kind: PODS.kind,
    concurrency: 10,
    sync: async (key, context) => {
      const pod = pods.lister.get(key);
      if (pod?.spec?.nodeName === options.nodeName) return kubelet.sync(key, pod, context);
      kubelet.forget(key);
      return done();
    },
  }).for(pods);
  const readLog = (request: LogRequest) => {
    const key = objectKey(request.namespace, request.pod);
    const pod = pods.lister.get(key);
    return pod?.spec?.nodeName === options.nodeName
      ? kubelet.readLog(key, pod, request)
      : refused(404, `pod ${goQuote(request.pod)} does not exist\n`);
  };
  return { controller, api: kubeletApi(readLog, () => deps.clock.now()) };
}

function refused(status: 400 | 404, message: string): LogAnswer {
  return { kind: 'refused', status, message };
}

/** What a Pod is in, since when. */
interface Stage {
  readonly name: 'starting' | 'running' | 'terminating';
  /** `Clock.monotonic()`. */
  readonly sinceMs: number;
}

/** What the kubelet itself knows of a Pod. */
interface Known {
  readonly uid: string;
  /** Timestamps of objects have whole seconds; this is when the kubelet saw it. */
  stage: Stage | undefined;
  /** The answer to the write that tells it may be lost. */
  address: string | undefined;
  /** Aborted when the Pod is gone, for those who follow its log. */
  readonly gone: AbortController;
}

class FakeKubelet {
  readonly #clock: Clock;
  readonly #startupMs: number;
  readonly #terminationMs: number;
  readonly #known = new Map<ObjectKey, Known>();
  #addresses = 0;

  constructor(clock: Clock, { startupMs = 0, terminationMs = 1000 }: FakeKubeletOptions) {
    this.#clock = clock;
    this.#startupMs = startupMs;
    this.#terminationMs = terminationMs;
  }

  async sync(key: ObjectKey, pod: DeepReadonly<Pod>, context: SyncContext): Promise<Outcome> {
    const known = this.#know(key, pod);
    if (pod.metadata.deletionTimestamp !== undefined) {
      const graceMs = (pod.metadata.deletionGracePeriodSeconds ?? 0) * 1000;
      const waitMs = this.#left(known, 'terminating', Math.min(this.#terminationMs, graceMs));
      if (waitMs > 0) return requeueAfter(waitMs);
      await this.#remove(pod, context);
      return done();
    }
    if (isFinished(pod)) return done();
    if ((pod.status?.phase ?? 'Pending') === 'Pending') {
      const waitMs = this.#left(known, 'starting', this.#startupMs);
      if (waitMs > 0) return requeueAfter(waitMs);
    }
    return this.#run(known, pod, context);
  }

  /** The Pod is gone, or another node's. */
  forget(key: ObjectKey): void {
    this.#known.get(key)?.gone.abort();
    this.#known.delete(key);
  }

  readLog(key: ObjectKey, pod: DeepReadonly<Pod>, request: LogRequest): LogAnswer {
    const { options, follow, signal } = request;
    const which = `container ${goQuote(request.container)} in pod ${goQuote(request.pod)}`;
    const container = pod.spec?.containers.find(({ name }) => name === request.container);
    if (!container) return refused(400, `${which} is not available`);
    const known = this.#know(key, pod);
    const elapsedMs = this.#elapsed(known, pod);
    if (elapsedMs === undefined) {
      return refused(400, `${which} is waiting to start: ContainerCreating`);
    }
    const program = programOf(container, pod.metadata.annotations);
    const { life, changesAtMs } = lifeAt(program, restartPolicyOf(pod), elapsedMs);
    const run = loggedRun(life, options.previous);
    if (!run) return refused(400, `previous terminated ${which} not found`);
    const printedMs = this.#clock.now() - elapsedMs + run.fromMs;
    const goesOn = follow && !options.previous && life.kind === 'running';
    return {
      kind: 'log',
      body: logBody(printed(program, printedMs, options), async () => {
        if (goesOn) await this.#untilOver(known, (changesAtMs ?? Infinity) - elapsedMs, signal);
        signal?.throwIfAborted();
      }),
    };
  }

  /** Of this Pod, not of one of its name that was there before. */
  #know(key: ObjectKey, { metadata: { uid } }: DeepReadonly<Pod>): Known {
    const known = this.#known.get(key);
    if (known?.uid === uid) return known;
    this.forget(key);
    const unknown = { uid, stage: undefined, address: undefined, gone: new AbortController() };
    this.#known.set(key, unknown);
    return unknown;
  }

  /** How long the Pod has run, in milliseconds; undefined if it was not started. */
  #elapsed({ stage }: Known, { status }: DeepReadonly<Pod>): number | undefined {
    if (stage?.name === 'running') return this.#clock.monotonic() - stage.sinceMs;
    // Not by this kubelet, or it is going away: the Pod's own word, to the second.
    const startedMs = Date.parse(status?.startTime ?? '');
    return Number.isNaN(startedMs) ? undefined : Math.max(0, this.#clock.now() - startedMs);
  }

  /** Resolves after `ms`, when the Pod is gone, or when `signal` aborts. */
  async #untilOver({ gone }: Known, ms: number, signal: AbortSignal | undefined): Promise<void> {
    const over = signal ? AbortSignal.any([signal, gone.signal]) : gone.signal;
    await (ms === Infinity ? untilAborted(over) : this.#clock.sleep(ms, over));
  }

  /** How much of `totalMs` the Pod still has to wait in this stage. */
  #left(known: Known, name: Stage['name'], totalMs: number): number {
    return this.#since(known, name, this.#clock.monotonic()) + totalMs - this.#clock.monotonic();
  }

  /** When the Pod entered the stage: `sinceMs` if it was not known to be in it. */
  #since(known: Known, name: Stage['name'], sinceMs: number): number {
    if (known.stage?.name !== name) known.stage = { name, sinceMs };
    return known.stage.sinceMs;
  }

  async #remove(pod: DeepReadonly<Pod>, { client, signal }: SyncContext): Promise<void> {
    const { name, namespace, uid } = pod.metadata;
    try {
      await client.delete(PODS, { name, namespace }, { uid, gracePeriodSeconds: 0, signal });
    } catch (error) {
      if (!isApiError(error, 'notFound', 'conflict')) throw error;
    }
  }

  /** Brings the Pod's status to what its containers are by now. */
  async #run(
    known: Known,
    pod: DeepReadonly<Pod>,
    { client, signal }: SyncContext,
  ): Promise<Outcome> {
    const { name, namespace, uid } = pod.metadata;
    const now = this.#clock.now();
    const monotonic = this.#clock.monotonic();
    const sinceMs = monotonic - (this.#elapsed(known, pod) ?? 0);
    const elapsedMs = monotonic - this.#since(known, 'running', sinceMs);
    const { status, nextMs } = podStatus(pod, {
      startedMs: now - elapsedMs,
      elapsedMs,
      address: pod.status?.podIP ?? (known.address ??= this.#nextAddress()),
    });
    if (pod.status?.phase !== status.phase || !isTold(pod, status)) {
      try {
        await client.patch(
          PODS,
          { name, namespace },
          { type: 'strategic', body: { metadata: { uid }, status } },
          { subresource: 'status', fieldManager: 'kubelet', signal },
        );
      } catch (error) {
        if (!isApiError(error, 'notFound', 'conflict')) throw error;
      }
    }
    return nextMs === undefined ? done() : requeueAfter(nextMs);
  }

  /** Addresses of 10.244.0.0/16 in turn. */
  #nextAddress(): string {
    const host = (this.#addresses++ % 65_000) + 2;
    return `10.244.${host >> 8}.${host & 255}`;
  }
}

async function* logBody(
  bytes: Uint8Array,
  end: () => Promise<void>,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (bytes.length > 0) yield bytes;
  await end();
}

/** True if the Pod says of its containers what `status` says. */
function isTold(pod: DeepReadonly<Pod>, { containerStatuses = [] }: PodStatus): boolean {
  const told = pod.status?.containerStatuses ?? [];
  return containerStatuses.every(({ name, restartCount, state = {} }) => {
    const before = told.find((container) => container.name === name);
    const [kind] = Object.keys(state);
    return (
      before?.restartCount === restartCount && kind !== undefined && kind in (before.state ?? {})
    );
  });
}

type PodStatus = NonNullable<Pod['status']>;

/** The log of one container. */
export interface LogRequest {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly options: LogOptions;
  /** Go on until the container ends. */
  readonly follow: boolean;
  readonly signal: AbortSignal | undefined;
}

/** What a kubelet says to such a request; a refusal is in its words. */
export type LogAnswer =
  | { readonly kind: 'log'; readonly body: AsyncIterable<Uint8Array> }
  | { readonly kind: 'refused'; readonly status: 400 | 404; readonly message: string };

/**
 * The HTTP API of a kubelet, which API servers forward to: `GET /containerLogs/NAMESPACE/POD/CONTAINER`.
 *
 * @param now milliseconds since the epoch
 */
export function kubeletApi(
  readLog: (request: LogRequest) => LogAnswer,
  now: () => number,
): HttpHandler {
  return async (request) => {
    const logRequest = logRequestOf(request, now());
    if (!logRequest) return response(404, once('404 page not found\n'));
    const answer = readLog(logRequest);
    if (answer.kind === 'refused') return response(answer.status, once(answer.message));
    return response(200, answer.body);
  };
}

/** Undefined if it is about something else. */
function logRequestOf({ method, path, signal }: HttpRequest, now: number): LogRequest | undefined {
  const { pathname, searchParams } = new URL(path, 'https://kubelet');
  const [, root, namespace, pod, container, ...rest] = pathname.split('/');
  if (method !== 'GET' || root !== 'containerLogs' || rest.length > 0) return undefined;
  if (!namespace || !pod || !container) return undefined;
  const flag = (name: string) => searchParams.get(name) === 'true';
  const number = (name: string) => {
    const text = searchParams.get(name);
    return text === null ? undefined : Number(text);
  };
  const sinceTime = searchParams.get('sinceTime');
  const sinceSeconds = number('sinceSeconds');
  const sinceMs = sinceSeconds === undefined ? undefined : now - sinceSeconds * 1000;
  return {
    namespace,
    pod,
    container,
    follow: flag('follow'),
    signal,
    options: {
      previous: flag('previous'),
      timestamps: flag('timestamps'),
      sinceMs: sinceTime === null ? sinceMs : Date.parse(sinceTime),
      tailLines: number('tailLines'),
      limitBytes: number('limitBytes'),
    },
  };
}

function response(status: number, body: AsyncIterable<Uint8Array>): HttpResponse {
  return { status, headers: { 'content-type': 'text/plain' }, body };
}

async function* once(text: string): AsyncGenerator<Uint8Array, void, undefined> {
  yield new TextEncoder().encode(text);
}
