import { utf8Length } from '../../util/bytes.ts';
import type { Call } from './call.ts';
import { pause, weightLeft } from '../request/pause.ts';
import type {
  ApiObject,
  ResourceDefinition,
  StoredObject,
} from '../objects/resource-definition.ts';
import { contentType, isApplyPatch } from '../request/request-body.ts';
import { bodyLength, messageOfKind } from '../protobuf/protobuf-body.ts';
import { delimitedLength, varintLength } from '../protobuf/message-length.ts';
import { encodeExactJson } from '../json/json-text.ts';
import { StatusError } from '../objects/status-error.ts';

/** Default of etcd's `--max-request-bytes`. */
const MAX_REQUEST_BYTES = 1.5 * 1024 * 1024;

/** Bytes that etcd adds to a request. */
const REQUEST_HEADER_BYTES = 17;

/** Maximum size of a request that etcd's client sends. */
const MAX_MESSAGE_BYTES = 2 * 1024 * 1024;

/** Objects of less weight are smaller than any limit, because a character needs up to six bytes. */
const SMALL_WEIGHT = MAX_REQUEST_BYTES / 8;

/**
 * Returns an object as it can be stored: without managedFields if it is too large with them. As upstream, an apply
 * needs them.
 *
 * Rejects with a `StatusError`: 500 if it is too large for a request to etcd
 *
 * @param previous the object that it replaces
 */
export async function storable(
  { definition, request, turns }: Pick<Call, 'definition' | 'request' | 'turns'>,
  object: ApiObject,
  previous?: StoredObject,
): Promise<ApiObject> {
  if (weightLeft(object, SMALL_WEIGHT) >= 0) return object;
  const problem = sizeProblem(definition, object, previous);
  if (problem === undefined) return object;
  if (request.method === 'PATCH' && isApplyPatch(contentType(request))) throw refused(problem);
  const { managedFields: _managedFields, ...metadata } = object.metadata;
  const smaller = { ...object, metadata };
  await pause({ request, turns }, object);
  const remaining = sizeProblem(definition, smaller, previous);
  if (remaining !== undefined) throw refused(remaining);
  return smaller;
}

function refused(problem: string): StatusError {
  return StatusError.failure({ code: 500, message: problem });
}

/** Returns the error of etcd, whose limits apply to JSON of a custom resource and to protobuf of a built-in kind. */
function sizeProblem(
  definition: ResourceDefinition,
  object: StoredObject,
  previous: StoredObject | undefined,
): string | undefined {
  const { namespace, name } = object.metadata;
  const path = [definition.custom && definition.group, definition.plural, namespace, name];
  const key = utf8Length(`/registry/${path.filter(Boolean).join('/')}`);
  const bytes = transactionBytes(key, storedBytes(definition, object), previous);
  if (bytes > MAX_MESSAGE_BYTES) {
    return `rpc error: code = ResourceExhausted desc = trying to send message larger than max (${bytes} vs. ${MAX_MESSAGE_BYTES})`;
  }
  return bytes + REQUEST_HEADER_BYTES > MAX_REQUEST_BYTES
    ? 'etcdserver: request is too large'
    : undefined;
}

function storedBytes(definition: ResourceDefinition, object: StoredObject): number {
  const { resourceVersion: _version, ...metadata } = object.metadata;
  const stored = { ...object, metadata };
  const message = messageOfKind(definition);
  if (message) return bodyLength(stored, message);
  // As Go, whose encoder ends with a newline.
  return utf8Length(encodeExactJson(stored)) + 1;
}

/** Returns the size of the transaction that stores a value if its key has not changed. */
function transactionBytes(key: number, value: number, previous?: StoredObject): number {
  const revision = previous ? varintLength(Number(previous.metadata.resourceVersion)) : 1;
  const compare = delimitedSize(2 + delimitedSize(key) + 1 + revision);
  const put = delimitedSize(delimitedSize(delimitedSize(key) + delimitedSize(value)));
  // If it has changed, an update reads the present object.
  const get = previous ? delimitedSize(delimitedSize(delimitedSize(key))) : 0;
  return compare + put + get;
}

/** Length of a field with `length` bytes and a small number. */
function delimitedSize(length: number): number {
  return delimitedLength(1, length);
}
