import type { FieldError } from './field-error.ts';
import { fieldError } from './field-error.ts';
import type { JsonSchema } from './json-schema.ts';
import type { JsonObject } from './json-value.ts';
import { own, requireDepth } from './json-value.ts';
import { isRecord } from '../../util/values.ts';
import { checkListAndMapTypes } from './crd-list-types.ts';
import { checkRuleExpressions } from './crd-rule-expressions.ts';
import { checkRules } from './crd-rules.ts';
import { unknownFields } from './prune.ts';
import {
  branchesOf,
  flag,
  isSet,
  propertiesOf,
  propertyPath,
  subschema,
  typeOf,
} from './schema-node.ts';
import { checkStructural } from './structural-schema.ts';
import { validateStructure } from './validate.ts';

/**
 * What is wrong with the schema of a version of a custom resource.
 *
 * @param path of the schema: `spec.validation.openAPIV3Schema`
 * @param statusEnabled whether the version has a status subresource
 * @throws {NestingError} if the schema is nested too deeply
 */
export function checkCrdSchema(
  schema: JsonObject,
  path: string,
  statusEnabled: boolean,
): FieldError[] {
  const errors: FieldError[] = [];
  if (statusEnabled) checkRoot(schema, path, errors);
  if (flag(schema, 'nullable')) {
    errors.push(fieldError.forbidden(`${path}.nullable`, 'nullable cannot be true at the root'));
  }
  const structural = checkStructural(schema, path);
  for (const error of structural) errors.push(error);
  if (structural.length === 0) checkDefaults(schema, path, errors, 0);
  checkNode(schema, path, { root: true, inMetadata: false, noDefaults: undefined }, errors, 0);
  return errors.length === 0 ? checkRuleExpressions(schema, path) : errors;
}

/**
 * What may stand beside `properties` at the root, so that `status` can be validated alone, with the
 * names that the message about it has for them.
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

function checkRoot(schema: JsonObject, path: string, errors: FieldError[]): void {
  for (const [key, value] of Object.entries(schema)) {
    if (!isSet(value)) continue;
    if (key === 'type' && value !== 'object') {
      const detail =
        'only "object" is allowed as the type at the root of the schema if the status subresource is enabled';
      errors.push(fieldError.invalid(`${path}.type`, value, detail));
      return;
    }
    if (!ROOT_FIELDS.has(key)) {
      const allowed = [...ROOT_FIELDS.values()].join(' ');
      const detail = `only [${allowed}] fields are allowed at the root of the schema if the status subresource is enabled`;
      errors.push(fieldError.invalid(path, schema, detail));
      return;
    }
  }
}

interface Context {
  readonly root: boolean;
  /** Within the metadata of the resource, or of an embedded one. */
  readonly inMetadata: boolean;
  /** Why defaults may not be set here; undefined if they may. */
  readonly noDefaults: string | undefined;
}

const TYPES = ['array', 'boolean', 'integer', 'number', 'object', 'string'];
const META_FIELDS: ReadonlySet<string> = new Set(['metadata', 'kind', 'apiVersion']);

/** Constructs of JSON schema that Kubernetes does not have. */
const UNSUPPORTED = [
  'id',
  'additionalItems',
  'patternProperties',
  'definitions',
  'dependencies',
  '$ref',
];

function checkNode(
  schema: JsonObject,
  path: string,
  context: Context,
  errors: FieldError[],
  depth: number,
): void {
  requireDepth(depth);
  checkKeywords(schema, path, context, errors);
  const inner: Context = { ...context, root: false };
  const descend = (sub: JsonObject, at: string, its: Context = inner) =>
    checkNode(sub, at, its, errors, depth + 1);

  const values = subschema(schema, 'additionalProperties');
  const fields = propertiesOf(schema);
  if (fields.length > 0 && (values || own(schema, 'additionalProperties') === false)) {
    const detail = 'additionalProperties and properties are mutual exclusive';
    errors.push(fieldError.forbidden(`${path}.additionalProperties`, detail));
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
  checkListAndMapTypes(schema, path, errors);
  checkRules(schema, path, errors);
}

function checkKeywords(
  schema: JsonObject,
  path: string,
  context: Context,
  errors: FieldError[],
): void {
  const type = typeOf(schema);
  const forbid = (key: string, detail: string) =>
    errors.push(fieldError.forbidden(`${path}.${key}`, detail));
  if (type && !TYPES.includes(type)) {
    errors.push(fieldError.notSupported(`${path}.type`, type, TYPES));
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
    errors.push(fieldError.invalid(at, false, 'must be true or undefined'));
  }
}

/** A default must be what the server would store: valid, and without unknown fields. */
function checkDefaults(
  schema: JsonObject,
  path: string,
  errors: FieldError[],
  depth: number,
): void {
  requireDepth(depth);
  if (hasDefault(schema)) {
    const value = own(schema, 'default');
    const at = `${path}.default`;
    const typed = schema as JsonSchema;
    if (unknownFields(value, typed).length > 0) {
      errors.push(fieldError.invalid(at, value, 'must not have unknown fields'));
    }
    for (const error of validateStructure(value, typed, at)) errors.push(error);
  }
  // Below additionalProperties, defaults take effect only in what is sent.
  const items = subschema(schema, 'items');
  if (items) checkDefaults(items, `${path}.items`, errors, depth + 1);
  for (const [name, field] of propertiesOf(schema)) {
    if (isRecord(field)) checkDefaults(field, propertyPath(path, name), errors, depth + 1);
  }
}

function hasDefault(schema: JsonObject): boolean {
  const value = own(schema, 'default');
  return value !== undefined && value !== null;
}
