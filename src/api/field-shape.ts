import { BUILTIN_KINDS, BUILTIN_SHAPES } from './generated/builtin/field-shapes.ts';

/**
 * How writers share a field, as in server-side apply. By default, other writers may add members to an object, and a list
 * is written as a whole.
 */
export interface FieldShape {
  /** An object that is written as a whole (`x-kubernetes-map-type: atomic`). */
  readonly atomic?: boolean;
  /** Shape of the elements of a list that is merged (`x-kubernetes-list-type: map` or `set`). */
  readonly items?: FieldShape;
  /** Shape of the values of a map, or of the elements of a list that is written as a whole. */
  readonly values?: FieldShape;
  /** Shapes of fields that differ from the default shape. */
  readonly fields?: Readonly<Record<string, FieldShape>>;
  /** Default of the server, in a value that is written as a whole. */
  readonly default?: unknown;
}

/** The part of a schema that determines the shape. */
export interface ShapeSchema {
  readonly type?: string;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, ShapeSchema>>;
  readonly additionalProperties?: ShapeSchema | boolean;
  readonly items?: ShapeSchema;
  readonly 'x-kubernetes-list-type'?: string;
  readonly 'x-kubernetes-map-type'?: string;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

const ATOMIC: FieldShape = { atomic: true };
const PLAIN: FieldShape = {};

let types: ReadonlyMap<string, FieldShape> | undefined;
let kinds: ReadonlyMap<string, string> | undefined;

/** Returns the shape of the objects of a built-in kind, or undefined. */
export function builtinShape(apiVersion: string, kind: string): FieldShape | undefined {
  kinds ??= parseKinds();
  const type = kinds.get(`${apiVersion} ${kind}`);
  return type === undefined ? undefined : shapeOf(type);
}

function shapeOf(type: string): FieldShape {
  types ??= parseTypes();
  return types.get(type) ?? PLAIN;
}

function parseKinds(): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const line of BUILTIN_KINDS.trim().split('\n')) {
    const [groupVersion, ...names] = line.split(' ');
    for (const name of names) {
      const [kind = '', type = kind] = name.split('=');
      found.set(`${groupVersion} ${kind}`, type);
    }
  }
  return found;
}

function parseTypes(): ReadonlyMap<string, FieldShape> {
  const lines = BUILTIN_SHAPES.trim()
    .split('\n')
    .map((line) => line.split(' '));
  // Types refer to each other.
  const found = new Map(lines.map(([name = '']): [string, Writable<FieldShape>] => [name, {}]));
  const resolve = (token: string): FieldShape => {
    if (token === '!') return ATOMIC;
    if (token.startsWith('[]')) return { items: resolve(token.slice(2)) };
    if (token.startsWith('{}')) return { values: resolve(token.slice(2)) };
    return found.get(token) ?? PLAIN;
  };
  for (const [name = '', ...fields] of lines) {
    const shapes = fields.map((field): [string, FieldShape] => {
      const at = field.lastIndexOf('=');
      return [field.slice(0, at), resolve(field.slice(at + 1))];
    });
    Object.assign(found.get(name) ?? {}, { fields: Object.fromEntries(shapes) });
  }
  return found;
}

/** Returns the shape of a custom kind with the metadata that all kinds have. */
export function withMetadata(shape: FieldShape): FieldShape {
  return { ...shape, fields: { ...shape.fields, metadata: shapeOf('ObjectMeta') } };
}

/**
 * Returns the shape of the objects of a custom kind, without metadata and status; undefined if no field is written as a
 * whole, or merged.
 */
export function customShape(schema: ShapeSchema): FieldShape | undefined {
  const { status: _, metadata: __, ...properties } = schema.properties ?? {};
  const own = { ...schema, properties };
  return hasWhole(own) ? schemaShape(own, false) : undefined;
}

/** Returns whether a schema has a list, or an object that is written as a whole. */
function hasWhole(schema: ShapeSchema): boolean {
  const { type, properties = {}, additionalProperties } = schema;
  const isWhole = type === 'array' || schema['x-kubernetes-map-type'] === 'atomic';
  const values = typeof additionalProperties === 'object' && hasWhole(additionalProperties);
  return isWhole || values || Object.values(properties).some(hasWhole);
}

/** @param inWhole whether it is a part of a value that is written as a whole, where defaults matter */
function schemaShape(schema: ShapeSchema, inWhole: boolean): FieldShape {
  const { items, additionalProperties, properties = {} } = schema;
  const isMerged = ['map', 'set'].includes(schema['x-kubernetes-list-type'] ?? 'atomic');
  const isAtomic = schema['x-kubernetes-map-type'] === 'atomic';
  const isWhole = inWhole || isAtomic || (items !== undefined && !isMerged);
  const fields = Object.entries(properties)
    .map(([name, field]): [string, FieldShape] => [name, schemaShape(field, isWhole)])
    .filter(([, shape]) => isRelevant(shape));
  const element = items && schemaShape(items, isWhole);
  const value =
    typeof additionalProperties === 'object'
      ? schemaShape(additionalProperties, isWhole)
      : !isMerged && element;
  return {
    ...(isAtomic && ATOMIC),
    ...(isMerged && { items: element ?? PLAIN }),
    ...(value && isRelevant(value) && { values: value }),
    ...(fields.length > 0 && { fields: Object.fromEntries(fields) }),
    ...(inWhole && schema.default !== undefined && { default: schema.default }),
  };
}

function isRelevant(shape: FieldShape): boolean {
  return Object.keys(shape).length > 0;
}
