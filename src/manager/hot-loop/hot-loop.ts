import type { ObjectKey } from '../../api/object-key.ts';
import type { DeepReadonly, KubernetesObject } from '../../api/object.ts';
import type { Resource } from '../../api/resource.ts';
import type { Clock } from '../../util/clock.ts';
import { changedPaths, isWithin } from '../../api/field-path.ts';
import { findLoop, LONGEST_GAP_MS, WrittenObject } from './written-object.ts';
import type { Change, HotLoop, WritingRun } from './written-object.ts';
import type { EndedCall } from '../observed-client.ts';
import { backoffMs } from '../../util/backoff.ts';
import type { BackoffPolicy } from '../../util/backoff.ts';
import type { FieldPath } from '../../api/field-path.ts';

/** What is to be done with a key that is about to run. */
export type HotLoopDecision =
  | { readonly kind: 'run' }
  /** It is in a hot loop, and runs again in `ms` milliseconds. */
  | { readonly kind: 'wait'; readonly ms: number }
  /** As `wait`; the loop was not known before. */
  | { readonly kind: 'found'; readonly ms: number; readonly loop: HotLoop };

/** Dependencies of `HotLoop`. */
export interface HotLoopDeps {
  readonly clock: Clock;
  /** A loop is over: its fields have not flapped for a while, or its key is gone. */
  readonly onEnd: (loop: HotLoop, dampedRuns: number) => void;
}

/** Options of `HotLoop`. */
export interface HotLoopOptions {
  /**
   * Keys that are remembered; only those that write are.
   * @default 4096
   */
  readonly capacity?: number | undefined;
}

/** A key that has not written for so long is forgotten, in milliseconds. */
const FORGET_AFTER_MS = 10 * LONGEST_GAP_MS;

const MOST_OBJECTS = 8;
const MOST_WAKES = 16;

const RUN: HotLoopDecision = Object.freeze({ kind: 'run' });

interface Tracked {
  /** What the key has written of late, latest last. */
  readonly objects: WrittenObject[];
  /** Changes to those since its last run began. */
  wakes: (Change & { readonly object: WrittenObject })[];
  /** Since then something else has woken it, too. */
  wokenByOthers: boolean;
  run: WritingRun;
  wroteMs: number;
  loop?: { readonly found: HotLoop; readonly damping: HotLoopBackoff } | undefined;
}

/**
 * Notices keys that keep waking themselves, and slows them down.
 *
 * The evidence is in the events that wake a key. One is the key's own if it shows a version that a
 * write of the key was answered with. Two things make a **hot loop**:
 *
 * - *self-fed*: `SELF_FED_CHANGES` runs change the same field, each of them woken by nothing but the
 *   key's own writes. A sync that is level-triggered finds nothing to do then; one that writes a
 *   timestamp, or A after B after A, goes on for ever.
 * - *disputed*: `OVERWRITES` times others change a field after the key has written it, and the key
 *   writes it again. That is a fight over the field, or a default that somebody insists on.
 *
 * Pauses longer than `LONGEST_GAP_MS` begin the count anew. These are no evidence, at any pace:
 *
 * - runs that anything else woke, or during which anything else happened: children that come and
 *   go, a rollout, another kind, a user. If such a run writes, it even takes evidence back;
 * - runs that create or delete something, which is progress;
 * - runs by plan (`requeueAfter`) or after an error: nothing woke them. If the own event of such a
 *   run's write wakes the key again, and that run writes, and so on, that is another matter;
 * - writes that fail, conflicts among them, and those that change nothing: no event follows;
 * - resyncs.
 *
 * A sync that takes `SELF_FED_CHANGES` steps on nothing but its own events, writes the same field
 * each time, and neither creates nor deletes anything, cannot be told from a loop. It is slowed
 * down, not stopped. Loops of writes through another client than the one a sync is given are not seen.
 *
 * In a loop the key's runs are put off by growing delays (`DAMPING`). A new spec (another
 * `metadata.generation`, or a deletion) that is not itself what flaps lifts them.
 *
 * An event costs one look into a map unless its key writes; then, unless the object is one that the
 * key writes, a comparison of names. Objects are compared field by field only where there is
 * suspicion.
 */
export class HotLoopDetector {
  readonly #clock: Clock;
  readonly #onEnd: HotLoopDeps['onEnd'];
  readonly #capacity: number;
  /** In the order of their last writes. */
  readonly #keys = new Map<ObjectKey, Tracked>();

  constructor(deps: HotLoopDeps, { capacity = 4096 }: HotLoopOptions = {}) {
    if (!Number.isSafeInteger(capacity) || capacity < 1) {
      throw new RangeError(`capacity must be a positive integer: got ${capacity}`);
    }
    this.#clock = deps.clock;
    this.#onEnd = deps.onEnd;
    this.#capacity = capacity;
  }

  /** Number of keys that are remembered. */
  get size(): number {
    return this.#keys.size;
  }

  /** The loops that there are now. */
  get loops(): HotLoop[] {
    return Array.from(this.#keys.values()).flatMap(({ loop }) => loop?.found ?? []);
  }

  /**
   * An event that concerns `key` has been seen, in the order of events. A resync is none.
   *
   * @param before absent if the object was not there
   * @param after absent if it is no longer there
   * @param isSubject it is the object that the key names
   */
  saw(
    key: ObjectKey,
    resource: Resource,
    before: DeepReadonly<KubernetesObject> | undefined,
    after: DeepReadonly<KubernetesObject> | undefined,
    isSubject: boolean,
  ): void {
    const tracked = this.#keys.get(key);
    if (!tracked) return;
    if (!before || !after || before.metadata.uid !== after.metadata.uid) {
      tracked.wokenByOthers = true;
      // A successor of its name has a history of its own.
      if (isSubject) this.#drop(key, tracked);
      return;
    }
    const { namespace, name } = after.metadata;
    const object = tracked.objects.find((known) => known.is(resource, namespace, name));
    if (!object || tracked.wakes.length >= MOST_WAKES) tracked.wokenByOthers = true;
    else tracked.wakes.push({ object, before, after });
    if (isSubject && tracked.loop && isNewSpec(tracked.loop.damping, object, { before, after })) {
      tracked.loop.damping.lift();
    }
  }

  /** A call made for `key` has ended. */
  wrote(key: ObjectKey, { resource, answer, verb, options, failed }: EndedCall): void {
    if (failed || !resource || options?.dryRun) return;
    if (verb === 'create' || verb === 'delete') {
      const tracked = this.#keys.get(key);
      if (tracked) tracked.run.progressed = true;
    } else if (answer) {
      const { namespace, name, resourceVersion } = answer.metadata;
      const tracked = this.#touched(key);
      const { objects, run } = tracked;
      const at = objects.findIndex((known) => known.is(resource, namespace, name));
      const [object = new WrittenObject(resource, namespace, name)] =
        at < 0 ? [] : objects.splice(at, 1);
      objects.push(object);
      if (objects.length > MOST_OBJECTS) objects.shift();
      object.wrote(resourceVersion, run, options?.fieldManager);
    }
  }

  /** `key` is about to run. Its caches must show its own writes. */
  beginRun(key: ObjectKey): HotLoopDecision {
    const tracked = this.#keys.get(key);
    if (!tracked) return RUN;
    const hasFlapped = this.#weigh(tracked);
    if (!tracked.loop) {
      const found = findLoop(key, tracked.objects);
      if (!found) return RUN;
      const damping = new HotLoopBackoff(this.#clock, found.paths, () => this.#end(tracked));
      tracked.loop = { found, damping };
      damping.damped++;
      return { kind: 'found', ms: damping.waitMs, loop: found };
    }
    const { damping } = tracked.loop;
    if (hasFlapped) damping.flapped();
    const ms = damping.waitMs;
    if (ms === 0) {
      damping.began();
      return RUN;
    }
    damping.damped++;
    return { kind: 'wait', ms };
  }

  /** Gives up all timers. */
  close(): void {
    for (const { loop } of this.#keys.values()) loop?.damping.end();
    this.#keys.clear();
  }

  /**
   * Sorts what has woken the key into its own changes and others'.
   *
   * @returns true if the fields of its loop have flapped
   */
  #weigh(tracked: Tracked): boolean {
    const now = this.#clock.monotonic();
    const { wakes, loop } = tracked;
    const judged = wakes.map(({ object, ...change }) => ({
      object,
      change,
      run: object.writerOf(change.after.metadata.resourceVersion),
    }));
    const foreign = judged.filter(({ run }) => !run);
    for (const { object } of foreign) object.share();
    const byOthers = tracked.wokenByOthers || foreign.length > 0;
    // Caches change before their events are told: the last run may have acted on what comes now.
    if (byOthers) tracked.run.alone = false;
    let hasFlapped = false;
    for (const { object, change, run } of judged) {
      if (run) {
        const paths = object.ownChange(change, run, now, loop !== undefined);
        hasFlapped ||= loop !== undefined && paths.some((path) => loop.damping.concerns(path));
      } else {
        object.foreignChange(change, now);
      }
    }
    tracked.wakes = [];
    tracked.wokenByOthers = false;
    tracked.run = { alone: judged.length > 0 && !byOthers, progressed: false };
    return hasFlapped;
  }

  #end(tracked: Tracked): void {
    const { loop, objects } = tracked;
    if (!loop) return;
    loop.damping.end();
    tracked.loop = undefined;
    for (const object of objects) object.reset();
    this.#onEnd(loop.found, loop.damping.damped);
  }

  #drop(key: ObjectKey, tracked: Tracked): void {
    this.#keys.delete(key);
    this.#end(tracked);
  }

  /** The entry of a key that writes, now the latest; those that are too old or too many go. */
  #touched(key: ObjectKey): Tracked {
    const wroteMs = this.#clock.monotonic();
    const known = this.#keys.get(key);
    const tracked: Tracked = known ?? {
      objects: [],
      wakes: [],
      wokenByOthers: false,
      run: { alone: false, progressed: false },
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

/** True if others have asked for something new, beside what flaps. */
function isNewSpec(
  damping: HotLoopBackoff,
  object: WrittenObject | undefined,
  { before, after }: Change,
): boolean {
  if (object?.writerOf(after.metadata.resourceVersion)) return false;
  const isDeletion =
    after.metadata.deletionTimestamp !== undefined &&
    before.metadata.deletionTimestamp === undefined;
  if (isDeletion) return true;
  if (before.metadata.generation === after.metadata.generation) return false;
  return changedPaths(before, after, MOST_WAKES).some((path) => !damping.concerns(path));
}

/** 1 s doubling to 5 min. */
export const DAMPING: BackoffPolicy = { initialMs: 1000, maxMs: 300_000 };

/** So long at least nothing must flap for a loop to be over, in milliseconds. */
export const SHORTEST_CALM_MS = 60_000;

/**
 * Slows a key down while its fields flap: a run may follow the one before only after a delay, which
 * grows each time they flap again. When they have not for a while, and for twice the delay, it is
 * over.
 */
export class HotLoopBackoff {
  readonly #clock: Clock;
  readonly #paths: readonly FieldPath[];
  readonly #onCalm: () => void;
  #rung = 0;
  #delayMs = 0;
  #dueMs = 0;
  /** The next run may come at once, whatever flaps until then. */
  #isLifted = false;
  #cancel: () => void = () => undefined;
  /** Runs that were put off so far. */
  damped = 0;

  constructor(clock: Clock, paths: readonly FieldPath[], onCalm: () => void) {
    this.#clock = clock;
    this.#paths = paths;
    this.#onCalm = onCalm;
    this.flapped();
  }

  /** True if `path` is one of those that flap, or touches one. */
  concerns(path: FieldPath): boolean {
    return this.#paths.some((flapping) => isWithin(path, flapping) || isWithin(flapping, path));
  }

  /** Milliseconds until the key may run; 0: now. */
  get waitMs(): number {
    return this.#isLifted ? 0 : Math.max(0, this.#dueMs - this.#clock.monotonic());
  }

  /** They have flapped once more: the next run comes later. */
  flapped(): void {
    this.#delayMs = backoffMs(DAMPING, this.#rung++);
    this.#dueMs = this.#clock.monotonic() + this.#delayMs;
    this.#cancel();
    this.#cancel = this.#clock.after(Math.max(SHORTEST_CALM_MS, 2 * this.#delayMs), this.#onCalm);
  }

  /** Something else is to be done: the next run may come at once, and the delays begin anew. */
  lift(): void {
    this.#isLifted = true;
    this.#rung = 0;
  }

  /** The key runs. */
  began(): void {
    if (this.#isLifted) this.#rung = 0;
    this.#isLifted = false;
  }

  end(): void {
    this.#cancel();
  }
}
