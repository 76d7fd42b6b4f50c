import { keyOf, objectKey } from '../../api/object-key.ts';
import type { ObjectKey } from '../../api/object-key.ts';
import type { DeepReadonly, KubernetesObject } from '../../api/object.ts';
import type { Resource } from '../../api/resource.ts';
import type { Clock } from '../../util/clock.ts';
import { changedPaths, isWithin } from '../../api/field-path.ts';
import { findLoop, MAX_INTERVAL_MS, WrittenObject } from './written-object.ts';
import type { ObjectChange, HotLoop, WritingSync } from './written-object.ts';
import { RecreatedObjects } from './recreated-objects.ts';
import type { FinishedCall } from '../../client/observed-client.ts';
import { backoffMs } from '../../util/backoff.ts';
import type { BackoffPolicy } from '../../util/backoff.ts';
import type { FieldPath } from '../../api/field-path.ts';

/** Decision for a key that is due. */
export type HotLoopDecision =
  | { readonly kind: 'sync' }
  /** The key is in a hot loop and must wait for `ms` milliseconds. */
  | { readonly kind: 'wait'; readonly ms: number }
  /** Like `wait`, for a new hot loop. */
  | { readonly kind: 'found'; readonly ms: number; readonly loop: HotLoop };

/** Dependencies of `HotLoopDetector`. */
export interface HotLoopDeps {
  readonly clock: Clock;
  /** Called when a loop has ended: its fields no longer change, or its object was deleted. */
  readonly onEnd: (loop: HotLoop, postponedSyncs: number) => void;
}

/** Options of `HotLoopDetector`. */
export interface HotLoopOptions {
  /**
   * Maximum number of remembered keys. Only keys that write are remembered.
   * @default 4096
   */
  readonly capacity?: number | undefined;
}

/** Time without writes after which a key is forgotten. */
const FORGET_AFTER_MS = 10 * MAX_INTERVAL_MS;

const MAX_OBJECTS = 8;
const MAX_EVENTS = 16;

const SYNC: HotLoopDecision = Object.freeze({ kind: 'sync' });

interface TrackedKey {
  /** Objects that the key wrote recently, oldest write first. */
  readonly objects: WrittenObject[];
  /** Objects that the key deleted and created again. */
  readonly recreated: RecreatedObjects;
  /** Changes of these objects since the last sync started. */
  events: (ObjectChange & { readonly object: WrittenObject })[];
  /** Whether another event has enqueued the key since then. */
  hasOtherEvents: boolean;
  run: WritingSync;
  wroteMs: number;
  loop?: { readonly found: HotLoop; readonly backoff: HotLoopBackoff } | undefined;
}

/**
 * Detects hot loops, which are keys that their own writes enqueue again and again, and postpones them.
 *
 * Detection uses the events that enqueue a key. An event is the key's own if its resourceVersion is the
 * result of a write of the key. There are three kinds of hot loops:
 *
 * - *self-fed*: `SELF_FED_LIMIT` syncs change the same field, and only own events enqueued them. A
 *   level-triggered sync has nothing to do in this case. A sync that writes a timestamp, or alternates
 *   between two values, never settles.
 * - *disputed*: another client changes a field `OVERWRITE_LIMIT` times after the key wrote it, and the
 *   key writes it again. Two controllers manage the same field, or a webhook sets a default.
 * - *recreated*: the key deletes or releases an object and creates it again, `RECREATE_LIMIT` times, although no other
 *   object has changed. It compares the object with the desired state, and admission or another client changes each new
 *   one, or the desired state differs each time. Or another client deletes each new object within seconds.
 *
 * Intervals longer than `MAX_INTERVAL_MS` reset the counts. The following is not counted:
 *
 * - syncs that another event enqueued, or during which another event arrived. If such a sync writes,
 *   the counts decrease;
 * - syncs that create or delete an object, because they make progress, unless they recreate it;
 * - syncs after `requeueAfter` or an error. Syncs that are enqueued by the events of their writes are
 *   counted;
 * - failed writes, and writes that change nothing, because no event follows;
 * - resyncs.
 *
 * A sync that needs `SELF_FED_LIMIT` steps, writes the same field in each, and creates and deletes
 * nothing looks like a loop. It is slowed down, not stopped. Writes through another client than the one
 * in the sync context are not observed.
 *
 * The syncs of a key in a loop are postponed by increasing delays (`HOT_LOOP_BACKOFF`). A deletion or a
 * new `metadata.generation` that changes other fields lifts the delay.
 *
 * An event of a key that does not write costs one map lookup. Objects are compared field by field only
 * if a loop is likely.
 */
export class HotLoopDetector {
  readonly #clock: Clock;
  readonly #onEnd: HotLoopDeps['onEnd'];
  readonly #capacity: number;
  /** Ordered by the last write, oldest first. */
  readonly #keys = new Map<ObjectKey, TrackedKey>();

  constructor(deps: HotLoopDeps, { capacity = 4096 }: HotLoopOptions = {}) {
    if (!Number.isSafeInteger(capacity) || capacity < 1) {
      throw new RangeError(`capacity must be a positive integer: got ${capacity}`);
    }
    this.#clock = deps.clock;
    this.#onEnd = deps.onEnd;
    this.#capacity = capacity;
  }

  /** Number of remembered keys. */
  get size(): number {
    return this.#keys.size;
  }

  /** Current hot loops. */
  get loops(): HotLoop[] {
    return Array.from(this.#keys.values()).flatMap(({ loop }) => loop?.found ?? []);
  }

  /** Returns the hot loop of `key`, if the last sync wrote its object: that was not in its desired state. */
  writtenLoop(key: ObjectKey): HotLoop | undefined {
    const tracked = this.#keys.get(key);
    return tracked?.run.wroteLoop === true ? tracked.loop?.found : undefined;
  }

  /**
   * Records an event that enqueues `key`. Events are recorded in order; resyncs are not recorded.
   *
   * @param before undefined if the object was created
   * @param after undefined if the object was deleted
   * @param isSubject whether the key is the name of the object
   */
  observe(
    key: ObjectKey,
    resource: Resource,
    before: DeepReadonly<KubernetesObject> | undefined,
    after: DeepReadonly<KubernetesObject> | undefined,
    isSubject: boolean,
  ): void {
    const tracked = this.#keys.get(key);
    if (!tracked) return;
    const { namespace, name, resourceVersion } = (after ?? before)?.metadata ?? {};
    const object = tracked.objects.find((known) => known.matches(resource, namespace, name));
    const isOwn = object?.writerOf(resourceVersion) !== undefined;
    if (!isOwn) tracked.recreated.observe(resource, before, after, this.#clock.monotonic());
    if (!before || !after || before.metadata.uid !== after.metadata.uid) {
      tracked.hasOtherEvents = true;
      // A new object with the same name starts without history.
      if (isSubject) this.#drop(key, tracked);
      return;
    }
    if (!object || tracked.events.length >= MAX_EVENTS) tracked.hasOtherEvents = true;
    else tracked.events.push({ object, before, after });
    if (isSubject && tracked.loop && isNewSpec(tracked.loop.backoff, object, { before, after })) {
      tracked.loop.backoff.lift();
    }
  }

  /** Records a finished API call of a sync of `key`. */
  record(key: ObjectKey, call: FinishedCall): void {
    const { resource, at, sent, answer, verb, options, failed } = call;
    if (failed || !resource || options?.dryRun) return;
    const known = this.#keys.get(key);
    if (known?.loop && isWriteOf(known.loop.found, call)) known.run.wroteLoop = true;
    if (verb === 'create' && answer) {
      const tracked = this.#touch(key);
      tracked.run.progressed = true;
      const creation = { resource, at, sent, answer, fieldManager: options?.fieldManager };
      const isInLoop = tracked.loop !== undefined;
      tracked.recreated.created(creation, this.#clock.monotonic(), isInLoop);
    } else if (verb === 'delete') {
      if (known) known.run.progressed = true;
      known?.recreated.deleted(resource, at);
    } else if (answer) {
      const { namespace, name, resourceVersion } = answer.metadata;
      const tracked = this.#touch(key);
      const { objects, run } = tracked;
      tracked.recreated.written(resource, answer);
      const at = objects.findIndex((known) => known.matches(resource, namespace, name));
      const [object = new WrittenObject(resource, namespace, name)] =
        at < 0 ? [] : objects.splice(at, 1);
      objects.push(object);
      if (objects.length > MAX_OBJECTS) objects.shift();
      object.recordWrite(resourceVersion, run, options?.fieldManager);
    }
  }

  /** Decides whether `key` may be synced. The caches must show its own writes. */
  check(key: ObjectKey): HotLoopDecision {
    const tracked = this.#keys.get(key);
    if (!tracked) return SYNC;
    const isRecreated = tracked.recreated.takeChange();
    const hasChanged = this.#evaluate(tracked) || isRecreated;
    if (!tracked.loop) {
      const found = findLoop(key, tracked.objects) ?? tracked.recreated.findLoop(key);
      if (!found) return SYNC;
      const backoff = new HotLoopBackoff(this.#clock, found.paths, () => this.#end(tracked));
      tracked.loop = { found, backoff };
      backoff.postponements++;
      return { kind: 'found', ms: backoff.waitMs, loop: found };
    }
    const { backoff } = tracked.loop;
    if (hasChanged) backoff.increase();
    const ms = backoff.waitMs;
    if (ms === 0) {
      backoff.start();
      return SYNC;
    }
    backoff.postponements++;
    return { kind: 'wait', ms };
  }

  /** Cancels all timers. */
  close(): void {
    for (const { loop } of this.#keys.values()) loop?.backoff.stop();
    this.#keys.clear();
  }

  /**
   * Evaluates the events since the last sync.
   *
   * @returns whether the key changed fields of its loop
   */
  #evaluate(tracked: TrackedKey): boolean {
    const now = this.#clock.monotonic();
    const { events, loop } = tracked;
    const changes = events.map(({ object, ...change }) => ({
      object,
      change,
      run: object.writerOf(change.after.metadata.resourceVersion),
    }));
    const others = changes.filter(({ run }) => !run);
    for (const { object } of others) object.markShared();
    const isTriggeredByOthers = tracked.hasOtherEvents || others.length > 0;
    // Caches change before their handlers are called, so the last sync may have used these changes.
    if (isTriggeredByOthers) tracked.run.selfTriggered = false;
    let hasChanged = false;
    for (const { object, change, run } of changes) {
      if (run) {
        const paths = object.ownChange(change, run, now, loop !== undefined);
        hasChanged ||= loop !== undefined && paths.some((path) => loop.backoff.concerns(path));
      } else {
        object.otherChange(change, now);
      }
    }
    tracked.events = [];
    tracked.hasOtherEvents = false;
    tracked.run = { selfTriggered: changes.length > 0 && !isTriggeredByOthers, progressed: false };
    return hasChanged;
  }

  #end(tracked: TrackedKey): void {
    const { loop, objects } = tracked;
    if (!loop) return;
    loop.backoff.stop();
    tracked.loop = undefined;
    for (const object of objects) object.reset();
    tracked.recreated.reset();
    this.#onEnd(loop.found, loop.backoff.postponements);
  }

  #drop(key: ObjectKey, tracked: TrackedKey): void {
    this.#keys.delete(key);
    this.#end(tracked);
  }

  /** Returns the entry of a key that writes, and removes old entries. */
  #touch(key: ObjectKey): TrackedKey {
    const wroteMs = this.#clock.monotonic();
    const known = this.#keys.get(key);
    const tracked: TrackedKey = known ?? {
      objects: [],
      recreated: new RecreatedObjects(),
      events: [],
      hasOtherEvents: false,
      run: { selfTriggered: false, progressed: false },
      wroteMs,
    };
    tracked.wroteMs = wroteMs;
    this.#keys.delete(key);
    this.#keys.set(key, tracked);
    for (const [oldest, { wroteMs: lastMs }] of this.#keys) {
      if (this.#keys.size <= this.#capacity && wroteMs - lastMs <= FORGET_AFTER_MS) break;
      const old = this.#keys.get(oldest);
      if (old) this.#drop(oldest, old);
    }
    return tracked;
  }
}

/** Returns whether a call writes the object of a loop. An object that is created again can have another name. */
function isWriteOf(
  { resource: { group, plural }, namespace, name }: HotLoop,
  { resource, verb, at, answer }: FinishedCall,
): boolean {
  if (resource?.group !== group || resource.plural !== plural) return false;
  if (verb === 'create') return true;
  const key = objectKey(namespace, name);
  return answer ? keyOf(answer) === key : verb === 'delete' && at === key;
}

/** Returns whether another client deleted the object or changed fields outside the loop. */
function isNewSpec(
  backoff: HotLoopBackoff,
  object: WrittenObject | undefined,
  { before, after }: ObjectChange,
): boolean {
  if (object?.writerOf(after.metadata.resourceVersion)) return false;
  const isDeletion =
    after.metadata.deletionTimestamp !== undefined &&
    before.metadata.deletionTimestamp === undefined;
  if (isDeletion) return true;
  if (before.metadata.generation === after.metadata.generation) return false;
  return changedPaths(before, after, MAX_EVENTS).some((path) => !backoff.concerns(path));
}

/** Backoff of a key in a hot loop: 1 s to 5 min. */
export const HOT_LOOP_BACKOFF: BackoffPolicy = { initialMs: 1000, maxMs: 300_000 };

/** Minimum time without changes after which a loop has ended. */
const MIN_QUIET_MS = 60_000;

/**
 * Backoff of a key in a hot loop. The delay increases with each change of the fields. The loop has
 * ended when the fields did not change for `MIN_QUIET_MS` and for twice the delay.
 */
class HotLoopBackoff {
  readonly #clock: Clock;
  readonly #paths: readonly FieldPath[];
  readonly #onEnd: () => void;
  #attempt = 0;
  #delayMs = 0;
  #dueMs = 0;
  /** The next sync is not delayed. */
  #isLifted = false;
  #cancel: () => void = () => undefined;
  /** Number of postponed syncs. */
  postponements = 0;

  constructor(clock: Clock, paths: readonly FieldPath[], onEnd: () => void) {
    this.#clock = clock;
    this.#paths = paths;
    this.#onEnd = onEnd;
    this.increase();
  }

  /** Returns whether `path` is a field of the loop, or contains or is contained in one. */
  concerns(path: FieldPath): boolean {
    return this.#paths.some((changing) => isWithin(path, changing) || isWithin(changing, path));
  }

  /** Milliseconds until the key may be synced. */
  get waitMs(): number {
    return this.#isLifted ? 0 : Math.max(0, this.#dueMs - this.#clock.monotonic());
  }

  /** Increases the delay after a change of the fields. */
  increase(): void {
    this.#delayMs = backoffMs(HOT_LOOP_BACKOFF, this.#attempt++);
    this.#dueMs = this.#clock.monotonic() + this.#delayMs;
    this.#cancel();
    this.#cancel = this.#clock.after(Math.max(MIN_QUIET_MS, 2 * this.#delayMs), this.#onEnd);
  }

  /** Allows the next sync immediately and resets the delay. */
  lift(): void {
    this.#isLifted = true;
    this.#attempt = 0;
  }

  /** Records the start of a sync. */
  start(): void {
    if (this.#isLifted) this.#attempt = 0;
    this.#isLifted = false;
  }

  /** Cancels the timer. */
  stop(): void {
    this.#cancel();
  }
}
