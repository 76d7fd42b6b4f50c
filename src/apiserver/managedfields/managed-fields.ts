import type { ManagedFieldsEntry } from '../../api/object.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { NestingError, own } from '../../util/json-value.ts';
import { compareText, isRecord } from '../../util/values.ts';
import type { FieldSetPath } from './field-set.ts';
import { FieldSet } from './field-set.ts';

/** A field manager and the fields that it owns. */
export interface FieldManager {
  readonly name: string;
  readonly operation: 'Apply' | 'Update';
  readonly apiVersion: string;
  readonly subresource?: string | undefined;
  /** Time of the last change of its fields, RFC 3339. */
  readonly time?: string | undefined;
  readonly fields: FieldSet;
}

/** Maximum number of Update entries of an object. Older entries beyond it are merged. */
const MAX_UPDATE_MANAGERS = 10;

/** Manager name of merged Update entries. */
const OLD_UPDATES = 'ancient-changes';

/**
 * The field managers of an object, `metadata.managedFields`. Immutable. An unchanged entry is written
 * back as the same object.
 */
export class Managers {
  static readonly NONE: Managers = new Managers(new Map(), new Map());

  readonly #byId: ReadonlyMap<string, FieldManager>;
  /** The entries that the managers were read from. */
  readonly #entries: ReadonlyMap<FieldManager, ManagedFieldsEntry>;

  private constructor(
    byId: ReadonlyMap<string, FieldManager>,
    entries: ReadonlyMap<FieldManager, ManagedFieldsEntry>,
  ) {
    this.#byId = byId;
    this.#entries = entries;
  }

  /** Reads `metadata.managedFields`. Returns undefined if any part of it is invalid. */
  static parse(managedFields: unknown): Managers | undefined {
    if (managedFields === undefined || managedFields === null) return Managers.NONE;
    if (!Array.isArray(managedFields)) return undefined;
    const byId = new Map<string, FieldManager>();
    const entries = new Map<FieldManager, ManagedFieldsEntry>();
    for (const entry of managedFields as readonly unknown[]) {
      const manager = parseEntry(entry);
      if (!manager) return undefined;
      byId.set(idOf(manager), manager);
      entries.set(manager, entry as ManagedFieldsEntry);
    }
    return new Managers(byId, entries);
  }

  /** Reads the managers of an object like `parse`. */
  static of(object: Readonly<JsonObject> | undefined): Managers | undefined {
    return Managers.parse(managedFieldsOf(object));
  }

  get isEmpty(): boolean {
    return this.#byId.size === 0;
  }

  [Symbol.iterator](): Iterator<FieldManager> {
    return this.#byId.values();
  }

  /** Returns the manager with the same name, operation and subresource. */
  find(manager: Omit<FieldManager, 'fields'>): FieldManager | undefined {
    return this.#byId.get(idOf(manager));
  }

  /** Returns a copy in which `manager` replaces the one with its id. A manager without fields is removed. */
  with(manager: FieldManager): Managers {
    const id = idOf(manager);
    const present = this.#byId.get(id);
    if (present && isSame(present, manager)) return this;
    const byId = new Map(this.#byId);
    if (manager.fields.isEmpty) byId.delete(id);
    else byId.set(id, manager);
    return new Managers(byId, this.#entries);
  }

  /** Returns a copy with the fields of each manager mapped. Managers without fields are removed. */
  map(fields: (manager: FieldManager) => FieldSet): Managers {
    let changed = false;
    const byId = new Map<string, FieldManager>();
    for (const [id, manager] of this.#byId) {
      const next = fields(manager);
      if (next !== manager.fields || next.isEmpty) changed = true;
      if (!next.isEmpty)
        byId.set(id, next === manager.fields ? manager : { ...manager, fields: next });
    }
    return changed ? new Managers(byId, this.#entries) : this;
  }

  /** Returns a copy with at most ten Update managers. Merges the oldest of each API version. */
  capped(): Managers {
    if (this.#byId.size <= MAX_UPDATE_MANAGERS) return this;
    const updaters = [...this.#byId]
      .filter(([, manager]) => manager.operation === 'Update')
      .sort(([a, left], [b, right]) => secondsOf(left) - secondsOf(right) || (a < b ? -1 : 1));
    let surplus = updaters.length - MAX_UPDATE_MANAGERS;
    if (surplus <= 0) return this;
    const byId = new Map(this.#byId);
    const oldest = new Map<string, string>();
    for (const [id, manager] of updaters) {
      if (surplus <= 0) break;
      const { apiVersion, time } = manager;
      const first = oldest.get(apiVersion);
      if (first === undefined) {
        oldest.set(apiVersion, id);
        continue;
      }
      const bucket = { name: OLD_UPDATES, operation: 'Update', apiVersion } as const;
      const bucketId = idOf(bucket);
      if (id === bucketId) continue;
      // The first of a version becomes the bucket, unless the version has one already.
      const into = byId.get(bucketId) ?? byId.get(first);
      if (!byId.has(bucketId)) byId.delete(first);
      byId.delete(id);
      const fields = manager.fields.union(into?.fields ?? FieldSet.EMPTY);
      byId.set(bucketId, { ...bucket, time, fields });
      surplus--;
    }
    return new Managers(byId, this.#entries);
  }

  /**
   * Returns `metadata.managedFields`: Apply before Update, older before newer.
   *
   * @param others managers that may have the id of another one
   */
  toEntries(others: readonly FieldManager[] = []): ManagedFieldsEntry[] {
    return [...this.#byId.values(), ...others]
      .sort(compareManagers)
      .map((manager) => this.#entries.get(manager) ?? toEntry(manager));
  }

  /** Whether they do not fit into a stored object, which then has no managers, as upstream. */
  get isTooLarge(): boolean {
    let length = 0;
    for (const { fields } of this.#byId.values()) length += fields.length;
    return length > MAX_STORED_LENGTH;
  }

  /** Whether `metadata.managedFields` of `object` has exactly these entries, in this order. */
  equalEntriesOf(object: Readonly<JsonObject>): boolean {
    const written = managedFieldsOf(object);
    const entries = this.toEntries();
    if (!Array.isArray(written)) return entries.length === 0;
    return (
      entries.length === written.length && entries.every((entry, index) => entry === written[index])
    );
  }
}

/** Maximum size of a request to etcd. */
const MAX_STORED_LENGTH = 1.5 * 1024 * 1024;

/** Returns `object` with these managers in its metadata. Without managers the field is absent. */
export function withManagers(object: Readonly<JsonObject>, managers: Managers): JsonObject {
  const metadata = own(object, 'metadata');
  const { managedFields: _, ...rest } = isRecord(metadata) ? metadata : {};
  const entries = managers.toEntries();
  return {
    ...object,
    metadata: entries.length === 0 ? rest : { ...rest, managedFields: entries },
  };
}

export function managedFieldsOf(object: Readonly<JsonObject> | undefined): unknown {
  const metadata = object && own(object, 'metadata');
  return isRecord(metadata) ? own(metadata, 'managedFields') : undefined;
}

function parseEntry(entry: unknown): FieldManager | undefined {
  if (!isRecord(entry)) return undefined;
  const { manager: name = '', operation, apiVersion, fieldsType, subresource } = entry;
  // Go's zero time is null.
  const time = entry['time'] ?? undefined;
  if (operation !== 'Apply' && operation !== 'Update') return undefined;
  if (typeof name !== 'string' || typeof apiVersion !== 'string' || apiVersion === '') {
    return undefined;
  }
  if (fieldsType !== 'FieldsV1') return undefined;
  if (!isOptionalString(time) || !isOptionalString(subresource)) return undefined;
  try {
    const fields = FieldSet.fromJson(entry['fieldsV1'] ?? {});
    return { name, operation, apiVersion, subresource: subresource || undefined, time, fields };
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof NestingError) return undefined;
    throw error;
  }
}

function isOptionalString(value: unknown): value is string | undefined {
  return value === undefined || typeof value === 'string';
}

/** The id of a manager. An Update manager has one entry for each API version, an Apply manager one. */
function idOf(manager: Omit<FieldManager, 'fields'>): string {
  const { name, operation, subresource = '', apiVersion } = manager;
  return JSON.stringify([operation, name, subresource, operation === 'Update' ? apiVersion : '']);
}

function toEntry(manager: FieldManager): ManagedFieldsEntry {
  const { name, operation, apiVersion, time, subresource, fields } = manager;
  return {
    manager: name,
    operation,
    apiVersion,
    ...(time !== undefined && { time }),
    fieldsType: 'FieldsV1',
    fieldsV1: fields.toJson(),
    ...(subresource !== undefined && { subresource }),
  };
}

function isSame(a: FieldManager, b: FieldManager): boolean {
  return a.time === b.time && a.apiVersion === b.apiVersion && a.fields.equals(b.fields);
}

function compareManagers(a: FieldManager, b: FieldManager): number {
  return (
    compareText(a.operation, b.operation) ||
    secondsOf(a) - secondsOf(b) ||
    compareText(a.name, b.name) ||
    compareText(a.apiVersion, b.apiVersion) ||
    compareText(a.subresource ?? '', b.subresource ?? '')
  );
}

function secondsOf(manager: FieldManager): number {
  const ms = manager.time === undefined ? Number.NaN : Date.parse(manager.time);
  return Number.isNaN(ms) ? 0 : Math.floor(ms / 1000);
}

/** Fields without a manager: they identify the object, or only the server writes them. */
export const UNMANAGED: FieldSet = FieldSet.ofPaths([
  ['f:apiVersion'],
  ['f:kind'],
  ['f:metadata'],
  ...[
    'name',
    'namespace',
    'creationTimestamp',
    'selfLink',
    'uid',
    'clusterName',
    'generation',
    'managedFields',
    'resourceVersion',
  ].map((name): FieldSetPath => ['f:metadata', `f:${name}`]),
]);
