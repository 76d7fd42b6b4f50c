import { isApiError } from '../api/api-error.ts';
import { PODS } from '../api/builtin.ts';
import type { Pod } from '../api/builtin.ts';
import { objectKey } from '../api/object-key.ts';
import type { ObjectKey } from '../api/object-key.ts';
import type { DeepReadonly } from '../api/object.ts';
import { isFinished } from '../api/workloads.ts';
import { Controller } from '../manager/controller.ts';
import type { SyncContext } from '../manager/controller-options.ts';
import type { Clock } from '../util/clock.ts';
import { goQuote } from '../util/go-quote.ts';
import { untilAborted } from '../util/abort.ts';
import { done, requeueAfter } from '../workqueue/outcome.ts';
import type { Outcome } from '../workqueue/outcome.ts';
import type { ClusterDeps } from './resource-monitors.ts';
import { containerStateAt, loggedRun, logOutput, programOf } from './fake-container.ts';
import { podStatus, restartPolicyOf } from './pod-status.ts';
import type { HttpHandler, HttpRequest, HttpResponse } from '../util/http.ts';
import type { LogOptions } from './fake-container.ts';

/** Options of `FakeKubelet`. */
export interface FakeKubeletOptions {
  readonly nodeName: string;
  /**
   * Time from the first observation of a Pod until its containers run, in milliseconds.
   * @default 0
   */
  readonly startupMs?: number | undefined;
  /**
   * Maximum time from the deletion of a Pod until it is removed, in milliseconds. A shorter grace
   * period of the Pod applies. The default is not 0, because `kubectl delete` waits by name and can
   * miss a Pod that is replaced immediately.
   * @default 1000
   */
  readonly terminationMs?: number | undefined;
}

/**
 * Simulated kubelet of one node. Pods bound to the node get an address, run and become ready. Containers
 * with a supported command exit and log like that command. Deleted Pods are removed after their grace
 * period. Nothing is executed.
 *
 * An API server forwards requests for logs to `api`.
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
      : logError(404, `pod ${goQuote(request.pod)} does not exist\n`);
  };
  return { controller, api: kubeletApi(readLog, () => deps.clock.now()) };
}

function logError(status: 400 | 404, message: string): LogResponse {
  return { kind: 'error', status, message };
}

/** Stage of a Pod, with its start. */
interface Stage {
  readonly name: 'starting' | 'running' | 'terminating';
  /** `Clock.monotonic()`. */
  readonly sinceMs: number;
}

/** State of a Pod in the kubelet. */
interface KnownPod {
  readonly uid: string;
  /** Measured here, because timestamps of objects have a resolution of one second. */
  stage: Stage | undefined;
  /** Kept here, because the response to the status update can be lost. */
  address: string | undefined;
  /** Aborted when the Pod is removed, which ends followed logs. */
  readonly gone: AbortController;
}

class FakeKubelet {
  readonly #clock: Clock;
  readonly #startupMs: number;
  readonly #terminationMs: number;
  readonly #known = new Map<ObjectKey, KnownPod>();
  #addresses = 0;

  constructor(clock: Clock, { startupMs = 0, terminationMs = 1000 }: FakeKubeletOptions) {
    this.#clock = clock;
    this.#startupMs = startupMs;
    this.#terminationMs = terminationMs;
  }

  async sync(key: ObjectKey, pod: DeepReadonly<Pod>, context: SyncContext): Promise<Outcome> {
    const known = this.#stateOf(key, pod);
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
    return this.#updateStatus(known, pod, context);
  }

  /** Forgets a Pod that was removed or belongs to another node. */
  forget(key: ObjectKey): void {
    this.#known.get(key)?.gone.abort();
    this.#known.delete(key);
  }

  readLog(key: ObjectKey, pod: DeepReadonly<Pod>, request: LogRequest): LogResponse {
    const { options, follow, signal } = request;
    const description = `container ${goQuote(request.container)} in pod ${goQuote(request.pod)}`;
    const container = pod.spec?.containers.find(({ name }) => name === request.container);
    if (!container) return logError(400, `${description} is not available`);
    const known = this.#stateOf(key, pod);
    const elapsedMs = this.#elapsed(known, pod);
    if (elapsedMs === undefined) {
      return logError(400, `${description} is waiting to start: ContainerCreating`);
    }
    const program = programOf(container, pod.metadata.annotations);
    const { state, changesAtMs } = containerStateAt(program, restartPolicyOf(pod), elapsedMs);
    const run = loggedRun(state, options.previous);
    if (!run) return logError(400, `previous terminated ${description} not found`);
    const startedMs = this.#clock.now() - elapsedMs + run.fromMs;
    const isFollowed = follow && !options.previous && state.kind === 'running';
    return {
      kind: 'log',
      body: logBody(logOutput(program, startedMs, options), async () => {
        if (isFollowed) await this.#untilOver(known, (changesAtMs ?? Infinity) - elapsedMs, signal);
        signal?.throwIfAborted();
      }),
    };
  }

  /** Returns the state of this Pod, not of an earlier Pod with the same name. */
  #stateOf(key: ObjectKey, { metadata: { uid } }: DeepReadonly<Pod>): KnownPod {
    const known = this.#known.get(key);
    if (known?.uid === uid) return known;
    this.forget(key);
    const added = { uid, stage: undefined, address: undefined, gone: new AbortController() };
    this.#known.set(key, added);
    return added;
  }

  /** Returns how long the Pod has run, in milliseconds, or undefined if it was not started. */
  #elapsed({ stage }: KnownPod, { status }: DeepReadonly<Pod>): number | undefined {
    if (stage?.name === 'running') return this.#clock.monotonic() - stage.sinceMs;
    // Another process started the Pod, or it is terminating: use its start time.
    const startedMs = Date.parse(status?.startTime ?? '');
    return Number.isNaN(startedMs) ? undefined : Math.max(0, this.#clock.now() - startedMs);
  }

  /** Resolves after `ms`, when the Pod is removed, or when `signal` aborts. */
  async #untilOver({ gone }: KnownPod, ms: number, signal: AbortSignal | undefined): Promise<void> {
    const over = signal ? AbortSignal.any([signal, gone.signal]) : gone.signal;
    await (ms === Infinity ? untilAborted(over) : this.#clock.sleep(ms, over));
  }

  /** Returns the remaining part of `totalMs` in this stage. */
  #left(known: KnownPod, name: Stage['name'], totalMs: number): number {
    return this.#since(known, name, this.#clock.monotonic()) + totalMs - this.#clock.monotonic();
  }

  /** Returns when the Pod entered the stage; enters it at `sinceMs` if it is in another stage. */
  #since(known: KnownPod, name: Stage['name'], sinceMs: number): number {
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

  /** Updates the status of the Pod from the states of its containers. */
  async #updateStatus(
    known: KnownPod,
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
    if (pod.status?.phase !== status.phase || !hasContainerStates(pod, status)) {
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

  /** Returns the next address of 10.244.0.0/16. */
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

/** Returns whether the Pod has the container states of `status`. */
function hasContainerStates(
  pod: DeepReadonly<Pod>,
  { containerStatuses = [] }: PodStatus,
): boolean {
  const current = pod.status?.containerStatuses ?? [];
  return containerStatuses.every(({ name, restartCount, state = {} }) => {
    const before = current.find((container) => container.name === name);
    const [kind] = Object.keys(state);
    return (
      before?.restartCount === restartCount && kind !== undefined && kind in (before.state ?? {})
    );
  });
}

type PodStatus = NonNullable<Pod['status']>;

/** Request for the log of a container. */
export interface LogRequest {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly options: LogOptions;
  /** Whether the response continues until the container exits. */
  readonly follow: boolean;
  readonly signal: AbortSignal | undefined;
}

/** Response to a log request. Error messages are those of kubelets. */
export type LogResponse =
  | { readonly kind: 'log'; readonly body: AsyncIterable<Uint8Array> }
  | { readonly kind: 'error'; readonly status: 400 | 404; readonly message: string };

/**
 * HTTP API of a kubelet, to which API servers forward: `GET /containerLogs/NAMESPACE/POD/CONTAINER`.
 *
 * @param now milliseconds since the epoch
 */
export function kubeletApi(
  readLog: (request: LogRequest) => LogResponse,
  now: () => number,
): HttpHandler {
  return async (request) => {
    const logRequest = logRequestOf(request, now());
    if (!logRequest) return response(404, once('404 page not found\n'));
    const log = readLog(logRequest);
    if (log.kind === 'error') return response(log.status, once(log.message));
    return response(200, log.body);
  };
}

/** Returns undefined for other requests. */
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
