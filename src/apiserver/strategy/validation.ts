import { fieldError, formatFieldError } from '../../api/field-error.ts';
import type { FieldError } from '../../api/field-error.ts';
import type { ReceivedRequest } from '../request/received-request.ts';
import { runSteps } from '../request/pause.ts';
import { apiVersionIn } from '../request/negotiation.ts';
import { cannotBeHandled, unprocessablePatch } from '../request/decoding-errors.ts';
import { requireGoTypes } from '../request/go-types.ts';
import type { ResourceDefinition, StoredObject } from '../objects/resource-definition.ts';
import { validateRules } from '../../cel/validate-rules.ts';
import type { JsonSchema } from '../../api/json-schema.ts';
import { fieldSchema } from '../../api/json-schema.ts';
import { embeddedTypeError, validateCustom } from '../request/embedded-resources.ts';
import { validateScaleValues } from '../objects/scale-values.ts';
import { invalidError } from '../objects/status-error.ts';

/**
 * Validates an object by its schema. Only that of a custom resource has rules for values.
 *
 * @param others errors of the metadata, on which the rules of a custom resource depend
 */
export function validateObject(
  { definition, info, warnings }: Pick<ReceivedRequest, 'definition' | 'info' | 'warnings'>,
  object: StoredObject,
  previous?: StoredObject,
  others: readonly FieldError[] = [],
): FieldError[] {
  const { schema, custom, subresources } = definition;
  if (!schema) return [];
  if (!custom) {
    // The rules of the kind validate its values.
    requireGoTypes({ definition, info, warnings }, object);
    return [];
  }
  const ofType = validateType(object, definition);
  if (ofType.length > 0) {
    return [...ofType, ...validateRules(object, previous, schema, [...ofType, ...others])];
  }
  // As upstream, a write of the status validates the status alone, and the rules of the whole object.
  const isStatus = info.subresource === 'status';
  const errors = isStatus
    ? validateStatus(object, schema, previous)
    : validateCustom(object, schema, '', previous);
  const { scale } = subresources;
  const ofScale = scale ? validateScaleValues(object, scale) : [];
  const structural = [
    ...errors,
    ...ofScale.filter(({ field }) => !isStatus || field !== scale?.specReplicasPath),
  ];
  return [...structural, ...validateRules(object, previous, schema, [...structural, ...others])];
}

function validateStatus(
  object: StoredObject,
  schema: JsonSchema,
  previous: StoredObject | undefined,
): readonly FieldError[] {
  if (!Object.hasOwn(object, 'status')) return [];
  const field = fieldSchema(schema, 'status') ?? {};
  return validateCustom(object['status'], field, 'status', previous?.['status']);
}

function validateType(object: StoredObject, definition: ResourceDefinition): FieldError[] {
  const expected = { kind: definition.kind, apiVersion: apiVersionIn(definition) };
  return (['kind', 'apiVersion'] as const)
    .filter((field) => object[field] !== expected[field])
    .map((field) => fieldError.invalid(field, object[field], `must be ${expected[field]}`));
}

/** Returns the errors of the kind's own rules. Checks a large object in steps. */
export async function errorsOfKind(
  request: ReceivedRequest,
  object: StoredObject,
  previous?: StoredObject,
): Promise<readonly FieldError[]> {
  const { definition, info } = request;
  const { validate, validateInSteps } = definition.hooks ?? {};
  if (!validateInSteps) return validate?.(object, previous) ?? [];
  return runSteps(request, validateInSteps(object, previous, info.subresource), previous);
}

/** @throws {StatusError} 422 if there are errors */
export function requireValid(
  definition: ResourceDefinition,
  object: StoredObject,
  errors: readonly FieldError[],
): void {
  if (errors.length === 0) return;
  const { kind, apiVersion, metadata } = object;
  const group = definition.custom ? apiVersion.split('/').slice(0, -1).join('/') : definition.group;
  throw invalidError({ group, kind }, metadata.name, definition.custom ? errors : distinct(errors));
}

/** As upstream, equal errors in a built-in kind, such as those that are about a whole list, are one. */
function distinct(errors: readonly FieldError[]): readonly FieldError[] {
  return [...new Map(errors.map((error) => [formatFieldError(error), error])).values()];
}

/**
 * Checks that Go decodes an object. As upstream, this comes before all other checks of a write.
 *
 * @throws {StatusError} 400, or 422 of a patch
 */
export function requireDecodable(
  request: ReceivedRequest,
  object: StoredObject,
  toError?: (why: string) => Error,
): void {
  if (request.definition.custom) requireEmbeddedTypes(request, object);
  else requireGoTypes(request, object, toError);
}

/**
 * Upstream decodes the metadata of embedded resources to a Go type.
 *
 * @throws {StatusError} 400, or 422 of a patch
 */
function requireEmbeddedTypes({ definition, info }: ReceivedRequest, object: StoredObject): void {
  const wrong = embeddedTypeError(object, definition.schema ?? {});
  if (!wrong) return;
  const why = formatFieldError(wrong);
  throw info.verb === 'patch'
    ? unprocessablePatch(definition, object, why)
    : cannotBeHandled(definition, why);
}

/** Adds the warnings of the kind for a valid object. */
export function addWarnings(
  { definition, warnings, info }: Pick<ReceivedRequest, 'definition' | 'warnings' | 'info'>,
  object: StoredObject,
  previous: StoredObject | undefined,
): void {
  // As upstream, an apply of the status that creates an object has the warnings of a new one.
  const subresource = previous && info.subresource;
  const texts = definition.warnings?.(object, previous, subresource) ?? [];
  for (const text of texts) warnings.push(text);
}
