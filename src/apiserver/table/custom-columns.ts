import { goJson } from '../../util/go-format.ts';
import { Memo } from '../../util/memo.ts';
import type { StoredObject, TableCell, TableColumn } from '../objects/resource-definition.ts';
import { AGE_COLUMN, ageOf, NAME_COLUMN } from './column.ts';
import type { JsonPath } from './json-path.ts';
import { evaluateJsonPath, parseJsonPath } from './json-path.ts';

/** An entry of `additionalPrinterColumns` in a CRD. */
interface PrinterColumn {
  readonly name: string;
  readonly type: string;
  readonly jsonPath: string;
  readonly format?: string;
  readonly description?: string;
  readonly priority?: number;
}

/**
 * Returns the columns of a custom kind: its name and the columns of its CRD. Without columns in the
 * CRD the second column is the age. A path that does not parse drops its column and all later ones.
 */
export function customColumns(
  printerColumns: readonly PrinterColumn[] = [],
): readonly TableColumn[] {
  if (printerColumns.length === 0) return [NAME_COLUMN, CUSTOM_AGE_COLUMN];
  const firstBad = printerColumns.findIndex(({ jsonPath }) => paths.get(jsonPath) === undefined);
  const usable = firstBad < 0 ? printerColumns : printerColumns.slice(0, firstBad);
  return [NAME_COLUMN, ...usable.map(customColumn)];
}

/** Returns the cell of a JSONPath column: the first value that the path selects. */
export function customCell(
  { type }: Pick<TableColumn, 'type'>,
  jsonPath: string,
  object: StoredObject,
  nowMs: number,
): TableCell {
  const path = paths.get(jsonPath);
  const values = path && evaluateJsonPath(path, object);
  if (!values || values.length === 0) return null;
  const [value] = values;
  switch (type) {
    case 'string':
      return textOf(value);
    case 'integer':
      return typeof value === 'number' ? Math.trunc(value) : null;
    case 'number':
      return typeof value === 'number' ? value : null;
    case 'boolean':
      return typeof value === 'boolean' ? value : null;
    case 'date':
      return typeof value === 'string' ? ageOf(value, nowMs) : null;
  }
}

/** The age of a custom kind has the type `date`, which clients may format themselves. */
const CUSTOM_AGE_COLUMN: TableColumn = { ...AGE_COLUMN, type: 'date' };

function customColumn(column: PrinterColumn): TableColumn {
  const { name, type, jsonPath, format, description, priority } = column;
  return {
    name,
    type: isColumnType(type) ? type : 'string',
    format,
    description:
      description || `Custom resource definition column (in JSONPath format): ${jsonPath}`,
    priority,
    value: jsonPath,
  };
}

const COLUMN_TYPES: ReadonlySet<string> = new Set([
  'string',
  'integer',
  'number',
  'boolean',
  'date',
] satisfies TableColumn['type'][]);

function isColumnType(type: string): type is TableColumn['type'] {
  return COLUMN_TYPES.has(type);
}

/** Bounded, because CRDs are created and deleted at runtime. */
const paths = new Memo(1000, parsePath);

/** The parsed path; undefined if it does not parse. */
function parsePath(jsonPath: string): JsonPath | undefined {
  try {
    return parseJsonPath(jsonPath);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** A value as upstream prints it into a string cell: strings unquoted, other values as JSON. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value === null) return '<nil>';
  return goJson(value);
}
