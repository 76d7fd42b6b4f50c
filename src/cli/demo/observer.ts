import { isApiError } from '../../api/api-error.ts';
import type { Resource } from '../../api/resource.ts';
import { groupResourceOf } from '../../api/resource.ts';
import type { Client } from '../../client/client.ts';
import type { Clock } from '../../util/clock.ts';
import { runAll } from '../../util/runnable.ts';
import type { Runnable } from '../../util/runnable.ts';
import { DEPLOYMENTS, EVENTS, NODES, PODS, SERVICES } from '../../api/builtin.ts';
import type { Deployment, Event, Node, Pod, Service } from '../../api/builtin.ts';
import type { Condition } from '../../api/conditions.ts';
import { ATS } from '../../api/generated/at.ts';
import type { At } from '../../api/generated/at.ts';
import { COUNTS } from '../../api/generated/count.ts';
import type { Count } from '../../api/generated/count.ts';
import { FOOS } from '../../api/generated/foo.ts';
import type { Foo } from '../../api/generated/foo.ts';
import { WEB_APPS } from '../../api/generated/web-app.ts';
import type { WebApp } from '../../api/generated/web-app.ts';
import { LABEL } from '../../controllers/pod-count/controller.ts';
import type { DeepReadonly, KubernetesObject } from '../../api/object.ts';
import { controllerOf } from '../../api/metadata.ts';

/** Dependencies of `Observer`. */
export interface ObserverDeps {
  readonly client: Pick<Client, 'list' | 'watch'>;
  readonly clock: Clock;
  /** Receives a line for each change. */
  readonly onChange: (text: string) => void;
}

/** Delay before a broken watch is established again, in milliseconds. */
const REWATCH_MS = 100;

type Objects = ReadonlyMap<string, ReadonlyMap<string, KubernetesObject>>;

/** Watches the objects of one namespace, and the nodes. It is independent of the program's caches. */
export class Observer implements Runnable {
  readonly name = 'observer';
  readonly #deps: ObserverDeps;
  readonly #namespace: string;
  readonly #observed: readonly ObservedKind[];
  readonly #objects: ReadonlyMap<string, Map<string, KubernetesObject>>;
  readonly #waiters = new Set<() => void>();
  readonly #gone: KubernetesObject[] = [];
  readonly #lines: string[] = [];
  #podsSeen = 0;

  constructor(deps: ObserverDeps, namespace: string, observed: readonly ObservedKind[]) {
    this.#deps = deps;
    this.#namespace = namespace;
    this.#observed = observed;
    this.#objects = new Map(observed.map(({ resource }) => [groupResourceOf(resource), new Map()]));
  }

  /** The objects as last received. */
  get view(): View {
    return viewOf(this.#objects);
  }

  /** Number of Pods that were created. */
  get podsSeen(): number {
    return this.#podsSeen;
  }

  /** Deleted objects in their last state, in the order of the watch events. */
  get gone(): readonly KubernetesObject[] {
    return this.#gone;
  }

  /** Returns the lines of one object (`at/example-at`), in order. */
  linesOf(title: string): readonly string[] {
    const start = `${title}  `;
    return this.#lines
      .filter((line) => line.startsWith(start))
      .map((line) => line.slice(start.length));
  }

  async run(signal: AbortSignal): Promise<void> {
    await runAll(
      this.#observed.map((observed) => (stop) => this.#follow(observed, stop)),
      signal,
    );
  }

  /** Lists the objects on the server. */
  async snapshot(signal: AbortSignal): Promise<View> {
    const lists = this.#observed.map(async ({ resource }) => {
      const { items } = await this.#deps.client.list(resource, {
        ...this.#scopeOf(resource),
        signal,
      });
      const byName = new Map(items.map((object) => [object.metadata.name, object]));
      return [groupResourceOf(resource), byName] as const;
    });
    return viewOf(new Map(await Promise.all(lists)));
  }

  /**
   * Resolves when `missing` returns undefined, or at `deadlineMs` (`Clock.monotonic()`) with the reason at
   * that time.
   */
  async until(
    missing: Missing,
    deadlineMs: number,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    for (;;) {
      const reason = missing(this.view);
      const left = deadlineMs - this.#deps.clock.monotonic();
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

  /** Watches again when the connection breaks, from the last version that the server still has. */
  async #follow(observed: ObservedKind, signal: AbortSignal): Promise<void> {
    const objects = this.#objects.get(groupResourceOf(observed.resource));
    let former: ReadonlyMap<string, KubernetesObject> = new Map();
    let resourceVersion: string | undefined;
    const from = { former: () => former, at: (version: string) => (resourceVersion = version) };
    while (!signal.aborted) {
      try {
        await this.#watch(observed, resourceVersion, from, signal);
      } catch (error) {
        if (signal.aborted || !isApiError(error, 'unreachable', 'expired')) throw error;
        if (error.kind === 'expired') {
          former = new Map(objects);
          objects?.clear();
          resourceVersion = undefined;
        }
        await this.#deps.clock.sleep(REWATCH_MS, signal);
      }
    }
  }

  async #watch(
    observed: ObservedKind,
    resourceVersion: string | undefined,
    from: {
      former(): ReadonlyMap<string, KubernetesObject>;
      at(version: string): void;
    },
    signal: AbortSignal,
  ): Promise<void> {
    const { client } = this.#deps;
    const { resource } = observed;
    const objects = this.#objects.get(groupResourceOf(resource));
    const scope = this.#scopeOf(resource);
    const stream = await client.watch(resource, {
      ...scope,
      signal,
      ...(resourceVersion !== undefined && { resourceVersion }),
    });
    for await (const event of stream) {
      if (event.type === 'error') throw event.error;
      if (event.type === 'bookmark' || !objects) continue;
      const { object, type } = event;
      const { name } = object.metadata;
      const before = objects.get(name) ?? from.former().get(name);
      from.at(object.metadata.resourceVersion);
      if (type === 'deleted') {
        objects.delete(name);
        this.#gone.push(object);
        this.#tell(objectLine(object, 'deleted'));
      } else {
        objects.set(name, object);
        const text = observed.line(object);
        if (text !== undefined && !(before && text === observed.line(before))) this.#tell(text);
      }
      if (resource === PODS && type === 'added' && !before) this.#podsSeen++;
      for (const wake of this.#waiters) wake();
    }
  }

  #tell(line: string): void {
    this.#lines.push(line);
    this.#deps.onChange(line);
  }

  #scopeOf({ namespaced }: Resource): { readonly namespace?: string } {
    return namespaced ? { namespace: this.#namespace } : {};
  }
}

function viewOf(objects: Objects): View {
  return <T extends KubernetesObject>(resource: Resource<T>) => {
    const known = objects.get(groupResourceOf(resource));
    // The objects of a resource come from its list or watch, which have its type.
    return (known ?? new Map()) as ReadonlyMap<string, T>;
  };
}

/** Kind whose objects the demo prints. */
export interface ObservedKind<T extends KubernetesObject = KubernetesObject> {
  readonly resource: Resource<T>;
  /**
   * Describes the state of an object. A change that does not change the text is not printed. Undefined: the
   * object is not printed.
   */
  line(object: T): string | undefined;
}

/** Kinds that every server has. */
const BUILTIN: readonly ObservedKind[] = [
  observed(PODS, podState),
  observed(DEPLOYMENTS, deploymentState),
  observed(SERVICES, serviceState),
  observed(NODES, nodeState),
  { resource: EVENTS, line: eventLine },
];

/** Kinds that are installed as CRDs. */
const CUSTOM: readonly ObservedKind[] = [
  observed(COUNTS, countState),
  observed(WEB_APPS, webAppState),
  observed(ATS, atState),
  observed(FOOS, fooState),
];

/** Returns the observed kinds if these kinds are installed. */
export function observedKinds(installed: readonly Resource[]): readonly ObservedKind[] {
  return [...BUILTIN, ...CUSTOM.filter(({ resource }) => installed.includes(resource))];
}

/** Returns the line of an object: `pod/web-0  Running`. */
function objectLine({ kind, metadata }: KubernetesObject, state: string): string {
  return `${kind.toLowerCase()}/${metadata.name}  ${state}`;
}

function observed<T extends KubernetesObject>(
  resource: Resource<T>,
  stateOf: (object: T) => string | undefined,
): ObservedKind<T> {
  return {
    resource,
    line: (object) => {
      const state = stateOf(object);
      return state === undefined ? undefined : objectLine(object, state);
    },
  };
}

function podState(pod: Pod): string {
  if (pod.metadata.deletionTimestamp !== undefined) return 'Terminating';
  return `${pod.status?.phase ?? 'Pending'}${isShownReady(pod) ? ', ready' : ''}`;
}

function deploymentState({ spec, status }: Deployment): string {
  return `${status?.availableReplicas ?? 0}/${spec?.replicas ?? 1} available`;
}

function serviceState({ spec }: Service): string {
  const ports = (spec?.ports ?? []).map(({ port }) => port);
  return `${spec?.clusterIP ?? ''} port ${ports.join(', ')}`;
}

function nodeState({ metadata }: Node): string | undefined {
  const count = metadata.labels?.[LABEL];
  return count === undefined ? undefined : `${LABEL}=${count}`;
}

/** The events of pod-count on each Pod are too many to print. */
function eventLine({ type, reason, message, involvedObject }: Event): string | undefined {
  const { kind = '', name = '' } = involvedObject;
  if (reason === 'SuccessCalculatePod' && kind === PODS.kind) return undefined;
  return `event ${type ?? ''} ${reason ?? ''}  ${kind.toLowerCase()}/${name}: ${message ?? ''}`;
}

function countState({ spec, status }: Count): string {
  const { readyReplicas = 0, healthy = false } = status ?? {};
  return `${readyReplicas}/${spec.count} ready, ${healthy ? 'healthy' : 'not healthy'}`;
}

function webAppState({ status }: WebApp): string {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  return ready ? `${ready.phase ?? ''}: ${ready.message}` : 'new';
}

function atState({ status }: At): string {
  const phase = status?.phase;
  return phase === undefined ? 'new' : `${phase}: ${messageOf(status?.conditions, 'Succeeded')}`;
}

function fooState({ status }: Foo): string {
  return messageOf(status?.conditions, 'Ready') ?? 'new';
}

function messageOf(conditions: readonly Condition[] = [], type: string): string | undefined {
  return conditions.find((condition) => condition.type === type)?.message;
}

/** Objects of a kind by name, at one time. */
export type View = <T extends KubernetesObject>(resource: Resource<T>) => ReadonlyMap<string, T>;

/** Returns why a check does not pass yet; undefined if it passes. */
export type Missing = (view: View) => string | undefined;

type Conditioned = DeepReadonly<{
  metadata: { deletionTimestamp?: string };
  status?: { conditions?: { type: string; status: string; reason?: string; message?: string }[] };
}>;

/** Returns whether the condition is true and the object is not being deleted. */
export function holds({ metadata, status }: Conditioned, type: string): boolean {
  return (
    metadata.deletionTimestamp === undefined &&
    (status?.conditions ?? []).some((each) => each.type === type && each.status === 'True')
  );
}

export function isShownReady(pod: Pod): boolean {
  return holds(pod, 'Ready');
}

/** Returns the objects whose controller owner is `owner`, by uid. */
export function ownedBy<T extends KubernetesObject>(
  objects: ReadonlyMap<string, T>,
  owner: DeepReadonly<KubernetesObject>,
): readonly T[] {
  return [...objects.values()].filter((object) => controllerOf(object)?.uid === owner.metadata.uid);
}

/** Returns the events with this reason, of the object with this uid or of all objects. */
export function eventsOf(view: View, reason: string, uid?: string): readonly Event[] {
  return [...view(EVENTS).values()].filter(
    (event) => event.reason === reason && (uid === undefined || event.involvedObject.uid === uid),
  );
}

/** Returns how often the events were recorded, repetitions included. */
export function recordings(events: Iterable<Event>): number {
  let times = 0;
  for (const { count = 1 } of events) times += count;
  return times;
}

export function namesOf(objects: Iterable<DeepReadonly<KubernetesObject>>): string {
  return Array.from(objects, ({ metadata }) => metadata.name).join(', ');
}
