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

/** For kinds without one: nothing is known of the fields, each is tracked as it comes. */
const ANY_SCHEMA: JsonSchema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

/** Who writes which object, for tracking and applying. */
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

/** The object with `metadata.managedFields` brought up to date after a write that is no apply. */
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

/** Built-in kinds are Go structs, in which other structs are there from the start. */
function blankObject({ definition }: Call): JsonObject | undefined {
  const message = messageOfKind(definition);
  return message && emptyMessage(message);
}

/** Who the client says it is, else the first word of its user agent. */
function managerOf({ info, request }: Call): string {
  const named = info.query.get('fieldManager');
  if (named) return named;
  const agent = request.headers['user-agent']?.split('/')[0] ?? '';
  return agent.slice(0, LONGEST_MANAGER);
}

/** Top-level fields that the request's path does not write. */
function resetFieldsOf({ info, definition }: Call): readonly string[] {
  if (info.subresource === 'status') {
    return definition.custom ? ['metadata', 'spec'] : ['spec'];
  }
  return definition.subresources.status ? ['status'] : [];
}
