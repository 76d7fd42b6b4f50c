import type { Call } from './call.ts';
import { apiVersionIn } from './negotiation.ts';
import { emptyMessage } from './protobuf/decode-message.ts';
import { messageOfKind } from './protobuf/protobuf-body.ts';
import type { WriteContext } from './patch/track-update.ts';
import { trackUpdate } from './patch/track-update.ts';
import type { ApiObject, StoredObject } from './resource-definition.ts';
import type { JsonSchema } from './schema/json-schema.ts';
import type { JsonObject } from './schema/json-value.ts';
import { LONGEST_MANAGER } from './write-options.ts';

/** Schema of kinds without one: all fields are undeclared. */
const ANY_SCHEMA: JsonSchema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

/** Returns the properties of a write for managed fields. */
export function writeContext(call: Call): WriteContext {
  const { backend, definition, info } = call;
  return {
    manager: managerOf(call),
    apiVersion: apiVersionIn(definition),
    subresource: info.subresource,
    schema: definition.schema ?? ANY_SCHEMA,
    now: backend.clock.now(),
    resetFields: resetFieldsOf(call),
  };
}

/** Returns the object with updated `metadata.managedFields` after a write other than apply. */
export function withTrackedFields(
  call: Call,
  previous: StoredObject | undefined,
  object: ApiObject,
): ApiObject {
  const update = {
    ...writeContext(call),
    before: previous,
    blank: previous ? undefined : blankObject(call),
    after: object,
  };
  return trackUpdate(update) as ApiObject;
}

/** An empty object of a built-in kind, which contains its nested Go structs. */
function blankObject({ definition }: Call): JsonObject | undefined {
  const message = messageOfKind(definition);
  return message && emptyMessage(message);
}

/** The fieldManager of the query, or the first word of the user agent. */
function managerOf({ info, request }: Call): string {
  const named = info.query.get('fieldManager');
  if (named) return named;
  const agent = request.headers['user-agent']?.split('/')[0] ?? '';
  return agent.slice(0, LONGEST_MANAGER);
}

/** Top-level fields that the endpoint does not write. */
function resetFieldsOf({ info, definition }: Call): readonly string[] {
  if (info.subresource === 'status') {
    return definition.custom ? ['metadata', 'spec'] : ['spec'];
  }
  return definition.subresources.status ? ['status'] : [];
}
