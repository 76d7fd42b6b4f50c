import type { DeepReadonly, KubernetesObject } from '../../api/object.ts';
import type { StoredObject, TableCell, TableColumn } from '../resource-definition.ts';
import { ageOf } from './human-duration.ts';

type Value<T> = (object: DeepReadonly<T>, nowMs: number) => TableCell;
type Options = Partial<Pick<TableColumn, 'type' | 'format'>>;

type MakeColumn<T> = (
  name: string,
  description: string,
  value: Value<T>,
  options?: Options,
) => TableColumn;

/** Makes columns for objects of type `T`. */
export interface ColumnMaker<T> {
  readonly column: MakeColumn<T>;
  /** A column that only `-o wide` shows. */
  readonly wide: MakeColumn<T>;
}

export function columnsFor<T extends KubernetesObject>(): ColumnMaker<T> {
  const make =
    (priority: number): MakeColumn<T> =>
    (name, description, value, options = {}) => ({
      name,
      type: 'string',
      description,
      priority,
      ...options,
      // The server stores under a definition only objects of its kind, so they are of its type.
      value: (object: StoredObject, nowMs: number) => value(object as DeepReadonly<T>, nowMs),
    });
  return { column: make(0), wide: make(1) };
}

const { column } = columnsFor<KubernetesObject>();

export const NAME_COLUMN: TableColumn = column(
  'Name',
  'Unique within the namespace, or the cluster.',
  ({ metadata }) => metadata.name,
  { format: 'name' },
);

export const AGE_COLUMN: TableColumn = column(
  'Age',
  'Time since the object was created.',
  ({ metadata }, nowMs) => ageOf(metadata.creationTimestamp, nowMs),
);
