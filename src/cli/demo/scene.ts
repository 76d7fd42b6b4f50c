import { EVENTS, PODS } from '../../api/builtin.ts';
import type { Event, Pod } from '../../api/builtin.ts';
import { COUNTS } from '../../api/generated/count.ts';
import type { Count } from '../../api/generated/count.ts';
import type { KubernetesObject } from '../../api/object.ts';
import type { Resource } from '../../api/resource.ts';
import type { Client } from '../../client/client.ts';
import type { Clock } from '../../util/clock.ts';
import { runAll } from '../../util/run-all.ts';
import type { Runnable } from '../../util/runnable.ts';

export interface SceneDeps {
  readonly client: Pick<Client, 'watch'>;
  readonly clock: Clock;
  /** Told of each change in words. */
  readonly onChange: (text: string) => void;
}

/** Waits for a state of things this long, in milliseconds. */
const PATIENCE_MS = 10_000;

/**
 * The objects of one namespace as plain watches tell them: an observer that owes nothing to the
 * caches of the daemon it looks at.
 */
export class Scene implements Runnable {
  readonly name = 'scene';
  readonly #deps: SceneDeps;
  readonly #namespace: string;
  readonly #counts = new Map<string, Count>();
  readonly #pods = new Map<string, Pod>();
  readonly #events = new Map<string, Event>();
  readonly #waiters = new Set<() => void>();
  #podsSeen = 0;

  constructor(deps: SceneDeps, namespace: string) {
    this.#deps = deps;
    this.#namespace = namespace;
  }

  get counts(): ReadonlyMap<string, Count> {
    return this.#counts;
  }

  get pods(): ReadonlyMap<string, Pod> {
    return this.#pods;
  }

  /** How many Pods there have been. */
  get podsSeen(): number {
    return this.#podsSeen;
  }

  /** How often an event was recorded, of this reason or of any. */
  recordings(reason?: string): number {
    let times = 0;
    for (const event of this.#events.values()) {
      if (reason === undefined || event.reason === reason) times += event.count ?? 1;
    }
    return times;
  }

  async run(signal: AbortSignal): Promise<void> {
    await runAll(
      [
        (stop) => this.#follow(COUNTS, this.#counts, tellCount, stop),
        (stop) => this.#follow(PODS, this.#pods, tellPod, stop),
        (stop) => this.#follow(EVENTS, this.#events, tellEvent, stop),
      ],
      signal,
    );
  }

  /**
   * Resolves as soon as `missing` finds nothing missing any more, or when patience is over: with
   * what was missing then.
   */
  async until(missing: () => string | undefined, signal: AbortSignal): Promise<string | undefined> {
    const { clock } = this.#deps;
    const deadline = clock.monotonic() + PATIENCE_MS;
    for (;;) {
      const reason = missing();
      const left = deadline - clock.monotonic();
      if (reason === undefined || left <= 0) return reason;
      signal.throwIfAborted();
      await this.#change(left, signal);
    }
  }

  /** Resolves at the next change, after `ms`, or when `signal` aborts. */
  async #change(ms: number, signal: AbortSignal): Promise<void> {
    const wake = new AbortController();
    const waiter = () => wake.abort();
    this.#waiters.add(waiter);
    signal.addEventListener('abort', waiter, { once: true });
    try {
      await this.#deps.clock.sleep(ms, wake.signal);
    } finally {
      signal.removeEventListener('abort', waiter);
      this.#waiters.delete(waiter);
    }
  }

  async #follow<T extends KubernetesObject>(
    resource: Resource<T>,
    objects: Map<string, T>,
    tell: (object: T, before: T | undefined) => string | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const stream = await this.#deps.client.watch(resource, { namespace: this.#namespace, signal });
    for await (const event of stream) {
      if (event.type === 'error') throw event.error;
      if (event.type === 'bookmark') continue;
      const { object, type } = event;
      const { name } = object.metadata;
      const before = objects.get(name);
      if (type === 'deleted') objects.delete(name);
      else objects.set(name, object);
      if (object.kind === PODS.kind && type === 'added') this.#podsSeen++;
      const text = type === 'deleted' ? `${titleOf(object)}  gone` : tell(object, before);
      if (text !== undefined) this.#deps.onChange(text);
      for (const wake of this.#waiters) wake();
    }
  }
}

export function isReady(pod: Pod): boolean {
  return (
    pod.metadata.deletionTimestamp === undefined &&
    (pod.status?.conditions ?? []).some(({ type, status }) => type === 'Ready' && status === 'True')
  );
}

function tellCount(count: Count, before: Count | undefined): string | undefined {
  const text = countLine(count);
  return before && text === countLine(before) ? undefined : text;
}

function countLine(count: Count): string {
  const { readyReplicas = 0, healthy = false } = count.status ?? {};
  const state = count.metadata.deletionTimestamp === undefined ? '' : ', being deleted';
  return `${titleOf(count)}  ${readyReplicas}/${count.spec.count} ready, ${healthy ? 'healthy' : 'not healthy'}${state}`;
}

function tellPod(pod: Pod, before: Pod | undefined): string | undefined {
  const text = podLine(pod);
  return before && text === podLine(before) ? undefined : text;
}

function podLine(pod: Pod): string {
  const phase =
    pod.metadata.deletionTimestamp === undefined ? (pod.status?.phase ?? 'Pending') : 'Terminating';
  return `${titleOf(pod)}  ${phase}${isReady(pod) ? ', ready' : ''}`;
}

function tellEvent(event: Event): string {
  const { type = '', reason = '', message = '', involvedObject } = event;
  const about = `${involvedObject.kind ?? ''}/${involvedObject.name ?? ''}`.toLowerCase();
  return `event ${type} ${reason}  ${about}: ${message}`;
}

function titleOf({ kind, metadata }: KubernetesObject): string {
  return `${kind.toLowerCase()}/${metadata.name}`;
}
