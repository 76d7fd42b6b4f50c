import { equalJson } from '../../api/equal.ts';
import type { DeepReadonly, KubernetesObject } from '../../api/object.ts';
import type { Resource } from '../../api/resource.ts';
import { changedPaths, valueAt } from '../../api/field-path.ts';
import type { FieldPath } from '../../api/field-path.ts';
import type { ObjectKey } from '../../api/object-key.ts';
import type { HotLoopView } from '../../serving/controller-view.ts';

/** Sync that made a write. */
export interface WritingSync {
  /** Only the key's own writes enqueued it, and no other event arrived during the sync. */
  selfTriggered: boolean;
  /** It created or deleted an object, so it made progress. */
  progressed: boolean;
  /** It wrote the object of the key's hot loop. */
  wroteLoop?: boolean;
}

/** Change of an object in its cache. */
export interface ObjectChange {
  readonly before: DeepReadonly<KubernetesObject>;
  readonly after: DeepReadonly<KubernetesObject>;
}

/** Field that a key writes. */
export interface WrittenField {
  readonly path: FieldPath;
  /** Number of self-triggered syncs that changed the field. */
  selfFed: number;
  /** Number of times that another client changed the field after a write of the key. */
  overwritten: number;
  /** Last sync that was counted. */
  lastSync: WritingSync | undefined;
  lastBy: 'key' | 'others';
  /** Monotonic times of the first and the last change that was counted. */
  sinceMs: number;
  lastMs: number;
}

/** Maximum interval between changes of a hot loop, in milliseconds. */
export const MAX_INTERVAL_MS = 60_000;

/** Limits per object. */
const MAX_VERSIONS = 4;
const MAX_FIELDS = 16;
const MAX_CHANGED_FIELDS = 8;

/** Object that a key writes, with the versions that the key wrote and the fields that change. */
export class WrittenObject {
  readonly resource: Resource;
  readonly namespace: string | undefined;
  readonly name: string;
  readonly #fields: WrittenField[] = [];
  /** Versions that the key wrote, oldest first. */
  readonly #versions: { readonly version: string; readonly run: WritingSync }[] = [];
  #fieldManager: string | undefined;
  #isShared = false;

  constructor(resource: Resource, namespace: string | undefined, name: string) {
    this.resource = resource;
    this.namespace = namespace;
    this.name = name;
  }

  /** Field manager of the writes, if they specify one. */
  get fieldManager(): string | undefined {
    return this.#fieldManager;
  }

  get fields(): readonly WrittenField[] {
    return this.#fields;
  }

  matches(resource: Resource, namespace: string | undefined, name: string | undefined): boolean {
    if (this.name !== name || this.namespace !== namespace) return false;
    const { group, plural } = this.resource;
    return group === resource.group && plural === resource.plural;
  }

  /** Records a version that the key wrote. */
  recordWrite(version: string, run: WritingSync, fieldManager: string | undefined): void {
    this.#fieldManager = fieldManager ?? this.#fieldManager;
    this.#versions.push({ version, run });
    if (this.#versions.length > MAX_VERSIONS) this.#versions.shift();
  }

  /** Returns the sync that wrote a version, or undefined if another client wrote it. */
  writerOf(version: string | undefined): WritingSync | undefined {
    return this.#versions.find((write) => write.version === version)?.run;
  }

  /**
   * Records a change by the key's own write.
   *
   * @param always compares the fields even if a loop is unlikely
   * @returns the paths of the changed fields, if they were compared
   */
  ownChange(
    { before, after }: ObjectChange,
    run: WritingSync,
    now: number,
    always: boolean,
  ): FieldPath[] {
    const selfFed = run.selfTriggered && !run.progressed;
    if (!selfFed) this.#reduceSelfFed();
    if (!selfFed && !this.#isShared && !always) return [];
    const paths = changedPaths(before, after, MAX_CHANGED_FIELDS);
    for (const path of paths) {
      const field = this.#fieldAt(path, now);
      if (selfFed && field.lastSync !== run) this.#count(field, 'selfFed', now);
      field.lastSync = run;
      field.lastBy = 'key';
    }
    return paths;
  }

  /** Records that other clients change the object, so that fields are compared from now on. */
  markShared(): void {
    this.#isShared = true;
  }

  /** Records a change by another client, if it overwrites fields of the key. */
  otherChange({ before, after }: ObjectChange, now: number): void {
    for (const field of this.#fields) {
      const { path, lastBy } = field;
      if (lastBy === 'others' || equalJson(valueAt(before, path), valueAt(after, path))) continue;
      this.#count(field, 'overwritten', now);
      field.lastBy = 'others';
    }
  }

  /** Resets the counts after the end of a loop. */
  reset(): void {
    this.#fields.length = 0;
  }

  /** Reduces the counts after a sync that another event triggered. */
  #reduceSelfFed(): void {
    for (const field of this.#fields) field.selfFed = Math.max(0, field.selfFed - 1);
  }

  #count(field: WrittenField, what: 'selfFed' | 'overwritten', now: number): void {
    if (now - field.lastMs > MAX_INTERVAL_MS) {
      field.selfFed = 0;
      field.overwritten = 0;
      field.sinceMs = now;
    }
    field[what]++;
    field.lastMs = now;
  }

  #fieldAt(path: FieldPath, now: number): WrittenField {
    const known = this.#fields.find((field) => isSamePath(field.path, path));
    if (known) return known;
    const field: WrittenField = {
      path,
      selfFed: 0,
      overwritten: 0,
      lastSync: undefined,
      lastBy: 'key',
      sinceMs: now,
      lastMs: now,
    };
    this.#fields.push(field);
    if (this.#fields.length > MAX_FIELDS) this.#fields.shift();
    return field;
  }
}

function isSamePath(a: FieldPath, b: FieldPath): boolean {
  return a.length === b.length && a.every((step, at) => step === b[at]);
}

/** Key that its own writes enqueue again and again. */
export interface HotLoop extends HotLoopView {
  /**
   * `selfFed`: its own writes enqueue it. `disputed`: another client overwrites its writes. `recreated`: it gives up an
   * object and creates it again.
   */
  readonly kind: 'selfFed' | 'disputed' | 'recreated';
  /**
   * What changes the fields of an object that is created again: admission when the object is created, another client
   * later, or the key, which sends other values each time. `deletion`: another client deletes the object.
   */
  readonly changedBy?: 'admission' | 'others' | 'key' | 'deletion' | 'nothing' | undefined;
}

/** Number of self-triggered syncs with a change of the same field that make a hot loop. */
const SELF_FED_LIMIT = 10;

/** Number of times another client overwrites a field that makes a hot loop. */
const OVERWRITE_LIMIT = 5;

const MAX_PATHS = 3;

/** Returns the hot loop of `key`, or undefined. */
export function findLoop(key: ObjectKey, objects: readonly WrittenObject[]): HotLoop | undefined {
  for (const { fields, resource, namespace, name, fieldManager } of objects) {
    const base = { key, resource, namespace, name, fieldManager };
    const selfFed = fields.filter((field) => field.selfFed >= SELF_FED_LIMIT);
    if (selfFed.length > 0) return { ...base, ...summary('selfFed', selfFed) };
    // While the field has the value of the other client, managedFields names that client.
    const disputed = fields.filter(
      ({ overwritten, lastBy }) => overwritten >= OVERWRITE_LIMIT && lastBy === 'others',
    );
    if (disputed.length > 0) return { ...base, ...summary('disputed', disputed) };
  }
  return undefined;
}

function summary(
  kind: 'selfFed' | 'disputed',
  fields: readonly WrittenField[],
): Pick<HotLoop, 'kind' | 'paths' | 'times' | 'withinMs'> {
  const count = (field: WrittenField) => (kind === 'selfFed' ? field.selfFed : field.overwritten);
  return {
    kind,
    paths: fields.slice(0, MAX_PATHS).map(({ path }) => path),
    times: Math.max(...fields.map(count)),
    withinMs: Math.max(...fields.map(({ lastMs, sinceMs }) => lastMs - sinceMs)),
  };
}
