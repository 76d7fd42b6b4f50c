import * as fc from 'fast-check';
import type { JsonSchema } from '../../../../src/api/json-schema.ts';
import type { JsonObject } from '../../../../src/util/json-value.ts';

/** Few names, so that schema and value often match. Includes names with a meaning in JavaScript. */
export const name: fc.Arbitrary<string> = fc.constantFrom(
  'a',
  'b',
  'c',
  'spec',
  '__proto__',
  'constructor',
  'toString',
);

/** An object parsed from text like a request body: `__proto__` is an own member. */
export function jsonObject(entries: readonly (readonly [string, unknown])[]): JsonObject {
  return Object.fromEntries(entries);
}

const { tree } = fc.letrec<{ tree: unknown; object: JsonObject }>((tie) => ({
  tree: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom(null, true, 0, 1, 'x', 'y'),
    fc.array(tie('tree'), { maxLength: 3 }),
    tie('object'),
  ),
  object: fc.array(fc.tuple(name, tie('tree')), { maxLength: 4 }).map(jsonObject),
}));

export const json: fc.Arbitrary<unknown> = tree;
export const object: fc.Arbitrary<JsonObject> = fc
  .array(fc.tuple(name, tree), { maxLength: 4 })
  .map(jsonObject);

/** Structural schemas with valid defaults. */
export const schema: fc.Arbitrary<JsonSchema> = fc.letrec<{ schema: JsonSchema }>((tie) => ({
  schema: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom<JsonSchema>(
      { type: 'integer', default: 1 },
      { type: 'integer' },
      { type: 'string', nullable: true },
      { type: 'string', default: 'x' },
      { 'x-kubernetes-preserve-unknown-fields': true },
    ),
    fc.record({ type: fc.constant('array'), items: tie('schema') }),
    fc.record({ type: fc.constant('object'), additionalProperties: tie('schema') }),
    fc
      .array(fc.tuple(name, tie('schema')), { maxLength: 4 })
      .map((fields) => ({ type: 'object', properties: Object.fromEntries(fields) })),
  ),
})).schema;

export const objectSchema: fc.Arbitrary<JsonSchema> = fc
  .array(fc.tuple(name, schema), { maxLength: 4 })
  .map((fields) => ({ type: 'object', properties: Object.fromEntries(fields) }));

/** Freezes a value deeply, because stored objects must not be modified. */
export function deepFreeze<T>(value: T): T {
  const pending: unknown[] = [value];
  while (pending.length > 0) {
    const next = pending.pop();
    if (typeof next !== 'object' || next === null || Object.isFrozen(next)) continue;
    Object.freeze(next);
    pending.push(...Object.values(next));
  }
  return value;
}

/** Returns `{a: {a: {… leaf}}}`. */
export function nested(depth: number, leaf: unknown = 1): JsonObject {
  let value: JsonObject = { a: leaf };
  for (let level = 1; level < depth; level++) value = { a: value };
  return value;
}
