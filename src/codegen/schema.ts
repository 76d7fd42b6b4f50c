import { isRecord } from '../util/values.ts';

/**
 * The part of a structural schema that determines types. It omits constraints on values, such as patterns,
 * bounds and CEL rules, which the server validates.
 */
export interface CrdSchema {
  readonly type?: string;
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly nullable?: boolean;
  readonly default?: unknown;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, CrdSchema>>;
  readonly additionalProperties?: CrdSchema | boolean;
  readonly items?: CrdSchema;
  readonly oneOf?: readonly CrdSchema[];
  readonly anyOf?: readonly CrdSchema[];
  readonly not?: CrdSchema;
  readonly 'x-kubernetes-list-type'?: string;
  readonly 'x-kubernetes-map-type'?: string;
  readonly 'x-kubernetes-int-or-string'?: boolean;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
  readonly 'x-kubernetes-embedded-resource'?: boolean;
}

/** Maximum depth of a schema, because the code that reads schemas is recursive. */
const DEEPEST = 64;

/**
 * Checks that `value` is a `Schema`, with all its nested schemas.
 *
 * @param path path of `value` in error messages: `.spec.template`
 * @throws {TypeError} if it is not
 */
export function asSchema(value: unknown, path: string, depth: number = 0): CrdSchema {
  if (depth > DEEPEST) throw new TypeError(`${path}: nested deeper than ${DEEPEST} levels`);
  const schema = asRecord(value, path);
  expectType(
    schema,
    path,
    'string',
    'type',
    'description',
    'x-kubernetes-list-type',
    'x-kubernetes-map-type',
  );
  expectType(
    schema,
    path,
    'boolean',
    'nullable',
    'x-kubernetes-int-or-string',
    'x-kubernetes-preserve-unknown-fields',
    'x-kubernetes-embedded-resource',
  );
  for (const member of ['enum', 'required', 'oneOf', 'anyOf']) {
    const list = schema[member];
    if (list !== undefined && !Array.isArray(list)) throw unexpected(path, member, 'a list', list);
  }
  const { required } = schema;
  if (Array.isArray(required) && required.some((name) => typeof name !== 'string')) {
    throw unexpected(path, 'required', 'a list of names', required);
  }
  for (const [name, property] of Object.entries(asRecord(schema['properties'] ?? {}, path))) {
    asSchema(property, `${path}.${name}`, depth + 1);
  }
  for (const member of ['oneOf', 'anyOf']) {
    const branches = schema[member];
    if (!Array.isArray(branches)) continue;
    for (const branch of branches) asSchema(branch, `${path}(${member})`, depth + 1);
  }
  const { items, additionalProperties, not } = schema;
  if (not !== undefined) asSchema(not, `${path}(not)`, depth + 1);
  if (items !== undefined) asSchema(items, `${path}[]`, depth + 1);
  if (additionalProperties !== undefined && typeof additionalProperties !== 'boolean') {
    asSchema(additionalProperties, `${path}{}`, depth + 1);
  }
  return schema;
}

export function asRecord(value: unknown, path: string): Record<string, unknown> {
  if (isRecord(value)) return { ...value };
  throw new TypeError(`${path}: expected a mapping, found ${JSON.stringify(value)}`);
}

function expectType(
  schema: Readonly<Record<string, unknown>>,
  path: string,
  type: 'string' | 'boolean',
  ...members: readonly string[]
): void {
  for (const member of members) {
    const value = schema[member];
    if (value !== undefined && typeof value !== type) {
      throw unexpected(path, member, `a ${type}`, value);
    }
  }
}

function unexpected(path: string, member: string, expected: string, found: unknown): TypeError {
  return new TypeError(`${path}: ${member} must be ${expected}, found ${JSON.stringify(found)}`);
}
