import type { Call } from '../call.ts';
import type { ApiObject, ResourceDefinition, StoredObject } from '../resource-definition.ts';
import { contentType, isApplyPatch } from '../request-body.ts';
import { encodeBody, messageOfKind } from '../protobuf/protobuf-body.ts';
import { StatusError } from '../status-error.ts';

/** Default of etcd's `--max-request-bytes`. */
const MAX_REQUEST_BYTES = 1.5 * 1024 * 1024;

/** Bytes that etcd adds to a request. */
const REQUEST_HEADER_BYTES = 17;

/** Maximum size of a request that etcd's client sends. */
const MAX_MESSAGE_BYTES = 2 * 1024 * 1024;

/** Objects of less weight are smaller than any limit, because a character needs up to six bytes. */
const SMALL_WEIGHT = MAX_REQUEST_BYTES / 8;

/** Weight of a value or a member besides its text. */
const VALUE_WEIGHT = 5;

/**
 * Returns an object as it can be stored: without managedFields if it is too large with them. As upstream, an apply
 * needs them.
 *
 * @param previous the object that it replaces
 * @throws {StatusError} 500 if it is too large for a request to etcd
 */
export function storable(
  { definition, request }: Pick<Call, 'definition' | 'request'>,
  object: ApiObject,
  previous?: StoredObject,
): ApiObject {
  const problem = sizeProblem(definition, object, previous);
  if (problem === undefined) return object;
  const { managedFields: _managedFields, ...metadata } = object.metadata;
  const smaller = { ...object, metadata };
  const needsFields = request.method === 'PATCH' && isApplyPatch(contentType(request));
  const left = needsFields ? problem : sizeProblem(definition, smaller, previous);
  if (left === undefined) return smaller;
  throw StatusError.failure({ code: 500, message: left });
}

/** Returns the error of etcd, whose limits apply to JSON of a custom resource and to protobuf of a built-in kind. */
function sizeProblem(
  definition: ResourceDefinition,
  object: StoredObject,
  previous: StoredObject | undefined,
): string | undefined {
  if (weightLeft(object, SMALL_WEIGHT) >= 0) return undefined;
  const { namespace, name } = object.metadata;
  const path = [definition.custom && definition.group, definition.plural, namespace, name];
  const key = Buffer.byteLength(`/registry/${path.filter(Boolean).join('/')}`);
  const bytes = transactionBytes(key, storedBytes(definition, object), previous);
  if (bytes > MAX_MESSAGE_BYTES) {
    return `rpc error: code = ResourceExhausted desc = trying to send message larger than max (${bytes} vs. ${MAX_MESSAGE_BYTES})`;
  }
  return bytes + REQUEST_HEADER_BYTES > MAX_REQUEST_BYTES
    ? 'etcdserver: request is too large'
    : undefined;
}

/** Returns `left` without the weight of a value; stops below 0. */
function weightLeft(value: unknown, left: number): number {
  if (typeof value === 'string') return left - value.length;
  if (typeof value !== 'object' || value === null) return left;
  let rest = left;
  if (Array.isArray(value)) {
    for (const item of value) {
      rest = weightLeft(item, rest - VALUE_WEIGHT);
      if (rest < 0) return rest;
    }
    return rest;
  }
  for (const key in value) {
    rest = weightLeft((value as Record<string, unknown>)[key], rest - key.length - VALUE_WEIGHT);
    if (rest < 0) return rest;
  }
  return rest;
}

function storedBytes(definition: ResourceDefinition, object: StoredObject): number {
  const { resourceVersion: _version, ...metadata } = object.metadata;
  const stored = { ...object, metadata };
  const message = messageOfKind(definition);
  if (message) return encodeBody(stored, message).length;
  const json = JSON.stringify(stored);
  // As Go, which escapes some characters and ends with a newline.
  const escaped = json.match(/[<>&]/g)?.length ?? 0;
  return Buffer.byteLength(json) + 5 * escaped + 1;
}

/** Returns the size of the transaction that stores a value if its key has not changed. */
function transactionBytes(key: number, value: number, previous?: StoredObject): number {
  const revision = previous ? varintBytes(Number(previous.metadata.resourceVersion)) : 1;
  const compare = delimited(2 + delimited(key) + 1 + revision);
  const put = delimited(delimited(delimited(key) + delimited(value)));
  // If it has changed, an update reads the present object.
  const get = previous ? delimited(delimited(delimited(key))) : 0;
  return compare + put + get;
}

/** Size of a protobuf field with `length` bytes. */
function delimited(length: number): number {
  return 1 + varintBytes(length) + length;
}

function varintBytes(value: number): number {
  return Math.max(1, Math.ceil(Math.log2(value + 1) / 7));
}
