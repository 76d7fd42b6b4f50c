import assert from 'node:assert/strict';
import { Access } from '../../../../src/apiserver/auth/access.ts';
import { BUILTIN_KINDS } from '../../../../src/apiserver/builtin/kinds.ts';
import { withDefaults } from '../../../../src/apiserver/strategy/defaults.ts';
import { ObjectStore } from '../../../../src/apiserver/storage/object-store.ts';
import { Rbac } from '../../../../src/apiserver/auth/rbac.ts';
import type {
  ApiObject,
  HookContext,
  ResourceDefinition,
} from '../../../../src/apiserver/objects/resource-definition.ts';
import { formatFieldError } from '../../../../src/api/field-error.ts';

export const context: HookContext = {
  now: Date.UTC(2026, 0, 1),
  uid: () => 'uid',
  user: { name: 'jane', groups: ['ops'] },
  verb: 'create',
  subresource: undefined,
  isDryRun: false,
  warn: () => {},
  pluralOf: () => undefined,
  access: new Access('', [], new Rbac(new ObjectStore()), { authenticate: () => undefined }),
  list: () => [],
};

export function kind(name: string): ResourceDefinition {
  const found = BUILTIN_KINDS.find((each) => each.kind === name && !each.storedAs);
  assert.ok(found);
  return found;
}

export function draft(name: string, fields: object, metadata: object = {}): ApiObject {
  const { group, version, namespaced } = kind(name);
  return {
    apiVersion: group ? `${group}/${version}` : version,
    kind: name,
    metadata: {
      name: 'web',
      ...(namespaced && { namespace: 'default' }),
      uid: 'uid',
      resourceVersion: '1',
      creationTimestamp: '2026-01-01T00:00:00Z',
      ...metadata,
    },
    ...fields,
  };
}

const admission = { ...context, forbidden: (why: string) => new Error(why) };

/** The object with its defaults, as its kind's hooks leave it when it is created. */
export function created(name: string, fields: object, metadata: object = {}): ApiObject {
  const definition = kind(name);
  const object = withDefaults(structuredClone(draft(name, fields, metadata)), definition);
  definition.hooks?.admit?.(object, undefined, admission);
  definition.hooks?.prepareForCreate?.(object, context);
  return object;
}

/** The object as its kind's hooks leave it when it takes the place of `previous`. */
export function updated(previous: ApiObject, fields: object, subresource?: string): ApiObject {
  const definition = kind(previous.kind);
  const object = withDefaults(structuredClone({ ...previous, ...fields }), definition);
  if (subresource === undefined) definition.hooks?.admit?.(object, previous, admission);
  definition.hooks?.prepareForUpdate?.(object, previous, { ...context, subresource });
  return object;
}

/** What is wrong with a new object, in the words of the API. */
export function problems(name: string, fields: object, metadata: object = {}): string[] {
  const { hooks } = kind(name);
  return (hooks?.validate?.(created(name, fields, metadata), undefined) ?? []).map(
    formatFieldError,
  );
}

/** What is wrong with the step from one object to the next. */
export function updateProblems(previous: ApiObject, next: ApiObject): string[] {
  const { hooks } = kind(previous.kind);
  return (hooks?.validateUpdate?.(next, previous) ?? []).map(formatFieldError);
}
