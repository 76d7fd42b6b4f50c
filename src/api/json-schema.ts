/**
 * An OpenAPI v3 schema, as in a CustomResourceDefinition and in a published document.
 *
 * The functions of this folder take schemas without `$ref`: schemas of custom resources have none,
 * and `SchemaLibrary` links those of built-in kinds. A schema may be recursive.
 */
export interface JsonSchema {
  readonly $ref?: string;
  readonly title?: string;
  readonly description?: string;
  readonly type?: string;
  readonly format?: string;
  readonly nullable?: boolean;
  readonly default?: unknown;
  /**
   * Zero value of a field in a Go type: the value of a key that an item of a list omits. Null is also the default
   * of the field; as `default`, a CRD may declare it without effect.
   */
  readonly zero?: unknown;
  readonly enum?: readonly unknown[];

  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly required?: readonly string[];
  readonly minProperties?: number;
  readonly maxProperties?: number;

  readonly items?: JsonSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;

  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: boolean;
  readonly exclusiveMaximum?: boolean;
  readonly multipleOf?: number;

  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;

  readonly allOf?: readonly JsonSchema[];
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly not?: JsonSchema;

  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
  readonly 'x-kubernetes-embedded-resource'?: boolean;
  readonly 'x-kubernetes-int-or-string'?: boolean;
  /** @default 'atomic' */
  readonly 'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map';
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  /** @default 'granular' */
  readonly 'x-kubernetes-map-type'?: 'atomic' | 'granular';
  /** Comma-separated: `merge`, `replace`, `retainKeys`. Built-in kinds only. */
  readonly 'x-kubernetes-patch-strategy'?: string;
  readonly 'x-kubernetes-patch-merge-key'?: string;
  /** Validation rules in CEL, see `cel/`. Custom resources only. */
  readonly 'x-kubernetes-validations'?: readonly SchemaRule[];
}

export interface SchemaRule {
  readonly rule: string;
  readonly message?: string;
  readonly messageExpression?: string;
  readonly reason?: string;
  readonly fieldPath?: string;
  readonly optionalOldSelf?: boolean;
}

/** Returns the schema of a field in `properties`, or undefined. */
export function declaredField(schema: JsonSchema, name: string): JsonSchema | undefined {
  const { properties } = schema;
  return properties && Object.hasOwn(properties, name) ? properties[name] : undefined;
}

/** Returns the schema of a field in `properties`, else the schema of `additionalProperties`. */
export function fieldSchema(schema: JsonSchema, name: string): JsonSchema | undefined {
  const { additionalProperties } = schema;
  return (
    declaredField(schema, name) ??
    (typeof additionalProperties === 'object' ? additionalProperties : undefined)
  );
}

/** The schema of an undeclared value: objects are merged by member, lists are atomic. */
export const UNDECLARED: JsonSchema = { 'x-kubernetes-preserve-unknown-fields': true };

/** Returns the schema of a member, or `UNDECLARED`. */
export function memberSchema(schema: JsonSchema, name: string): JsonSchema {
  return fieldSchema(schema, name) ?? UNDECLARED;
}

/** Returns the schema of the items of a list, or `UNDECLARED`. */
export function itemSchema(schema: JsonSchema): JsonSchema {
  return schema.items ?? UNDECLARED;
}
