import type { Condition } from '../api/conditions.ts';
import type { ObjectMeta } from '../api/object.ts';

/** A structural schema as it is in a CRD: OpenAPI v3 with the extensions of Kubernetes. */
export interface SchemaNode {
  readonly type?: 'string' | 'integer' | 'number' | 'boolean' | 'array' | 'object';
  readonly description?: string;
  readonly format?: string;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly additionalProperties?: SchemaNode | boolean;
  readonly items?: SchemaNode;
  readonly required?: string[];
  readonly nullable?: boolean;
  readonly default?: unknown;
  /** Other keywords, such as `pattern` and `x-kubernetes-validations`. */
  readonly [keyword: string]: unknown;
}

/** A schema of a field, with the type `T` of its values. */
export interface Schema<T = unknown> {
  readonly node: SchemaNode;
  /** Carries the type `T`. Never has a value. */
  readonly valueType?: T;
}

/** A schema of a field that objects can omit. */
export interface OptionalSchema<T = unknown> extends Schema<T> {
  readonly isOptional: true;
}

/** The fields of an object by their names. */
export type Fields = Readonly<Record<string, Schema>>;

/** The type of an object with these fields. Fields with a default are present, because the server sets them. */
export type ValueOfFields<F extends Fields> = {
  [K in keyof F as F[K] extends OptionalSchema ? never : K]: ValueOf<F[K]>;
} & {
  [K in keyof F as F[K] extends OptionalSchema ? K : never]?: ValueOf<F[K]>;
} extends infer O
  ? { [K in keyof O]: O[K] }
  : never;

/** The type of the values of a schema. */
export type ValueOf<S extends Schema> = S extends { readonly valueType?: infer T } ? T : never;

/** A rule in CEL, `x-kubernetes-validations`. The server rejects objects for which it is false. */
export interface ValidationRule {
  /** Expression that must be true: `self.minimum <= self.maximum`. `oldSelf` is the previous value. */
  readonly rule: string;
  /** @default the text of the rule */
  readonly message?: string;
  /** Expression that returns the message; it replaces `message`. */
  readonly messageExpression?: string;
  /** @default 'FieldValueInvalid' */
  readonly reason?:
    'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired' | 'FieldValueDuplicate';
  /** Path of the field in the error, relative to the object of the rule: `.minimum`. */
  readonly fieldPath?: string;
  /** Whether the rule also applies if there is no previous value. Then `oldSelf` is a CEL optional. */
  readonly optionalOldSelf?: boolean;
}

/** Options of all schemas. */
export interface SchemaOptions<T> {
  /** Text for `kubectl explain`. */
  readonly description?: string | undefined;
  /** Value that the server sets if the field is absent. */
  readonly default?: T | undefined;
  /** Rules in CEL. */
  readonly rules?: readonly ValidationRule[] | undefined;
}

/** Options of `string`. */
export interface StringOptions extends SchemaOptions<string> {
  readonly minLength?: number | undefined;
  /** Number of characters. A bound keeps the estimated cost of CEL rules below the limit of the server. */
  readonly maxLength?: number | undefined;
  /** Regular expression in RE2 syntax, which can match a part of the text. */
  readonly pattern?: string | undefined;
  /** Format that the server validates: `date-time`, `uuid`, `ipv4`. */
  readonly format?: string | undefined;
}

/** Options of `integer` and `number`. */
export interface NumberOptions extends SchemaOptions<number> {
  readonly minimum?: number | undefined;
  readonly maximum?: number | undefined;
  readonly multipleOf?: number | undefined;
  /** Width that the server validates: `int32`, `int64`, `float` or `double`. */
  readonly format?: 'int32' | 'int64' | 'float' | 'double' | undefined;
}

/** Options of `list`. */
export interface ListSchemaOptions<T> extends SchemaOptions<readonly T[]> {
  readonly minItems?: number | undefined;
  readonly maxItems?: number | undefined;
  /**
   * How server-side apply merges the list. A `set` has unique scalars.
   * @default 'atomic', or 'map' with `mapKeys`
   */
  readonly listType?: 'atomic' | 'set' | 'map' | undefined;
  /** Fields that identify an item, for a list of type `map`. */
  readonly mapKeys?: readonly (keyof T & string)[] | undefined;
}

/** Options of `map`. */
export interface MapOptions<T> extends SchemaOptions<Readonly<Record<string, T>>> {
  readonly minProperties?: number | undefined;
  readonly maxProperties?: number | undefined;
  /**
   * Whether server-side apply merges the fields or replaces the whole.
   * @default 'granular'
   */
  readonly mapType?: 'granular' | 'atomic' | undefined;
}

/** Options of `object`. */
export interface ObjectOptions<T> extends SchemaOptions<Partial<T>> {
  readonly minProperties?: number | undefined;
  readonly maxProperties?: number | undefined;
  /** @default 'granular' */
  readonly mapType?: 'granular' | 'atomic' | undefined;
  /**
   * Whether the server keeps fields that the schema does not have.
   * @default false
   */
  readonly preserveUnknownFields?: boolean | undefined;
}

/** A complete object of any kind in a field, such as a template. */
export interface EmbeddedResource {
  apiVersion: string;
  kind: string;
  metadata?: Partial<ObjectMeta>;
  [field: string]: unknown;
}

/** Options that are extensions of Kubernetes, with their keywords in the schema. */
const EXTENSIONS: ReadonlyMap<string, string> = new Map([
  ['rules', 'x-kubernetes-validations'],
  ['listType', 'x-kubernetes-list-type'],
  ['mapKeys', 'x-kubernetes-list-map-keys'],
  ['mapType', 'x-kubernetes-map-type'],
  ['preserveUnknownFields', 'x-kubernetes-preserve-unknown-fields'],
]);

function schemaOf<T>(base: SchemaNode, options: SchemaOptions<unknown>): Schema<T> {
  const { description, ...others } = options;
  const keywords = Object.entries(others)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => [EXTENSIONS.get(name) ?? name, value]);
  return {
    node: {
      ...(description !== undefined && { description }),
      ...base,
      ...Object.fromEntries(keywords),
    },
  };
}

/** Returns the schema of a text. */
export function string(options: StringOptions = {}): Schema<string> {
  return schemaOf({ type: 'string' }, options);
}

/** Returns the schema of a whole number. */
export function integer(options: NumberOptions = {}): Schema<number> {
  return schemaOf({ type: 'integer' }, options);
}

/** Returns the schema of a number. The API conventions recommend integers, or quantities for fractions. */
export function number(options: NumberOptions = {}): Schema<number> {
  return schemaOf({ type: 'number' }, options);
}

/** Returns the schema of a boolean. */
export function boolean(options: SchemaOptions<boolean> = {}): Schema<boolean> {
  return schemaOf({ type: 'boolean' }, options);
}

/** Returns the schema of a text that is one of `values`. */
export function enumeration<const V extends string>(
  values: readonly V[],
  options: SchemaOptions<NoInfer<V>> = {},
): Schema<V> {
  return schemaOf({ type: 'string', enum: values }, options);
}

/** Returns the schema of a point in time in RFC 3339: `2026-11-21T10:12:00Z`. */
export function dateTime(options: SchemaOptions<string> = {}): Schema<string> {
  return schemaOf({ type: 'string', format: 'date-time' }, options);
}

const INT_OR_STRING = {
  anyOf: [{ type: 'integer' }, { type: 'string' }],
  'x-kubernetes-int-or-string': true,
};

/** Returns the schema of a number or a text, such as a port or a percentage. */
export function intOrString(
  options: Omit<StringOptions, 'default' | 'format'> & SchemaOptions<number | string> = {},
): Schema<number | string> {
  return schemaOf(INT_OR_STRING, options);
}

const QUANTITY =
  '^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$';

/** Returns the schema of a quantity: `500m`, `2Gi` or a number. */
export function quantity(options: SchemaOptions<number | string> = {}): Schema<number | string> {
  return schemaOf({ ...INT_OR_STRING, pattern: QUANTITY }, options);
}

/** Returns the schema of a list. */
export function list<T>(
  items: Schema<T>,
  options: ListSchemaOptions<NoInfer<T>> = {},
): Schema<T[]> {
  const listType = options.mapKeys && 'map';
  return schemaOf(
    { type: 'array', items: items.node, ...(listType && { 'x-kubernetes-list-type': listType }) },
    options,
  );
}

/** Returns the schema of an object with any names of fields and values of one schema. */
export function map<T>(
  values: Schema<T>,
  options: MapOptions<NoInfer<T>> = {},
): Schema<Record<string, T>> {
  return schemaOf({ type: 'object', additionalProperties: values.node }, options);
}

/** Returns the schema of an object. Fields are required, unless they are `optional` or have a default. */
export function object<F extends Fields>(
  fields: F,
  options: ObjectOptions<ValueOfFields<NoInfer<F>>> = {},
): Schema<ValueOfFields<F>> {
  const entries = Object.entries(fields);
  const required = entries
    .filter(([, field]) => !('isOptional' in field) && field.node.default === undefined)
    .map(([name]) => name);
  return schemaOf(
    {
      type: 'object',
      ...(required.length > 0 && { required }),
      properties: Object.fromEntries(entries.map(([name, { node }]) => [name, node])),
    },
    options,
  );
}

const CONDITIONS =
  'Ready is True if the object is in its desired state. Reconciling and Stalled are present only while they are True: the controller is working, or is blocked until a user changes something.';

/**
 * Returns the schema of the status of a kind with conditions: `fields`, `observedGeneration` and `conditions`, which
 * `StatusWriter` and `objectController` write.
 */
export function status(): Schema<ValueOfFields<ReadinessFields>>;
export function status<F extends Fields>(fields: F): Schema<ValueOfFields<F & ReadinessFields>>;
export function status(fields: Fields = {}): Schema {
  return object(
    {
      ...fields,
      observedGeneration: optional(
        integer({
          description: 'The metadata.generation that this status describes.',
          format: 'int64',
          minimum: 0,
        }),
      ),
      conditions: optional(conditions({ description: CONDITIONS })),
    },
    { description: 'Observed state. Written only by the controller.' },
  );
}

type ReadinessFields = {
  readonly observedGeneration: OptionalSchema<number>;
  readonly conditions: OptionalSchema<Condition[]>;
};

/** Returns the schema of any value. The server stores it as it is. */
export function anything(options: SchemaOptions<unknown> = {}): Schema {
  return schemaOf({ 'x-kubernetes-preserve-unknown-fields': true }, options);
}

/** Returns the schema of a complete object of any kind, with `apiVersion`, `kind` and `metadata`. */
export function embeddedResource(
  options: SchemaOptions<EmbeddedResource> = {},
): Schema<EmbeddedResource> {
  const base = {
    type: 'object',
    'x-kubernetes-embedded-resource': true,
    'x-kubernetes-preserve-unknown-fields': true,
  } as const;
  return schemaOf(base, options);
}

/** Returns the schema of conditions as in the API conventions: a list with one condition for each type. */
export function conditions(
  options: Pick<SchemaOptions<never>, 'description'> = {},
): Schema<Condition[]> {
  const fields = {
    type: string({ description: 'Type of the condition, such as Ready.', maxLength: 316 }),
    status: enumeration(['True', 'False', 'Unknown'], { description: 'Status of the condition.' }),
    observedGeneration: optional(
      integer({
        description: 'The metadata.generation that the condition describes.',
        format: 'int64',
        minimum: 0,
      }),
    ),
    lastTransitionTime: dateTime({ description: 'Time of the last change of the status.' }),
    reason: string({
      description: 'Reason as a CamelCase word for programs.',
      minLength: 1,
      maxLength: 1024,
      pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$',
    }),
    message: string({ description: 'Message for users.', maxLength: 32_768 }),
  };
  const { node } = object(fields, { description: 'A condition of the object.' });
  return list<Condition>({ node }, { ...options, mapKeys: ['type'], maxItems: 32 });
}

/** Returns a schema from parts of a CRD, for what the other functions cannot express. The type is not checked. */
export function jsonSchema<T>(node: SchemaNode): Schema<T> {
  return { node };
}

/** Returns the schema of a field that objects can omit. */
export function optional<T>(schema: Schema<T>): OptionalSchema<T> {
  return { node: schema.node, isOptional: true };
}

/** Returns the schema of a field that can also be `null`. */
export function nullable<T>(schema: Schema<T>): Schema<T | null> {
  return { node: { ...schema.node, nullable: true } };
}
