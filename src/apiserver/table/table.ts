import type {
  ResourceDefinition,
  StoredObject,
  TableCell,
  TableColumn,
  TableRowCondition,
} from '../objects/resource-definition.ts';
import { customCell } from './custom-columns.ts';

/** A `meta.k8s.io/v1` Table, which `kubectl get` prints. */
interface Table {
  readonly kind: 'Table';
  readonly apiVersion: `meta.k8s.io/${MetaVersion}`;
  readonly metadata: TableListMeta;
  /** Null from the second event of a watch on. */
  readonly columnDefinitions: readonly TableColumnDefinition[] | null;
  readonly rows: readonly TableRow[];
}

interface TableColumnDefinition {
  readonly name: string;
  readonly type: string;
  readonly format: string;
  readonly description: string;
  readonly priority: number;
}

interface TableRow {
  readonly cells: readonly TableCell[];
  readonly conditions?: readonly TableRowCondition[];
  readonly object: unknown;
}

/** Metadata of the list or of the single object that the table shows. */
interface TableListMeta {
  readonly resourceVersion?: string;
  readonly continue?: string;
  readonly remainingItemCount?: number;
}

/** Versions of Table and PartialObjectMetadata. Their content is the same. */
export type MetaVersion = 'v1' | 'v1beta1';

/** The part of the object that a row carries besides its cells. */
export type IncludeObject = 'None' | 'Metadata' | 'Object';

interface TableOptions {
  readonly listMeta: TableListMeta;
  /** Current time for ages, in milliseconds since the Unix epoch. */
  readonly now: number;
  /** @default 'v1' */
  readonly version?: MetaVersion;
  /** @default 'Metadata' */
  readonly includeObject?: IncludeObject;
  /**
   * Omits the column definitions, as a watch does from its second event on.
   * @default false
   */
  readonly noHeaders?: boolean;
}

/** Renders objects as the table of their kind, in the given order. */
export function renderTable(
  definition: Pick<ResourceDefinition, 'columns' | 'rowConditions'>,
  objects: readonly StoredObject[],
  options: TableOptions,
): Table {
  const { listMeta, version = 'v1', noHeaders = false } = options;
  return {
    kind: 'Table',
    apiVersion: `meta.k8s.io/${version}`,
    metadata: listMeta,
    columnDefinitions: noHeaders ? null : definition.columns.map(columnDefinition),
    rows: objects.map((object) => tableRow(definition, object, options)),
  };
}

/** Renders one object as a row of the table of its kind. */
export function tableRow(
  { columns, rowConditions }: Pick<ResourceDefinition, 'columns' | 'rowConditions'>,
  object: StoredObject,
  { now, version = 'v1', includeObject = 'Metadata' }: TableOptions,
): TableRow {
  const conditions = rowConditions?.(object) ?? [];
  return {
    cells: columns.map((column) => cellOf(column, object, now)),
    ...(conditions.length > 0 && { conditions }),
    object: rowObject(object, includeObject, version),
  };
}

/** Returns the object's metadata as a PartialObjectMetadata. */
export function partialMetadata(
  object: Pick<StoredObject, 'metadata'>,
  version: MetaVersion = 'v1',
): {
  readonly kind: 'PartialObjectMetadata';
  readonly apiVersion: `meta.k8s.io/${MetaVersion}`;
  readonly metadata: StoredObject['metadata'];
} {
  return {
    kind: 'PartialObjectMetadata',
    apiVersion: `meta.k8s.io/${version}`,
    metadata: object.metadata,
  };
}

function columnDefinition(column: TableColumn): TableColumnDefinition {
  const { name, type, format = '', description = '', priority = 0 } = column;
  return { name, type, format, description, priority };
}

function cellOf(column: TableColumn, object: StoredObject, now: number): TableCell {
  const { value } = column;
  return typeof value === 'function' ? value(object, now) : customCell(column, value, object, now);
}

function rowObject(object: StoredObject, include: IncludeObject, version: MetaVersion): unknown {
  switch (include) {
    case 'None':
      return null;
    case 'Metadata':
      return partialMetadata(object, version);
    case 'Object':
      return object;
  }
}
