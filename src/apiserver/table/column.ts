import { objectIn, objectsIn, textIn } from '../../util/json-value.ts';
import type { DeepReadonly, KubernetesObject } from '../../api/object.ts';
import { fieldPath, textOf, valueAtPath } from '../objects/field-path.ts';
import type {
  ApiObject,
  StoredAs,
  StoredObject,
  TableCell,
  TableColumn,
} from '../objects/resource-definition.ts';

/** Options of a column that only `-o wide` shows. */
export const WIDE = { priority: 1 } as const;

type Options = Partial<Pick<TableColumn, 'type' | 'format' | 'priority'>>;

/** A column with a computed cell. `T` is the type of the objects. */
export function column<T extends KubernetesObject = ApiObject>(
  name: string,
  description: string,
  value: (object: DeepReadonly<T>, nowMs: number) => TableCell,
  options: Options = {},
): TableColumn {
  return {
    name,
    type: 'string',
    description,
    ...options,
    // The server stores under a definition only objects of its kind, so they are of its type.
    value: (object, nowMs) => value(object as DeepReadonly<T>, nowMs),
  };
}

/** A column that only `-o wide` shows. */
export function wide<T extends KubernetesObject = ApiObject>(
  name: string,
  description: string,
  value: (object: DeepReadonly<T>, nowMs: number) => TableCell,
  options: Options = {},
): TableColumn {
  return column<T>(name, description, value, { ...WIDE, ...options });
}

/** A column with the field at a path, as text; `absent` if it has no value. */
export function field(name: string, path: string, absent = '', options: Options = {}): TableColumn {
  return fieldColumn(name, path, (value) => textOf(value, absent), options);
}

/** A column with the number at a path, 0 if it is absent. */
export function numeric(
  name: string,
  path: string,
  type: 'integer' | 'string' = 'integer',
): TableColumn {
  return fieldColumn(name, path, (value) => (typeof value === 'number' ? value : 0), { type });
}

export function flagColumn(name: string, path: string, absent = false): TableColumn {
  const options = { type: 'boolean' } as const;
  return fieldColumn(name, path, (value) => (typeof value === 'boolean' ? value : absent), options);
}

/** A column with the number of entries of the list at a path. */
export function count(name: string, path: string): TableColumn {
  const { value } = fieldColumn(name, path, (list) => (Array.isArray(list) ? list.length : 0));
  return { name, type: 'integer', description: `Number of entries in ${path}.`, value };
}

export function fieldColumn(
  name: string,
  path: string,
  cell: (value: unknown) => TableCell,
  options: Options = {},
): TableColumn {
  const fields = fieldPath(path);
  return column(name, `Value of ${path}.`, (object) => cell(valueAtPath(object, fields)), options);
}

/** `deployments.apps`, or the name alone in the core group. */
export function qualifiedName(name: string, group: string): string {
  return group ? `${name}.${group}` : name;
}

/** The first of the types of a condition with status True. */
export function trueCondition(object: StoredObject, types: readonly string[]): string | undefined {
  const isTrue = new Set(
    objectsIn(objectIn(object, 'status'), 'conditions')
      .filter((condition) => condition['status'] === 'True')
      .map((condition) => textIn(condition, 'type')),
  );
  return types.find((type) => isTrue.has(type));
}

export const NAME_COLUMN: TableColumn = column(
  'Name',
  'Unique within the namespace, or within the cluster.',
  ({ metadata }) => metadata.name,
  { format: 'name' },
);

export const AGE_COLUMN: TableColumn = column(
  'Age',
  'Time since the object was created.',
  ({ metadata }, nowMs) => ageOf(metadata.creationTimestamp, nowMs),
);

export const CREATED_AT_COLUMN: TableColumn = column(
  'Created At',
  'Time when the object was created.',
  // A bookmark has Go's zero time.
  ({ metadata }) => metadata.creationTimestamp || '0001-01-01T00:00:00Z',
  { type: 'date' },
);

/** Maximum of Go's durations. */
const MAX_SECONDS = 9_223_372_036;

/**
 * A duration as Kubernetes prints ages, with two or three significant figures: `45s`, `2m10s`,
 * `3h5m`, `2d`, `1y30d`. Clocks differ: up to one second in the future is `0s`, more is `<invalid>`.
 */
export function humanDuration(ms: number): string {
  const seconds = Math.min(MAX_SECONDS, Math.trunc(ms / 1000));
  if (seconds < -1) return '<invalid>';
  if (seconds < 0) return '0s';
  if (seconds < 2 * 60) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return pair(minutes, 'm', seconds % 60, 's');
  if (minutes < 3 * 60) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 8) return pair(hours, 'h', minutes % 60, 'm');
  if (hours < 48) return `${hours}h`;
  const days = Math.floor(hours / 24);
  if (days < 8) return pair(days, 'd', hours % 24, 'h');
  if (days < 2 * 365) return `${days}d`;
  const years = Math.floor(days / 365);
  return years < 8 ? pair(years, 'y', days % 365, 'd') : `${years}y`;
}

/** Age of an RFC 3339 `timestamp`: `<unknown>` if it is absent, `<invalid>` if it is malformed. */
export function ageOf(timestamp: string | null | undefined, nowMs: number): string {
  if (!timestamp) return '<unknown>';
  if (!RFC_3339.test(timestamp)) return '<invalid>';
  const thenMs = Date.parse(timestamp);
  return Number.isNaN(thenMs) ? '<invalid>' : humanDuration(nowMs - thenMs);
}

const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;

function pair(whole: number, unit: string, rest: number, restUnit: string): string {
  return rest === 0 ? `${whole}${unit}` : `${whole}${unit}${rest}${restUnit}`;
}

/** Returns the columns between those of the name and the age. */
export function columns(...own: readonly TableColumn[]): readonly TableColumn[] {
  return [NAME_COLUMN, ...own, AGE_COLUMN];
}

/** Columns of a kind for which upstream has no printer. */
export const DEFAULT_COLUMNS: readonly TableColumn[] = [NAME_COLUMN, CREATED_AT_COLUMN];

/** Returns the columns of a stored kind for another representation of its objects. */
export function columnsOfStored(
  stored: readonly TableColumn[],
  toStored: StoredAs['toStored'],
): readonly TableColumn[] {
  return stored.map((each) => {
    const { value } = each;
    if (typeof value === 'string') return each;
    // The conversion copies what it changes.
    return { ...each, value: (object, nowMs) => value(toStored(object as ApiObject), nowMs) };
  });
}
