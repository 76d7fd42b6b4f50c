import { oncePerObject } from '../util/memo.ts';
import { MICRO_TIME, TIME } from '../api/formats.ts';
import type { JsonSchema } from '../api/json-schema.ts';
import { requireDepth } from '../util/json-value.ts';
import type { CelType } from './values/type.ts';
import { BOOL, DOUBLE, INT, STRING, listOf, mapOf } from './values/type.ts';

/** The CEL declaration of a schema. */
export interface Declared {
  readonly type: CelType;
  /** Minimum length of such a value in JSON. */
  readonly minSize: number;
  /** Declared properties of an object by unescaped name. */
  readonly fields?: ReadonlyMap<string, Declared>;
  /** Declaration of the items of a list or of the values of a map. */
  readonly item?: Declared;
}

/** Maximum request size in bytes, which limits all values of an object. */
export const MAX_REQUEST: number = 3 * 1024 * 1024;

/**
 * Returns the CEL declaration of a schema, or undefined if rules cannot access the value: its fields
 * are unknown, or it contains only such values.
 *
 * @param isResource whether this is the root of a resource, possibly embedded: its type and name are
 *   always declared
 * @throws {NestingError} if the schema is nested too deeply
 */
export function declare(schema: JsonSchema, isResource: boolean): Declared | undefined {
  return declareAt(schema, isResource, 'object', 0);
}

function declareAt(
  schema: JsonSchema,
  isResource: boolean,
  name: string,
  depth: number,
): Declared | undefined {
  requireDepth(depth);
  const { maxLength } = schema;
  if (schema['x-kubernetes-int-or-string'] || schema.format === 'int-or-string') {
    const max = maxLength === undefined ? MAX_REQUEST - 2 : atLeastZero(maxLength) * 4;
    return { type: { kind: 'dyn', max }, minSize: 1 };
  }
  switch (schema.type) {
    case 'array':
      return declareList(schema, name, depth);
    case 'object':
      return declareObject(schema, isResource, name, depth);
    case 'string':
      return declareString(schema);
    case 'boolean':
      return { type: BOOL, minSize: 4 };
    case 'number':
      return { type: DOUBLE, minSize: 1 };
    case 'integer':
      return { type: INT, minSize: 1 };
    default:
      return undefined;
  }
}

function declareList(schema: JsonSchema, name: string, depth: number): Declared | undefined {
  const { items, maxItems } = schema;
  if (!items) return undefined;
  const item = declareAt(items, isEmbedded(items), `${name}.@idx`, depth + 1);
  if (!item) return undefined;
  const max =
    maxItems === undefined
      ? Math.floor((MAX_REQUEST - 2) / (item.minSize + 1))
      : atLeastZero(maxItems);
  return { type: listOf(item.type, max), minSize: 2, item };
}

function declareObject(
  schema: JsonSchema,
  isResource: boolean,
  name: string,
  depth: number,
): Declared | undefined {
  const { additionalProperties: values, maxProperties } = schema;
  if (typeof values === 'object') {
    const item = declareAt(values, isEmbedded(values), `${name}.@elem`, depth + 1);
    if (!item) return undefined;
    const max =
      maxProperties === undefined
        ? Math.floor((MAX_REQUEST - 2) / (item.minSize + 6))
        : atLeastZero(maxProperties);
    return { type: mapOf(STRING, item.type, max), minSize: 2, item };
  }
  const fields = new Map<string, Declared>();
  const visible = new Map<string, CelType>();
  let minSize = 2;
  const { properties = {} } = isResource ? withTypeAndName(schema) : schema;
  for (const [key, property] of Object.entries(properties)) {
    const field = declareAt(property, isEmbedded(property), `${name}.${key}`, depth + 1);
    if (!field) continue;
    const escaped = escapeName(key);
    if (escaped !== undefined) {
      fields.set(key, field);
      visible.set(escaped, field.type);
    }
    if (schema.required?.includes(key) && property.default === undefined) {
      minSize += key.length + field.minSize + 4;
    }
  }
  return { type: { kind: 'object', name, fields: visible }, minSize, fields };
}

function declareString({ format, maxLength, enum: values }: JsonSchema): Declared {
  switch (format) {
    case 'byte':
      return {
        type: {
          kind: 'bytes',
          max: maxLength === undefined ? MAX_REQUEST - 2 : atLeastZero(maxLength),
        },
        minSize: 2,
      };
    case 'duration':
      return { type: { kind: 'duration', max: 32 }, minSize: 3 };
    case 'date':
      return { type: { kind: 'timestamp', max: 12 }, minSize: 12 };
    case 'date-time':
    case TIME:
    case MICRO_TIME:
      return { type: { kind: 'timestamp', max: 32 }, minSize: 21 };
    default:
  }
  const longest = (values ?? []).reduce<number>(
    (most, value) => Math.max(most, String(value).length),
    0,
  );
  const unbounded = values && values.length > 0 ? longest : MAX_REQUEST - 2;
  const max = maxLength === undefined ? unbounded : atLeastZero(maxLength) * 4;
  return { type: { kind: 'string', max }, minSize: 2 };
}

const TEXT: JsonSchema = { type: 'string' };

/** Returns the schema of a resource with the type and name fields that rules can always access. */
export const withTypeAndName: (schema: JsonSchema) => JsonSchema = oncePerObject((schema) => {
  const { name = TEXT, generateName = TEXT } = schema.properties?.['metadata']?.properties ?? {};
  const metadata = { type: 'object', properties: { name, generateName } } as const;
  return {
    ...schema,
    properties: { ...schema.properties, apiVersion: TEXT, kind: TEXT, metadata },
  };
});

export function isEmbedded(schema: JsonSchema): boolean {
  return schema['x-kubernetes-embedded-resource'] === true;
}

function atLeastZero(limit: number): number {
  return Math.max(0, limit);
}

/** Reserved words of CEL. */
const RESERVED: ReadonlySet<string> = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
);

const SEQUENCES: ReadonlyMap<string, string> = new Map([
  ['__', '__underscores__'],
  ['.', '__dot__'],
  ['-', '__dash__'],
  ['/', '__slash__'],
]);

/**
 * Returns the CEL name of a property: `foo-bar` is `foo__dash__bar`, `namespace` is `__namespace__`.
 * Returns undefined if the name cannot be escaped.
 */
export function escapeName(name: string): string | undefined {
  if (RESERVED.has(name)) return `__${name}__`;
  if (!/^[a-zA-Z_./-][\w./-]*$/.test(name)) return undefined;
  return name.replace(/__|[-./]/g, (part) => SEQUENCES.get(part) ?? part);
}

/** Returns a field by its CEL name. A reserved word also stands for itself: `metadata.namespace`. */
export function fieldOf<T>(fields: ReadonlyMap<string, T>, name: string): T | undefined {
  return fields.get(name) ?? (RESERVED.has(name) ? fields.get(`__${name}__`) : undefined);
}
