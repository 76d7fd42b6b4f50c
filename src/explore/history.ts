import type { KubernetesObject } from '../api/object.ts';
import { objectKey } from '../api/object-key.ts';
import type { Resource } from '../api/resource.ts';
import type { StoreObserver } from '../apiserver/storage/object-store.ts';
import type { StoreSnapshot } from '../apiserver/storage/store-log.ts';

/** A write that the server executed. */
export interface ChangeRecord {
  readonly verb: 'create' | 'update' | 'delete';
  /** The process, `cluster`, or `scenario`. */
  readonly by: string;
  /** Milliseconds since the start. */
  readonly atMs: number;
  /** When the request was sent. */
  readonly sentMs: number;
  /** Group and plural: `apps/deployments`, `/pods`. */
  readonly resource: string;
  /** Number of the request: a deletion can be two writes. */
  readonly request: number;
  /** The object as written; of a delete, its last state. */
  readonly object: KubernetesObject;
  /** The state before; undefined for a create. */
  readonly previous: KubernetesObject | undefined;
}

/** The objects of the API server and all writes since the start of the scenario, for invariants. */
export interface ObservedState {
  /** All writes, oldest first. */
  readonly changes: readonly ChangeRecord[];
  /** Returns the current objects of a resource, in one namespace or in all. */
  readonly list: <T extends KubernetesObject>(
    resource: Resource<T>,
    namespace?: string,
  ) => readonly T[];
}

/** An object with its resource. */
export interface ObjectInHistory {
  /** Group and plural. */
  readonly key: string;
  readonly resource: Resource;
  readonly object: KubernetesObject;
}

type Objects = ReadonlyMap<string, KubernetesObject>;

/** Records the writes of one schedule. */
export class History implements ObservedState {
  #changes: ChangeRecord[] = [];
  #base: Objects = new Map();
  /** Objects that differ from the base; undefined if they were deleted. */
  #current = new Map<string, KubernetesObject | undefined>();
  /** The participant whose step runs. */
  #writer = 'scenario';
  #sentMs: number | undefined;
  #request = 0;
  readonly #elapsedMs: () => number;

  constructor(elapsedMs: () => number) {
    this.#elapsedMs = elapsedMs;
  }

  get changes(): readonly ChangeRecord[] {
    return this.#changes;
  }

  /** Attributes the next writes to a participant. */
  set writer(owner: string) {
    this.#writer = owner;
    this.#sentMs = undefined;
    this.#request++;
  }

  /** When the request of the next writes was sent, if that was not now. */
  set sentMs(ms: number) {
    this.#sentMs = ms;
  }

  readonly record: StoreObserver = (resource, stored, removed) => {
    const object = stored as unknown as KubernetesObject;
    const key = keyIn(resource, object);
    const previous = this.#current.has(key) ? this.#current.get(key) : this.#base.get(key);
    const verb = removed ? 'delete' : previous ? 'update' : 'create';
    const [by, atMs] = [this.#writer, this.#elapsedMs()];
    const sentMs = this.#sentMs ?? atMs;
    const request = this.#request;
    this.#changes.push({ verb, by, atMs, sentMs, request, resource, object, previous });
    this.#current.set(key, removed ? undefined : object);
  };

  /** Undoes writes, as when the server returns to an older state. */
  undo(lost: readonly ChangeRecord[]): void {
    const [by, atMs] = ['server', this.#elapsedMs()];
    for (const { verb, resource, object, previous } of lost.toReversed()) {
      const undone = verb === 'create' ? 'delete' : verb === 'delete' ? 'create' : 'update';
      const before = previous ?? object;
      const request = this.#request;
      const times = { atMs, sentMs: atMs, request };
      const record = { verb: undone, by, ...times, resource, object: before } as const;
      this.#changes.push({ ...record, previous: undone === 'create' ? undefined : object });
      this.#current.set(keyIn(resource, object), previous);
    }
  }

  /** Forgets all writes. The objects are those of the snapshot. */
  reset(base: Objects): void {
    this.#base = base;
    this.#changes = [];
    this.#current = new Map();
  }

  readonly list = <T extends KubernetesObject>(resource: Resource<T>, namespace?: string): T[] => {
    const { group, plural } = resource;
    const prefix = `${group}/${plural} ${namespace === undefined ? '' : `${namespace}/`}`;
    const unchanged = [...this.#base].filter(([key]) => !this.#current.has(key));
    return [...unchanged, ...this.#current].flatMap(([key, object]) =>
      object && key.startsWith(prefix) ? [object as T] : [],
    );
  };

  /** Returns the existing objects that differ from the snapshot. */
  *objects(): Iterable<ObjectInHistory> {
    for (const [path, object] of this.#current) {
      if (!object) continue;
      const [key = ''] = path.split(' ', 1);
      yield { key, resource: resourceOf(key, object), object };
    }
  }

  /** Objects that differ from the snapshot, by resource and key; undefined if they were deleted. */
  *changed(): Iterable<readonly [string, KubernetesObject | undefined]> {
    for (const [key, object] of this.#current) {
      if (object || this.#base.has(key)) yield [key, object];
    }
  }
}

/** Returns the objects of a snapshot by resource and key. */
export function objectsOf({ objects }: StoreSnapshot): Objects {
  return new Map(
    [...objects].flatMap(([resource, stored]) =>
      stored.map((each) => {
        const object = each as unknown as KubernetesObject;
        return [keyIn(resource, object), object] as const;
      }),
    ),
  );
}

/** Returns the resource and the key of an object, as in `changed`. */
export function keyIn(resource: string, { metadata }: KubernetesObject): string {
  return `${resource} ${objectKey(metadata.namespace, metadata.name)}`;
}

/** Returns the resource of an object. */
export function resourceOf(
  key: string,
  { apiVersion, kind, metadata }: KubernetesObject,
): Resource {
  const [group = '', plural = ''] = key.split('/');
  const version = apiVersion.split('/').at(-1) ?? '';
  return { group, version, plural, kind, namespaced: metadata.namespace !== undefined };
}
