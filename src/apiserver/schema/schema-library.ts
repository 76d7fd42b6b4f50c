import type { JsonSchema } from '../../api/json-schema.ts';
import { isRecord } from '../../util/values.ts';

const PREFIX = '#/components/schemas/';

/**
 * The schemas of the built-in kinds with resolved references. They form a graph that may have cycles
 * (JSONSchemaProps). A schema is linked on the first request.
 *
 * Linking removes properties of the published documents that concern Go types rather than the API:
 * - `allOf: [{$ref}]` is a reference with siblings; it becomes one schema.
 * - A `default` of `''`, `0`, `false` or `{}` is the zero value of a Go field. It is no API default,
 *   and does not satisfy `required`. It becomes `zero`.
 * - A definition without fields and without type is any JSON; it preserves unknown fields.
 */
export class SchemaLibrary {
  readonly #find: (name: string) => JsonSchema | undefined;
  readonly #linked = new Map<string, JsonSchema>();

  /** @param find returns the schema of that name in `components.schemas` of OpenAPI documents */
  constructor(find: (name: string) => JsonSchema | undefined) {
    this.#find = find;
  }

  /** @throws {Error} if the schema, or a schema that it refers to, does not exist */
  get(name: string): JsonSchema {
    const linked = this.#linked.get(name);
    if (linked) return linked;
    const wrappers: Wrapper[] = [];
    const schema = this.#link(name, wrappers);
    // Inner wrappers come later and refer only to definitions, which are complete at this point.
    for (const { node, target, siblings } of wrappers) Object.assign(node, target, siblings);
    return schema;
  }

  /** Links a definition. It is registered before it is complete, so that cycles end at it. */
  #link(name: string, wrappers: Wrapper[]): JsonSchema {
    const known = this.#linked.get(name);
    if (known) return known;
    const definition = this.#find(name);
    if (!definition) throw new Error(`There is no schema ${JSON.stringify(name)}`);
    const node: Record<string, unknown> = {};
    this.#linked.set(name, node);
    Object.assign(node, this.#members(definition, wrappers));
    if (isOpen(definition)) {
      node['x-kubernetes-preserve-unknown-fields'] = true;
      // An object without declared fields is owned as a whole.
      if (definition.type === 'object') node['x-kubernetes-map-type'] = 'atomic';
    }
    return node;
  }

  #resolve(schema: JsonSchema, wrappers: Wrapper[]): JsonSchema {
    const reference = referenceOf(schema);
    if (reference === undefined) return this.#members(schema, wrappers);
    const target = this.#link(reference, wrappers);
    const { $ref: _, allOf: __, ...rest } = schema;
    const siblings = this.#members(rest, wrappers);
    if (Object.keys(siblings).length === 0) return target;
    const node = {};
    wrappers.push({ node, target, siblings });
    return node;
  }

  /** Returns a copy of `schema` with all subschemas resolved. */
  #members(schema: JsonSchema, wrappers: Wrapper[]): JsonSchema {
    const node: Record<string, unknown> = {};
    for (const [key, value] of Object.entries(schema)) {
      const isDefault = key !== 'default' || !isZero(value);
      node[isDefault ? key : 'zero'] = this.#member(key, value, wrappers);
    }
    return node;
  }

  #member(key: string, value: unknown, wrappers: Wrapper[]): unknown {
    const resolve = (schema: unknown) => this.#resolve(schema as JsonSchema, wrappers);
    switch (key) {
      case 'properties':
        return isRecord(value)
          ? Object.fromEntries(Object.entries(value).map(([name, field]) => [name, resolve(field)]))
          : value;
      case 'items':
      case 'additionalProperties':
      case 'not':
        return isRecord(value) ? resolve(value) : value;
      case 'allOf':
      case 'anyOf':
      case 'oneOf':
        return Array.isArray(value) ? value.map(resolve) : value;
      default:
        return value;
    }
  }
}

interface Wrapper {
  readonly node: object;
  readonly target: JsonSchema;
  readonly siblings: JsonSchema;
}

function referenceOf(schema: JsonSchema): string | undefined {
  const reference = schema.$ref ?? (schema.allOf?.length === 1 ? schema.allOf[0]?.$ref : undefined);
  return reference?.startsWith(PREFIX) ? reference.slice(PREFIX.length) : reference;
}

function isZero(value: unknown): boolean {
  return (
    value === '' ||
    value === 0 ||
    value === false ||
    (isRecord(value) && Object.keys(value).length === 0)
  );
}

function isOpen(schema: JsonSchema): boolean {
  return (
    (schema.type === undefined || schema.type === 'object') &&
    schema.properties === undefined &&
    schema.additionalProperties === undefined &&
    schema.oneOf === undefined &&
    referenceOf(schema) === undefined
  );
}
