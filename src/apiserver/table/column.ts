import type { DeepReadonly, KubernetesObject } from '../../api/object.ts';
import type { StoredObject, TableCell, TableColumn } from '../resource-definition.ts';

/** A condition of a table row. kubectl hides the rows of completed Pods on request. */
export interface TableRowCondition {
  readonly type: 'Completed';
  readonly status: 'True';
  readonly reason: string;
  readonly message: string;
}

type Options = Partial<Pick<TableColumn, 'type' | 'format' | 'priority'>>;

type MakeColumn<T> = (
  name: string,
  description: string,
  value: (object: DeepReadonly<T>, nowMs: number) => TableCell,
  options?: Options,
) => TableColumn;

/** Makes columns for objects of type `T`. */
interface ColumnMaker<T> {
  readonly column: MakeColumn<T>;
  readonly integer: MakeColumn<T>;
  /** A column that only `-o wide` shows. */
  readonly wide: MakeColumn<T>;
}

export function columnsFor<T extends KubernetesObject>(): ColumnMaker<T> {
  const make =
    (defaults: Options): MakeColumn<T> =>
    (name, description, value, options = {}) => ({
      name,
      type: 'string',
      description,
      priority: 0,
      ...defaults,
      ...options,
      // The server stores under a definition only objects of its kind, so they are of its type.
      value: (object: StoredObject, nowMs: number) => value(object as DeepReadonly<T>, nowMs),
    });
  return { column: make({}), integer: make({ type: 'integer' }), wide: make({ priority: 1 }) };
}

const { column } = columnsFor<KubernetesObject>();

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
  ({ metadata }) => metadata.creationTimestamp,
  { type: 'date' },
);

/**
 * A duration as Kubernetes prints ages, with two or three significant figures: `45s`, `2m10s`,
 * `3h5m`, `2d`, `1y30d`. Clocks differ: up to one second in the future is `0s`, more is `<invalid>`.
 */
export function humanDuration(ms: number): string {
  const seconds = Math.trunc(ms / 1000);
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
/** Columns of a kind for which upstream has no printer. */
export const DEFAULT_COLUMNS: readonly TableColumn[] = [NAME_COLUMN, CREATED_AT_COLUMN];

/** Returns the columns of a stored kind for another representation of its objects. */
export function columnsOfStored(
  columns: readonly TableColumn[],
  toStored: (object: StoredObject) => StoredObject,
): readonly TableColumn[] {
  const convert = (column: TableColumn): TableColumn => {
    const { value } = column;
    if (typeof value === 'string') return column;
    return { ...column, value: (object, nowMs) => value(toStored(object), nowMs) };
  };
  return columns.map(convert);
}
