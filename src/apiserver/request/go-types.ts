import type { ReceivedRequest } from './received-request.ts';
import { goMetadataSchema } from '../protobuf/go-schema.ts';
import { goTypeOf } from '../json/go-json.ts';
import type { ResourceDefinition, StoredObject } from '../objects/resource-definition.ts';
import type { FieldError } from '../../api/field-error.ts';
import { withSortedKeys } from '../../util/go-format.ts';
import { messageTypeOf } from '../protobuf/decode-message.ts';
import { messageOfKind } from '../protobuf/protobuf-body.ts';
import { isRecord } from '../../util/values.ts';
import type { GoKind } from './unmarshal-problem.ts';
import { endsDecoding, isOutOfRange, unmarshalProblem } from './unmarshal-problem.ts';
import { validateValues } from '../schema/validate.ts';
import { cannotBeHandled, unprocessablePatch } from './decoding-errors.ts';

/** Whether Go does not decode a value. It decodes null, and an empty text to no bytes. */
export function isOfAnotherType({ reason, badValue, detail }: FieldError): boolean {
  if (isOutOfRange({ detail })) return true;
  return (
    reason === 'FieldValueTypeInvalid' &&
    badValue !== 'null' &&
    !(badValue === '' && detail.includes('must be of type byte'))
  );
}

/**
 * Built-in kinds are Go types, which do not decode values of other types.
 *
 * @throws {StatusError} 400, or 422 of a patch
 */
export function requireGoTypes(
  { definition, info, warnings }: Pick<ReceivedRequest, 'definition' | 'info' | 'warnings'>,
  object: StoredObject,
  toError: (why: string) => Error = (why) =>
    info.verb === 'patch'
      ? unprocessablePatch(definition, object, why)
      : cannotBeHandled(definition, why),
): void {
  let wrong = firstMismatch(validateValues(object, definition.schema ?? {}));
  if (!wrong) return;
  // A patch encodes what it has changed with sorted keys.
  if (info.verb === 'patch') {
    wrong = firstMismatch(validateValues(withSortedKeys(object), definition.schema ?? {})) ?? wrong;
  }
  // As upstream, an object that cannot be decoded has no unknown fields. The first warning is about the kind.
  warnings.length = definition.deprecationWarning === undefined ? 0 : 1;
  throw toError(unmarshalProblem(wrong, object, goKindOf(definition)));
}

/** As upstream, the decoder stops at a value of a type that decodes itself, and continues after other values. */
function firstMismatch(errors: readonly FieldError[]): FieldError | undefined {
  const end = errors.find((error, index) => endsDecoding(error, errors[index - 1]));
  return end ?? errors.find(isOfAnotherType);
}

/** Returns why Go does not decode an object: the first value of another type. */
export function decodingProblem(
  body: Readonly<Record<string, unknown>>,
  definition: ResourceDefinition,
  from: 'body' | 'patch',
): string | undefined {
  const json = from === 'patch' ? withSortedKeys(body) : body;
  const wrong = firstMismatch(validateValues(json, definition.schema ?? {}));
  return wrong && unmarshalProblem(wrong, body, goKindOf(definition));
}

export function goKindOf(definition: ResourceDefinition): GoKind {
  const { kind, schema = {} } = definition;
  return { kind, schema, message: messageOfKind(definition) };
}

/** Returns why Go does not decode metadata, undefined if it does. */
export function metadataProblem(value: unknown): string | undefined {
  if (!isRecord(value)) return notMetadata(value);
  const schema = goMetadataSchema();
  const wrong = firstMismatch(validateValues(value, schema));
  return (
    wrong &&
    unmarshalProblem(wrong, value, {
      kind: 'ObjectMeta',
      schema,
      message: messageTypeOf('meta.v1.ObjectMeta'),
    })
  );
}

export function notMetadata(value: unknown): string {
  return `json: cannot unmarshal ${goTypeOf(value)} into Go value of type v1.ObjectMeta`;
}
