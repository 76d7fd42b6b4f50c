import { equalJson } from '../../api/equal.ts';
import type { DeepReadonly, KubernetesObject } from '../../api/object.ts';
import type { Resource } from '../../api/resource.ts';
import { changedPaths, valueAt } from '../../api/field-path.ts';
import type { FieldPath } from '../../api/field-path.ts';
import type { ObjectKey } from '../../api/object-key.ts';

/** What is known of the run that made a write. */
export interface WritingRun {
  /** Nothing woke it, and nothing happened meanwhile, but what the key itself had written. */
  alone: boolean;
  /** It created or deleted something: it makes progress, whatever else it writes. */
  progressed: boolean;
}

/** One change of an object, as its cache showed it. */
export interface Change {
  readonly before: DeepReadonly<KubernetesObject>;
  readonly after: DeepReadonly<KubernetesObject>;
}

/** A field that a key writes, and how it fares. */
export interface WrittenField {
  readonly path: FieldPath;
  /** Runs that changed it though only the key's own writes had woken them. */
  selfFed: number;
  /** Times that others changed it after the key had. */
  overwritten: number;
  /** The last run that counted. */
  lastRun: WritingRun | undefined;
  lastBy: 'us' | 'others';
  /** When the counts began, and when they last grew, on the monotonic clock. */
  sinceMs: number;
  lastMs: number;
}

/** What happens more rarely than this, in milliseconds, costs nobody anything: it is not hot. */
export const LONGEST_GAP_MS = 60_000;

/** Bounds on what is kept of an object: its author decides how much it has. */
const MOST_VERSIONS = 4;
const MOST_FIELDS = 16;
const MOST_CHANGED = 8;

/** An object that a key writes: which of its versions are the key's own, and which fields flap. */
export class WrittenObject {
  readonly resource: Resource;
  readonly namespace: string | undefined;
  readonly name: string;
  readonly #fields: WrittenField[] = [];
  /** The key's own, latest last. */
  readonly #versions: { readonly version: string; readonly run: WritingRun }[] = [];
  #fieldManager: string | undefined;
  #isShared = false;

  constructor(resource: Resource, namespace: string | undefined, name: string) {
    this.resource = resource;
    this.namespace = namespace;
    this.name = name;
  }

  /** Who the key writes it as, if its writes say so. */
  get fieldManager(): string | undefined {
    return this.#fieldManager;
  }

  get fields(): readonly WrittenField[] {
    return this.#fields;
  }

  is(resource: Resource, namespace: string | undefined, name: string): boolean {
    if (this.name !== name || this.namespace !== namespace) return false;
    const { group, plural } = this.resource;
    return group === resource.group && plural === resource.plural;
  }

  /** A write of the key was answered with this version. */
  wrote(version: string, run: WritingRun, fieldManager: string | undefined): void {
    this.#fieldManager = fieldManager ?? this.#fieldManager;
    this.#versions.push({ version, run });
    if (this.#versions.length > MOST_VERSIONS) this.#versions.shift();
  }

  /** The run that wrote this version; undefined if others did. */
  writerOf(version: string): WritingRun | undefined {
    return this.#versions.find((write) => write.version === version)?.run;
  }

  /**
   * The key's own write has changed the object.
   *
   * @param always look even where there is no suspicion
   * @returns the fields that it changed
   */
  ownChange({ before, after }: Change, run: WritingRun, now: number, always: boolean): FieldPath[] {
    const selfFed = run.alone && !run.progressed;
    if (!selfFed) this.#relent();
    if (!selfFed && !this.#isShared && !always) return [];
    const paths = changedPaths(before, after, MOST_CHANGED);
    for (const path of paths) {
      const field = this.#fieldAt(path, now);
      if (selfFed && field.lastRun !== run) this.#count(field, 'selfFed', now);
      field.lastRun = run;
      field.lastBy = 'us';
    }
    return paths;
  }

  /** Others change the object, too: what the key changes is of interest from now on. */
  share(): void {
    this.#isShared = true;
  }

  /** Others have changed the object: did they change what the key had written? */
  foreignChange({ before, after }: Change, now: number): void {
    for (const field of this.#fields) {
      const { path, lastBy } = field;
      if (lastBy === 'others' || equalJson(valueAt(before, path), valueAt(after, path))) continue;
      this.#count(field, 'overwritten', now);
      field.lastBy = 'others';
    }
  }

  /** Begins anew, once a loop is over. */
  reset(): void {
    this.#fields.length = 0;
  }

  /** There was a reason to write: that speaks against a key that feeds itself. */
  #relent(): void {
    for (const field of this.#fields) field.selfFed = Math.max(0, field.selfFed - 1);
  }

  #count(field: WrittenField, what: 'selfFed' | 'overwritten', now: number): void {
    if (now - field.lastMs > LONGEST_GAP_MS) {
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
      lastRun: undefined,
      lastBy: 'us',
      sinceMs: now,
      lastMs: now,
    };
    this.#fields.push(field);
    if (this.#fields.length > MOST_FIELDS) this.#fields.shift();
    return field;
  }
}

function isSamePath(a: FieldPath, b: FieldPath): boolean {
  return a.length === b.length && a.every((step, at) => step === b[at]);
}

/** A key that keeps waking itself. */
export interface HotLoop {
  readonly key: ObjectKey;
  /** `selfFed`: by its own writes alone. `disputed`: by writes that others overwrite. */
  readonly kind: 'selfFed' | 'disputed';
  /** Of the object whose fields flap: the key's own or another, as a child. */
  readonly resource: Resource;
  readonly namespace: string | undefined;
  readonly name: string;
  /** The fields that flap, a few of them. */
  readonly paths: readonly FieldPath[];
  /** How often they had flapped when it was found, in how many milliseconds. */
  readonly times: number;
  readonly withinMs: number;
  /** Who the key writes as, if its writes say so. */
  readonly fieldManager: string | undefined;
}

/** Changes of a field, by as many runs that only own writes had woken, that make a hot loop. */
export const SELF_FED_CHANGES = 10;

/** Times that others change a field after the key has that make a hot loop. */
export const OVERWRITES = 5;

const MOST_PATHS = 3;

/** The loop that `key` is in, by what is known of the objects that it writes. */
export function findLoop(key: ObjectKey, objects: readonly WrittenObject[]): HotLoop | undefined {
  for (const { fields, resource, namespace, name, fieldManager } of objects) {
    const about = { key, resource, namespace, name, fieldManager };
    const selfFed = fields.filter((field) => field.selfFed >= SELF_FED_CHANGES);
    if (selfFed.length > 0) return { ...about, ...summary('selfFed', selfFed) };
    // While it is as the others want it, it can be found out who they are.
    const disputed = fields.filter(
      ({ overwritten, lastBy }) => overwritten >= OVERWRITES && lastBy === 'others',
    );
    if (disputed.length > 0) return { ...about, ...summary('disputed', disputed) };
  }
  return undefined;
}

function summary(
  kind: HotLoop['kind'],
  fields: readonly WrittenField[],
): Pick<HotLoop, 'kind' | 'paths' | 'times' | 'withinMs'> {
  const count = (field: WrittenField) => (kind === 'selfFed' ? field.selfFed : field.overwritten);
  return {
    kind,
    paths: fields.slice(0, MOST_PATHS).map(({ path }) => path),
    times: Math.max(...fields.map(count)),
    withinMs: Math.max(...fields.map(({ lastMs, sinceMs }) => lastMs - sinceMs)),
  };
}
