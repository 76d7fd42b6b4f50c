import assert from 'node:assert/strict';
import type { ApplyPatch, Conflict } from '../../../../src/apiserver/managedfields/apply.ts';
import { applyPatch } from '../../../../src/apiserver/managedfields/apply.ts';
import { FieldSet, displayPath } from '../../../../src/apiserver/managedfields/field-set.ts';
import { managedFieldsOf } from '../../../../src/apiserver/managedfields/managed-fields.ts';
import type { Update } from '../../../../src/apiserver/managedfields/track-update.ts';
import { trackUpdateOfVersion } from '../../../../src/apiserver/managedfields/track-update.ts';
import type { JsonSchema } from '../../../../src/api/json-schema.ts';
import type { JsonObject } from '../../../../src/util/json-value.ts';
import { deepFreeze } from '../schema/arbitraries.ts';

export const API_VERSION = 'demo.mark8s.io/v1';

export const SCHEMA: JsonSchema = deepFreeze({
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: {
        replicas: { type: 'integer' },
        name: { type: 'string' },
        args: { type: 'array', items: { type: 'string' } },
        tags: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
        ports: {
          type: 'array',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['port', 'protocol'],
          items: {
            type: 'object',
            required: ['port'],
            properties: {
              port: { type: 'integer' },
              protocol: { type: 'string', default: 'TCP' },
              name: { type: 'string' },
            },
          },
        },
        selector: {
          type: 'object',
          'x-kubernetes-map-type': 'atomic',
          additionalProperties: { type: 'string' },
        },
        limits: { type: 'object', additionalProperties: { type: 'string' } },
        open: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      },
    },
    status: { type: 'object', properties: { ready: { type: 'boolean' } } },
  },
});

/** Returns an object with this spec, as a client sends it. */
export function count(spec: JsonObject, metadata: JsonObject = {}): JsonObject {
  return { ...named(metadata), spec };
}

/** Returns an object with only a name. */
export function named(metadata: JsonObject = {}): JsonObject {
  return { apiVersion: API_VERSION, kind: 'Count', metadata: { name: 'x', ...metadata } };
}

interface Options {
  readonly manager?: string;
  readonly now?: number;
  readonly subresource?: string;
  readonly force?: boolean;
  readonly apiVersion?: string;
}

const context = { manager: 'me', apiVersion: API_VERSION, schema: SCHEMA, now: 0 };

function resets(subresource: string | undefined): readonly string[] {
  return subresource === 'status' ? ['metadata', 'spec'] : ['status'];
}

/** Returns the object after an update. Freezes arguments and result. */
export function updated(
  before: JsonObject | undefined,
  after: JsonObject,
  options: Options = {},
): JsonObject {
  const update: Update = {
    ...context,
    resetFields: resets(options.subresource),
    ...options,
    before,
    after,
  };
  return deepFreeze(trackUpdateOfVersion(deepFreeze(update)));
}

export async function tryApply(
  live: JsonObject | undefined,
  applied: JsonObject,
  options: Options = {},
): ReturnType<typeof applyPatch> {
  const patch: ApplyPatch = {
    ...context,
    resetFields: resets(options.subresource),
    ...options,
    live,
    applied,
  };
  return deepFreeze(await applyPatch(deepFreeze(patch)));
}

/** Returns the object after an apply without conflicts. */
export async function applied(
  live: JsonObject | undefined,
  wanted: JsonObject,
  options: Options = {},
): Promise<JsonObject> {
  const result = await tryApply(live, wanted, options);
  assert.ok(result.kind === 'applied', `conflicts: ${JSON.stringify(result)}`);
  return result.object;
}

export async function conflictsOf(
  live: JsonObject,
  wanted: JsonObject,
  options: Options = {},
): Promise<readonly Conflict[]> {
  const result = await tryApply(live, wanted, options);
  assert.equal(result.kind, 'conflicts');
  return result.kind === 'conflicts' ? result.conflicts : [];
}

/** Fields by manager, in the order of managedFields: `kubectl Update` → `['.spec.replicas']`. */
export function owners(object: JsonObject): Record<string, string[]> {
  const entries = (managedFieldsOf(object) ?? []) as readonly JsonObject[];
  return Object.fromEntries(
    entries.map(({ manager, operation, subresource, fieldsV1 }) => [
      [manager, operation, subresource].filter(Boolean).join(' '),
      [...FieldSet.fromJson(fieldsV1).paths()].map(displayPath),
    ]),
  );
}

/** Returns the times of managedFields in order. */
export function times(object: JsonObject): unknown[] {
  return ((managedFieldsOf(object) ?? []) as readonly JsonObject[]).map(({ time }) => time);
}
