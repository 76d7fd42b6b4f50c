import type { MaybePromise } from '../../util/maybe-promise.ts';
import { convertedTo } from '../admission/conversion.ts';
import { equivalentsOf } from '../admission/matching.ts';
import type { Call } from './call.ts';
import { apiVersionIn, isOfType } from '../request/negotiation.ts';
import { PatchError } from '../patch/json-patch.ts';
import { Managers, withManagers } from '../patch/managed-fields.ts';
import { requireTyped } from '../patch/typed-value.ts';
import { emptyMessage } from '../protobuf/decode-message.ts';
import { messageOfKind } from '../protobuf/protobuf-body.ts';
import type { FieldVersions, WriteContext } from '../patch/track-update.ts';
import { trackUpdate, withObjectMeta } from '../patch/track-update.ts';
import type { ApiObject, StoredObject } from '../objects/resource-definition.ts';
import type { JsonSchema } from '../../api/json-schema.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { own } from '../../util/json-value.ts';
import { StatusError } from '../objects/status-error.ts';
import { LONGEST_MANAGER } from '../request/write-options.ts';

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

/**
 * Returns an object as sent, with defaults, with updated `metadata.managedFields`: by a create, or an update of
 * `previous` other than apply. As upstream, they stay unchanged if an object does not fit its schema or cannot be
 * converted to the version of one of them.
 */
export function withTrackedFields(
  call: Call,
  object: ApiObject,
  previous?: StoredObject,
): MaybePromise<ApiObject> {
  const context = writeContext(call);
  const update = { ...context, before: previous, blank: blankObject(call), after: object };
  const track = (versions: FieldVersions) => {
    if (!isOfType(object, call.definition)) return keepManagers();
    if (call.definition.custom) requireDroppedTyped(object, context);
    return trackUpdate(previous ? { ...update, versions } : update) as ApiObject;
  };
  const keepManagers = () =>
    withManagers(object, Managers.of(previous) ?? Managers.NONE) as ApiObject;
  const unchanged = (error: unknown) => {
    if (!(error instanceof PatchError || error instanceof StatusError)) throw error;
    return keepManagers();
  };
  try {
    const tracked = withVersions(call, track);
    return tracked instanceof Promise ? tracked.catch(unchanged) : tracked;
  } catch (error) {
    return unchanged(error);
  }
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

/** Thrown by a function that needs an object which a webhook converts. */
class Converting extends Error {
  readonly done: Promise<unknown>;

  constructor(done: Promise<unknown>) {
    super('the object is being converted');
    this.done = done;
  }
}

/**
 * Runs a function without side effects that converts objects. Repeats it after each conversion by a webhook.
 *
 * @throws {StatusError} 500 if the webhook does not convert an object
 */
export function withVersions<T>(call: Call, run: (versions: FieldVersions) => T): MaybePromise<T> {
  const versions = call.definition.custom ? customVersions(call) : builtinVersions(call);
  const attempt = (): MaybePromise<T> => {
    try {
      return run(versions);
    } catch (error) {
      if (!(error instanceof Converting)) throw error;
      return error.done.then(attempt);
    }
  };
  return attempt();
}

function customVersions({ backend: { converter }, definition }: Call): FieldVersions {
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
  const convert: FieldVersions['convert'] = (object, apiVersion, trying = '') => {
    if (object['apiVersion'] === apiVersion) return object;
    const key = `${apiVersion} ${JSON.stringify(object)}`;
    const result = known.get(key) ?? converter.convert(object as ApiObject, definition, apiVersion);
    if (result instanceof Promise) {
      throw new Converting(result.then((converted) => known.set(key, converted)));
    }
    requireTyped(result, schemaOf(apiVersion), trying);
    return result;
  };
  return { schemaOf, convert };
}

function builtinVersions({ backend: { registry }, definition }: Call): FieldVersions {
  const find = (apiVersion: unknown) =>
    apiVersion === apiVersionIn(definition)
      ? definition
      : equivalentsOf(definition, registry).find((each) => apiVersionIn(each) === apiVersion);
  return {
    schemaOf: (apiVersion) => {
      const version = find(apiVersion);
      return version && withObjectMeta(version.schema ?? ANY_SCHEMA);
    },
    convert: (object, apiVersion) => {
      const [from, to] = [find(object['apiVersion']), find(apiVersion)];
      return from && to ? convertedTo(object as StoredObject, from, to) : object;
    },
  };
}

/** Returns an empty object of a built-in kind, which contains its nested Go structs. */
export function blankObject({ definition }: Pick<Call, 'definition'>): JsonObject | undefined {
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

/** Fields that the endpoint does not write. */
function resetFieldsOf({ info, definition }: Call): readonly string[] {
  const { custom, subresources, statusKeeps = [] } = definition;
  if (info.subresource !== 'status') return subresources.status ? ['status'] : [];
  return ['spec', ...(custom ? ['metadata'] : statusKeeps.map((field) => `metadata.${field}`))];
}
