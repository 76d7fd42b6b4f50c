import type { Clock } from '../../util/clock.ts';
import type { Registry } from '../objects/registry.ts';
import { convertedTo, equivalentsOf } from '../request/conversion.ts';
import { pause } from '../request/pause.ts';
import type { ReceivedRequest } from '../request/received-request.ts';
import { apiVersionIn, isOfType } from '../request/negotiation.ts';
import { PatchError } from '../patch/json-patch.ts';
import { Managers, withManagers } from './managed-fields.ts';
import { requireTyped } from './typed-value.ts';
import { emptyMessage } from '../protobuf/decode-message.ts';
import { messageOfKind } from '../protobuf/protobuf-body.ts';
import { withObjectMeta } from './kind-schema.ts';
import { trackUpdate } from './track-update.ts';
import type { FieldVersions, WriteContext } from './write-context.ts';
import type {
  ApiObject,
  ResourceDefinition,
  StoredObject,
} from '../objects/resource-definition.ts';
import type { JsonSchema } from '../../api/json-schema.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { own } from '../../util/json-value.ts';
import { StatusError } from '../objects/status-error.ts';
import { LONGEST_MANAGER } from '../objects/manager-name.ts';

/** Schema of kinds without one: all fields are undeclared. */
const ANY_SCHEMA: JsonSchema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

/** A request that changes the managed fields of an object. */
export interface ManagedRequest extends ReceivedRequest {
  readonly backend: {
    readonly clock: Clock;
    readonly registry: Registry;
    readonly converter: {
      /** Converts a custom resource to another version. Rejects with a `StatusError` if a webhook fails. */
      readonly convert: (
        object: ApiObject,
        definition: ResourceDefinition,
        apiVersion: string,
      ) => Promise<ApiObject>;
    };
  };
}

/** Returns the properties of a write for managed fields. */
export function writeContext(request: ManagedRequest): WriteContext {
  const { backend, definition, info } = request;
  return {
    manager: managerOf(request),
    apiVersion: apiVersionIn(definition),
    subresource: info.subresource,
    schema: definition.schema ?? ANY_SCHEMA,
    now: backend.clock.now(),
    resetFields: resetFieldsOf(request),
  };
}

/**
 * Returns an object as sent, with defaults, with updated `metadata.managedFields`: by a create, or an update of
 * `previous` other than apply. As upstream, they stay unchanged if an object does not fit its schema or cannot be
 * converted to the version of one of them.
 */
export async function withTrackedFields(
  request: ManagedRequest,
  object: ApiObject,
  previous?: StoredObject,
): Promise<ApiObject> {
  const { definition } = request;
  await pause(request, previous);
  const context = writeContext(request);
  const steps = { pause: () => pause(request, previous) };
  const blank = blankObject(request);
  const update = { ...context, ...steps, before: previous, blank, after: object };
  try {
    if (isOfType(object, definition)) {
      if (definition.custom) requireDroppedTyped(object, context);
      const versions = fieldVersions(request);
      return (await trackUpdate({ ...update, versions })) as ApiObject;
    }
  } catch (error) {
    if (!(error instanceof PatchError || error instanceof StatusError)) throw error;
  }
  return withManagers(object, Managers.of(previous) ?? Managers.NONE) as ApiObject;
}

/**
 * Checks the types of the fields that the endpoint does not write. Validation checks the others.
 *
 * @throws {PatchError}
 */
function requireDroppedTyped(object: ApiObject, { schema, resetFields = [] }: WriteContext): void {
  for (const name of resetFields) {
    const value = own(object, name);
    if (name !== 'metadata' && value !== undefined) requireTyped({ [name]: value }, schema);
  }
}

/** Returns the versions in which the managed fields of an object may have been written. */
export function fieldVersions(request: ManagedRequest): FieldVersions {
  return request.definition.custom ? customVersions(request) : builtinVersions(request);
}

function customVersions({ backend: { converter }, definition }: ManagedRequest): FieldVersions {
  const { group, versionSchemas = {} } = definition;
  const known = new Map<string, ApiObject>();
  const schemaOf = (apiVersion: string) => {
    const version = apiVersion.slice(group.length + 1);
    if (apiVersion !== `${group}/${version}` || !Object.hasOwn(versionSchemas, version)) {
      const problem = 'request to convert CR to an invalid group/version';
      throw new PatchError('untyped', `${problem}: ${apiVersion}`);
    }
    return withObjectMeta(versionSchemas[version] ?? ANY_SCHEMA);
  };
  const convert: FieldVersions['convert'] = async (object, apiVersion, trying = '') => {
    if (object['apiVersion'] === apiVersion) return object;
    const key = `${apiVersion} ${JSON.stringify(object)}`;
    const converted =
      known.get(key) ?? (await converter.convert(object as ApiObject, definition, apiVersion));
    known.set(key, converted);
    requireTyped(converted, schemaOf(apiVersion), trying);
    return converted;
  };
  return { schemaOf, convert };
}

function builtinVersions({ backend: { registry }, definition }: ManagedRequest): FieldVersions {
  const find = (apiVersion: unknown) =>
    apiVersion === apiVersionIn(definition)
      ? definition
      : equivalentsOf(definition, registry).find((each) => apiVersionIn(each) === apiVersion);
  return {
    schemaOf: (apiVersion) => {
      const version = find(apiVersion);
      // As upstream, which drops those of the other group of events.
      if (version?.group !== definition.group) return undefined;
      return withObjectMeta(version.schema ?? ANY_SCHEMA);
    },
    convert: (object, apiVersion) => {
      const [from, to] = [find(object['apiVersion']), find(apiVersion)];
      const converted = from && to ? convertedTo(object as StoredObject, from, to) : object;
      return Promise.resolve(converted);
    },
  };
}

/** Returns an empty object of a built-in kind, which contains its nested Go structs. */
export function blankObject({
  definition,
}: Pick<ManagedRequest, 'definition'>): JsonObject | undefined {
  const message = messageOfKind(definition);
  return message && emptyMessage(message);
}

/** The fieldManager of the query, or the first word of the user agent. */
function managerOf({ info, request }: ManagedRequest): string {
  const named = info.query.get('fieldManager');
  if (named) return named;
  const agent = request.headers['user-agent']?.split('/')[0] ?? '';
  return agent.slice(0, LONGEST_MANAGER);
}

/** Fields that the endpoint does not write. */
function resetFieldsOf({ info, definition }: ManagedRequest): readonly string[] {
  const { subresources, statusKeeps = [] } = definition;
  if (info.subresource !== 'status') return subresources.status ? ['status'] : [];
  if (statusKeeps === 'metadata') return ['spec', 'metadata'];
  return ['spec', ...statusKeeps.map((field) => `metadata.${field}`)];
}
