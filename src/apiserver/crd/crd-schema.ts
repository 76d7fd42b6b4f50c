import type { FieldError } from '../../api/field-error.ts';
import type { CheckSteps } from '../objects/check-steps.ts';
import { PART_WEIGHT } from '../objects/check-steps.ts';
import { CheckedObject, stepsUntilTooMany } from '../objects/checked-object.ts';
import type { JsonSchema } from '../../api/json-schema.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { own, requireDepth, textsIn } from '../../util/json-value.ts';
import { validateDefault } from '../../cel/validate-rules.ts';
import { checkRuleExpressions, checkRules } from './crd-rules.ts';
import { unknownFields } from '../schema/pruning.ts';
import {
  checkStructural,
  schemaFieldsOf,
  flag,
  isConvertible,
  isNonZero,
  UNSUPPORTED,
} from './structural-schema.ts';
import { validateCustom } from '../request/embedded-resources.ts';

/**
 * Validates the schema of a version of a custom resource. Returns the errors.
 *
 * @param path path of the schema: `spec.validation.openAPIV3Schema`
 * @param statusEnabled whether the version has a status subresource
 * @throws {NestingError} if the schema is nested too deeply
 */
export function* checkCrdSchema(
  schema: JsonObject,
  path: string,
  statusEnabled: boolean,
): CheckSteps<FieldError[]> {
  const root = new CheckedObject(schema, path);
  yield* stepsUntilTooMany(checkForm(root, statusEnabled));
  return root.errors.length === 0 ? yield* checkRuleExpressions(schema, path) : root.errors;
}

/** Checks all of a schema but the expressions of its rules. */
function* checkForm(root: CheckedObject, statusEnabled: boolean): CheckSteps {
  const { value: schema, path } = root;
  if (statusEnabled) checkRoot(root);
  if (flag(schema, 'nullable')) root.forbidden('nullable', 'nullable cannot be true at the root');
  // As upstream, which does not convert a schema with such keywords.
  const structural = isConvertible(schema) ? yield* checkStructural(schema, path) : undefined;
  for (const error of structural ?? []) root.errors.push(error);
  if (structural?.length === 0) yield* checkDefaults(root, 0);
  yield* checkNode(root, { root: true, inMetadata: false, noDefaults: undefined }, 0);
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

function checkRoot(schema: CheckedObject): void {
  for (const [key, value] of Object.entries(schema.value)) {
    if (!isNonZero(value)) continue;
    if (key === 'type' && value !== 'object') {
      const detail =
        'only "object" is allowed as the type at the root of the schema if the status subresource is enabled';
      schema.invalid('type', detail);
      return;
    }
    if (!ROOT_FIELDS.has(key)) {
      const allowed = [...ROOT_FIELDS.values()].join(' ');
      const detail = `only [${allowed}] fields are allowed at the root of the schema if the status subresource is enabled`;
      schema.invalid('', detail, schema.value);
      return;
    }
  }
}

function* checkNode(schema: CheckedObject, context: Context, depth: number): CheckSteps {
  requireDepth(depth);
  yield PART_WEIGHT;
  checkKeywords(schema, context);
  const inner: Context = { ...context, root: false };
  const descend = function* (sub: CheckedObject | undefined, its: Context = inner): CheckSteps {
    if (sub) yield* checkNode(sub, its, depth + 1);
  };
  const values = schema.get('additionalProperties');
  const fields = schemaFieldsOf(schema);
  if (fields.length > 0 && (values || schema.value['additionalProperties'] === false)) {
    const detail = 'additionalProperties and properties are mutual exclusive';
    schema.forbidden('additionalProperties', detail);
  }
  const reason = 'inside additionalProperties applying to object metadata';
  yield* descend(values, context.inMetadata ? { ...inner, noDefaults: reason } : inner);
  for (const [name, field] of fields) {
    const isMeta =
      META_FIELDS.has(name) &&
      (context.root || flag(schema.value, 'x-kubernetes-embedded-resource'));
    yield* descend(field, {
      root: false,
      inMetadata: context.inMetadata || isMeta,
      noDefaults: isMeta && context.root ? `in top-level ${name}` : context.noDefaults,
    });
  }
  yield* descend(schema.get('not'));
  for (const key of ['allOf', 'oneOf', 'anyOf'] as const) {
    for (const branch of schema.items(key)) yield* descend(branch);
  }
  yield* descend(schema.get('items'));
  checkListAndMapTypes(schema);
  yield* checkRules(schema);
}

function checkKeywords(schema: CheckedObject, context: Context): void {
  const type = schema.text('type');
  if (type && !TYPES.includes(type)) schema.notSupported('type', TYPES);
  if (schema.has('default') && context.noDefaults !== undefined) {
    schema.forbidden('default', `must not be set ${context.noDefaults}`);
  }
  for (const key of UNSUPPORTED) {
    if (isNonZero(own(schema.value, key))) schema.forbidden(key, `${key} is not supported`);
  }
  if (type === 'null') {
    schema.forbidden('type', 'type cannot be set to null, use nullable as an alternative');
  }
  if (Array.isArray(schema.value['items'])) {
    schema.forbidden('items', 'items must be a schema object and not an array');
  }
  if (context.inMetadata && flag(schema.value, 'x-kubernetes-embedded-resource')) {
    schema.forbidden('x-kubernetes-embedded-resource', 'must not be used inside of resource meta');
  }
  if (flag(schema.value, 'uniqueItems')) {
    const detail =
      'uniqueItems cannot be set to true since the runtime complexity becomes quadratic';
    schema.forbidden('uniqueItems', detail);
  }
  if (schema.value['x-kubernetes-preserve-unknown-fields'] === false) {
    schema.invalid('x-kubernetes-preserve-unknown-fields', 'must be true or undefined');
  }
}

/** Checks that defaults are valid and have no unknown fields. */
function* checkDefaults(
  schema: CheckedObject,
  depth: number,
  inMetadata: boolean = false,
): CheckSteps {
  requireDepth(depth);
  yield PART_WEIGHT;
  const isEmbedded = flag(schema.value, 'x-kubernetes-embedded-resource');
  if (schema.has('default')) {
    const value = schema.value['default'];
    const typed = schema.value as JsonSchema;
    // The fields of metadata that the server does not know are removed from the default.
    if (!inMetadata && unknownFields(value, typed).length > 0) {
      schema.invalid('default', 'must not have unknown fields');
    }
    const at = schema.at('default');
    const errors = validateCustom(value, typed, at);
    for (const error of errors.length > 0 ? errors : validateDefault(value, typed, at)) {
      // As upstream, which compares the items of a list only in objects.
      if (error.reason !== 'FieldValueDuplicate') schema.errors.push(error);
    }
  }
  // Defaults below additionalProperties take effect only in requests.
  const items = schema.get('items');
  const within = inMetadata && !isEmbedded;
  if (items) yield* checkDefaults(items, depth + 1, within);
  for (const [name, field] of schemaFieldsOf(schema)) {
    yield* checkDefaults(field, depth + 1, within || (isEmbedded && name === 'metadata'));
  }
}

function checkListAndMapTypes(schema: CheckedObject): void {
  checkMergeType(schema, 'x-kubernetes-map-type', 'object', ['atomic', 'granular']);
  checkMergeType(schema, 'x-kubernetes-list-type', 'array', ['atomic', 'set', 'map']);
  const listType = schema.value['x-kubernetes-list-type'];
  const keys = textsIn(schema.value, 'x-kubernetes-list-map-keys');
  if (keys.length > 0 && listType !== 'map') {
    const detail = 'must be map if x-kubernetes-list-map-keys is non-empty';
    if (listType === undefined) schema.required('x-kubernetes-list-type', detail);
    else schema.invalid('x-kubernetes-list-type', detail);
  }
  const items = schema.get('items');
  if (listType === 'set' && items) checkSetItems(items);
  if (listType === 'map') checkListMap(schema, keys);
  if ((listType === 'set' || listType === 'map') && items && flag(items.value, 'nullable')) {
    const detail = `cannot be nullable when x-kubernetes-list-type is ${listType}`;
    items.forbidden('nullable', detail);
  }
}

function checkMergeType(
  schema: CheckedObject,
  name: 'x-kubernetes-map-type' | 'x-kubernetes-list-type',
  expected: string,
  supported: readonly string[],
): void {
  const value = schema.value[name];
  if (value === undefined) return;
  const type = schema.text('type');
  const detail = `must be ${expected} if ${name} is specified`;
  if (!type) schema.required('type', detail);
  else if (type !== expected) schema.invalid('type', detail);
  if (!supported.some((each) => each === value)) schema.notSupported(name, supported);
}

function checkSetItems(items: CheckedObject): void {
  const detail = 'must be atomic as item of a list with x-kubernetes-list-type=set';
  const listType = items.value['x-kubernetes-list-type'];
  const type = items.text('type');
  if (type === 'array' && listType !== undefined && listType !== 'atomic') {
    items.invalid('x-kubernetes-list-type', detail);
  }
  if (type === 'object' && items.value['x-kubernetes-map-type'] !== 'atomic') {
    items.invalid('x-kubernetes-map-type', detail);
  }
}

function checkListMap(schema: CheckedObject, keys: readonly string[]): void {
  const field = 'x-kubernetes-list-map-keys';
  const items = schema.get('items');
  if (keys.length === 0) {
    schema.required(field, 'must not be empty if x-kubernetes-list-type is map');
  }
  if (!items) {
    schema.required('items', 'must have a schema if x-kubernetes-list-type is map');
    return;
  }
  const type = items.text('type');
  if (type !== 'object') {
    const detail = "must be object if parent array's x-kubernetes-list-type is map";
    items.invalid('type', detail, type);
    return;
  }
  const properties = new Map(schemaFieldsOf(items));
  for (const [index, key] of keys.entries()) {
    const property = properties.get(key);
    if (!property) schema.invalid(field, 'entries must all be names of item properties', keys);
    else checkKeyField(property, items.list('required').includes(key));
    if (keys.indexOf(key) < index) {
      schema.invalid(field, 'must not contain duplicate entries', keys);
    }
  }
}

function checkKeyField(field: CheckedObject, isRequired: boolean): void {
  if (['array', 'object'].includes(field.text('type'))) {
    const detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
    field.invalid('type', detail);
  }
  if (!isRequired && !field.has('default')) {
    const detail =
      'this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property';
    field.required('default', detail);
  }
  if (flag(field.value, 'nullable')) {
    const detail = 'this property is in x-kubernetes-list-map-keys, so it cannot be nullable';
    field.forbidden('nullable', detail);
  }
}
