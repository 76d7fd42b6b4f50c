import type { FieldError } from '../../api/field-error.ts';
import { Findings } from './findings.ts';
import type { JsonSchema } from './json-schema.ts';
import type { JsonObject } from './json-value.ts';
import { own, requireDepth } from './json-value.ts';
import { isRecord } from '../../util/values.ts';
import { checkRuleExpressions, checkRules } from './crd-rules.ts';
import { unknownFields } from './pruning.ts';
import {
  branchesOf,
  checkStructural,
  flag,
  isSet,
  propertiesOf,
  propertyPath,
  subschema,
  typeOf,
} from './structural-schema.ts';
import { validateCustom } from './embedded-resources.ts';

/**
 * Validates the schema of a version of a custom resource. Returns the errors.
 *
 * @param path path of the schema: `spec.validation.openAPIV3Schema`
 * @param statusEnabled whether the version has a status subresource
 * @throws {NestingError} if the schema is nested too deeply
 */
export function checkCrdSchema(
  schema: JsonObject,
  path: string,
  statusEnabled: boolean,
): FieldError[] {
  const check = new CrdSchemaCheck();
  check.run(schema, path, statusEnabled);
  return check.errors.length === 0 ? checkRuleExpressions(schema, path) : check.errors;
}

/**
 * The fields that are allowed at the root if `status` is validated alone, and their names in the
 * error message.
 */
const ROOT_FIELDS: ReadonlyMap<string, string> = new Map([
  ['description', 'Description'],
  ['type', 'Type'],
  ['format', 'Format'],
  ['title', 'Title'],
  ['maximum', 'Maximum'],
  ['exclusiveMaximum', 'ExclusiveMaximum'],
  ['minimum', 'Minimum'],
  ['exclusiveMinimum', 'ExclusiveMinimum'],
  ['maxLength', 'MaxLength'],
  ['minLength', 'MinLength'],
  ['pattern', 'Pattern'],
  ['maxItems', 'MaxItems'],
  ['minItems', 'MinItems'],
  ['uniqueItems', 'UniqueItems'],
  ['multipleOf', 'MultipleOf'],
  ['required', 'Required'],
  ['items', 'Items'],
  ['properties', 'Properties'],
  ['externalDocs', 'ExternalDocs'],
  ['example', 'Example'],
  ['x-kubernetes-preserve-unknown-fields', 'XPreserveUnknownFields'],
  ['x-kubernetes-validations', 'XValidations'],
]);

interface Context {
  readonly root: boolean;
  /** Whether the schema is within the metadata of the resource or of an embedded resource. */
  readonly inMetadata: boolean;
  /** Reason why defaults are not allowed here; undefined if they are. */
  readonly noDefaults: string | undefined;
}

const TYPES = ['array', 'boolean', 'integer', 'number', 'object', 'string'];
const META_FIELDS: ReadonlySet<string> = new Set(['metadata', 'kind', 'apiVersion']);

/** Keywords of JSON Schema that Kubernetes does not support. */
const UNSUPPORTED = [
  'id',
  'additionalItems',
  'patternProperties',
  'definitions',
  'dependencies',
  '$ref',
];

class CrdSchemaCheck extends Findings {
  /** @param statusEnabled whether the version has a status subresource */
  run(schema: JsonObject, path: string, statusEnabled: boolean): void {
    if (statusEnabled) this.#checkRoot(schema, path);
    if (flag(schema, 'nullable')) {
      this.forbidden(`${path}.nullable`, 'nullable cannot be true at the root');
    }
    const structural = checkStructural(schema, path);
    for (const error of structural) this.errors.push(error);
    if (structural.length === 0) this.#checkDefaults(schema, path, 0);
    this.#checkNode(schema, path, { root: true, inMetadata: false, noDefaults: undefined }, 0);
  }

  #checkRoot(schema: JsonObject, path: string): void {
    for (const [key, value] of Object.entries(schema)) {
      if (!isSet(value)) continue;
      if (key === 'type' && value !== 'object') {
        const detail =
          'only "object" is allowed as the type at the root of the schema if the status subresource is enabled';
        this.invalid(`${path}.type`, value, detail);
        return;
      }
      if (!ROOT_FIELDS.has(key)) {
        const allowed = [...ROOT_FIELDS.values()].join(' ');
        const detail = `only [${allowed}] fields are allowed at the root of the schema if the status subresource is enabled`;
        this.invalid(path, schema, detail);
        return;
      }
    }
  }

  #checkNode(schema: JsonObject, path: string, context: Context, depth: number): void {
    requireDepth(depth);
    this.#checkKeywords(schema, path, context);
    const inner: Context = { ...context, root: false };
    const descend = (sub: JsonObject, at: string, its: Context = inner) =>
      this.#checkNode(sub, at, its, depth + 1);

    const values = subschema(schema, 'additionalProperties');
    const fields = propertiesOf(schema);
    if (fields.length > 0 && (values || own(schema, 'additionalProperties') === false)) {
      const detail = 'additionalProperties and properties are mutual exclusive';
      this.forbidden(`${path}.additionalProperties`, detail);
    }
    if (values) {
      const reason = 'inside additionalProperties applying to object metadata';
      const its = context.inMetadata ? { ...inner, noDefaults: reason } : inner;
      descend(values, `${path}.additionalProperties`, its);
    }
    for (const [name, field] of fields) {
      const isMeta =
        META_FIELDS.has(name) && (context.root || flag(schema, 'x-kubernetes-embedded-resource'));
      descend(field, propertyPath(path, name), {
        root: false,
        inMetadata: context.inMetadata || isMeta,
        noDefaults: isMeta && context.root ? `in top-level ${name}` : context.noDefaults,
      });
    }
    const not = subschema(schema, 'not');
    if (not) descend(not, `${path}.not`);
    for (const key of ['allOf', 'oneOf', 'anyOf'] as const) {
      branchesOf(schema, key).forEach((branch, i) => descend(branch, `${path}.${key}[${i}]`));
    }
    const items = subschema(schema, 'items');
    if (items) descend(items, `${path}.items`);
    this.#checkListAndMapTypes(schema, path);
    checkRules(schema, path, this);
  }

  #checkKeywords(schema: JsonObject, path: string, context: Context): void {
    const type = typeOf(schema);
    const forbid = (key: string, detail: string) => this.forbidden(`${path}.${key}`, detail);
    if (type && !TYPES.includes(type)) {
      this.notSupported(`${path}.type`, type, TYPES);
    }
    if (hasDefault(schema) && context.noDefaults !== undefined) {
      forbid('default', `must not be set ${context.noDefaults}`);
    }
    for (const key of UNSUPPORTED) {
      if (isSet(own(schema, key))) forbid(key, `${key} is not supported`);
    }
    if (type === 'null') {
      forbid('type', 'type cannot be set to null, use nullable as an alternative');
    }
    if (Array.isArray(own(schema, 'items'))) {
      forbid('items', 'items must be a schema object and not an array');
    }
    if (context.inMetadata && flag(schema, 'x-kubernetes-embedded-resource')) {
      forbid('x-kubernetes-embedded-resource', 'must not be used inside of resource meta');
    }
    if (flag(schema, 'uniqueItems')) {
      const detail =
        'uniqueItems cannot be set to true since the runtime complexity becomes quadratic';
      forbid('uniqueItems', detail);
    }
    if (own(schema, 'x-kubernetes-preserve-unknown-fields') === false) {
      const at = `${path}.x-kubernetes-preserve-unknown-fields`;
      this.invalid(at, false, 'must be true or undefined');
    }
  }

  /** Checks that defaults are valid and have no unknown fields. */
  #checkDefaults(
    schema: JsonObject,
    path: string,
    depth: number,
    inMetadata: boolean = false,
  ): void {
    requireDepth(depth);
    const isEmbedded = flag(schema, 'x-kubernetes-embedded-resource');
    if (hasDefault(schema)) {
      const value = own(schema, 'default');
      const at = `${path}.default`;
      const typed = schema as JsonSchema;
      // The fields of metadata that the server does not know are removed from the default.
      if (!inMetadata && unknownFields(value, typed).length > 0) {
        this.invalid(at, value, 'must not have unknown fields');
      }
      for (const error of validateCustom(value, typed, at)) this.errors.push(error);
    }
    // Defaults below additionalProperties take effect only in requests.
    const items = subschema(schema, 'items');
    const within = inMetadata && !isEmbedded;
    if (items) this.#checkDefaults(items, `${path}.items`, depth + 1, within);
    for (const [name, field] of propertiesOf(schema)) {
      const below = within || (isEmbedded && name === 'metadata');
      this.#checkDefaults(field, propertyPath(path, name), depth + 1, below);
    }
  }

  #checkListAndMapTypes(schema: JsonObject, path: string): void {
    this.#checkMergeType(schema, 'x-kubernetes-map-type', 'object', ['atomic', 'granular'], path);
    this.#checkMergeType(schema, 'x-kubernetes-list-type', 'array', ['atomic', 'set', 'map'], path);
    const listType = own(schema, 'x-kubernetes-list-type');
    const keys = keysOf(schema);
    if (keys.length > 0 && listType !== 'map') {
      const at = `${path}.x-kubernetes-list-type`;
      const detail = 'must be map if x-kubernetes-list-map-keys is non-empty';
      if (listType === undefined) this.required(at, detail);
      else this.invalid(at, listType, detail);
    }
    const items = subschema(schema, 'items');
    if (listType === 'set' && items) this.#checkSetItems(items, path);
    if (listType === 'map') this.#checkListMap(keys, items, path);
    if ((listType === 'set' || listType === 'map') && items && flag(items, 'nullable')) {
      const detail = `cannot be nullable when x-kubernetes-list-type is ${listType}`;
      this.forbidden(`${path}.items.nullable`, detail);
    }
  }

  #checkMergeType(
    schema: JsonObject,
    name: 'x-kubernetes-map-type' | 'x-kubernetes-list-type',
    expected: string,
    supported: readonly string[],
    path: string,
  ): void {
    const value = own(schema, name);
    if (value === undefined) return;
    const type = typeOf(schema);
    const detail = `must be ${expected} if ${name} is specified`;
    if (!type) this.required(`${path}.type`, detail);
    else if (type !== expected) this.invalid(`${path}.type`, type, detail);
    if (!supported.some((each) => each === value)) {
      this.notSupported(`${path}.${name}`, value, supported);
    }
  }

  #checkSetItems(items: JsonObject, path: string): void {
    const detail = 'must be atomic as item of a list with x-kubernetes-list-type=set';
    const listType = own(items, 'x-kubernetes-list-type');
    if (typeOf(items) === 'array' && listType !== undefined && listType !== 'atomic') {
      this.invalid(`${path}.items.x-kubernetes-list-type`, listType, detail);
    }
    if (typeOf(items) === 'object' && own(items, 'x-kubernetes-map-type') !== 'atomic') {
      const value = own(items, 'x-kubernetes-map-type') ?? null;
      this.invalid(`${path}.items.x-kubernetes-map-type`, value, detail);
    }
  }

  #checkListMap(keys: readonly string[], items: JsonObject | undefined, path: string): void {
    const at = `${path}.x-kubernetes-list-map-keys`;
    if (keys.length === 0) {
      this.required(at, 'must not be empty if x-kubernetes-list-type is map');
    }
    if (!items) {
      this.required(`${path}.items`, 'must have a schema if x-kubernetes-list-type is map');
      return;
    }
    if (typeOf(items) !== 'object') {
      const detail = "must be object if parent array's x-kubernetes-list-type is map";
      this.invalid(`${path}.items.type`, typeOf(items), detail);
      return;
    }
    const required = own(items, 'required');
    const properties = own(items, 'properties');
    for (const [index, key] of keys.entries()) {
      const field = isRecord(properties) ? own(properties, key) : undefined;
      if (!isRecord(field)) {
        this.invalid(at, keys, 'entries must all be names of item properties');
      } else {
        const isRequired = Array.isArray(required) && required.includes(key);
        this.#checkKeyField(field, isRequired, propertyPath(`${path}.items`, key));
      }
      if (keys.indexOf(key) < index) {
        this.invalid(at, keys, 'must not contain duplicate entries');
      }
    }
  }

  #checkKeyField(field: JsonObject, isRequired: boolean, path: string): void {
    if (['array', 'object'].includes(typeOf(field))) {
      const detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
      this.invalid(`${path}.type`, typeOf(field), detail);
    }
    if (!isRequired && (own(field, 'default') ?? null) === null) {
      const detail =
        'this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property';
      this.required(`${path}.default`, detail);
    }
    if (flag(field, 'nullable')) {
      const detail = 'this property is in x-kubernetes-list-map-keys, so it cannot be nullable';
      this.forbidden(`${path}.nullable`, detail);
    }
  }
}

function hasDefault(schema: JsonObject): boolean {
  const value = own(schema, 'default');
  return value !== undefined && value !== null;
}

function keysOf(schema: JsonObject): readonly string[] {
  const keys = own(schema, 'x-kubernetes-list-map-keys');
  return Array.isArray(keys) ? keys.filter((key) => typeof key === 'string') : [];
}
