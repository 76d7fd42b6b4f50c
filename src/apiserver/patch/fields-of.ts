import type { JsonSchema } from '../schema/json-schema.ts';
import type { JsonObject } from '../schema/json-value.ts';
import { requireDepth } from '../schema/json-value.ts';
import { isRecord } from '../../util/values.ts';
import { FieldSet, FieldSetBuilder } from './field-set.ts';
import type { PathElement } from './path-element.ts';
import { fieldElement, fieldName } from './path-element.ts';
import type { Shape } from './typed-value.ts';
import { isDeclared, itemElement, itemSchema, memberSchema, shapeOf } from './typed-value.ts';

/**
 * The fields that `object` has: its leaves, the items of its lists, and the members of maps whose
 * names are data. A declared field with something in it is not a field of its own: who applies
 * `spec.replicas` does not own `spec`.
 *
 * @throws {NestingError} if the object is nested too deeply
 */
export function fieldsOf(object: JsonObject, schema: JsonSchema): FieldSet {
  const builder = new FieldSetBuilder();
  collectMembers(object, schema, builder, 0);
  return builder.build();
}

function collectMembers(
  object: JsonObject,
  schema: JsonSchema,
  into: FieldSetBuilder,
  depth: number,
): void {
  requireDepth(depth);
  for (const [name, value] of Object.entries(object)) {
    const element = fieldElement(name);
    if (isEmptyValue(value) || !isDeclared(schema, name)) into.add(element);
    collect(value, memberSchema(schema, name), into, element, depth);
  }
}

function collect(
  value: unknown,
  schema: JsonSchema,
  into: FieldSetBuilder,
  element: PathElement,
  depth: number,
): void {
  const shape = shapeOf(value, schema);
  if (shape.kind === 'leaf') {
    into.add(element);
  } else if (shape.kind === 'map') {
    if (isRecord(value)) collectMembers(value, schema, into.at(element), depth + 1);
    else into.add(element);
  } else if (Array.isArray(value)) {
    collectItems(value, schema, shape, into.at(element), depth + 1);
  } else {
    into.add(element);
  }
}

function collectItems(
  list: readonly unknown[],
  schema: JsonSchema,
  shape: Shape,
  into: FieldSetBuilder,
  depth: number,
): void {
  requireDepth(depth);
  const elements = list.map((item) => itemElement(item, schema, shape));
  const seen = new Set<PathElement>();
  const twice = new Set<PathElement>();
  for (const element of elements) {
    if (element === undefined) continue;
    if (seen.has(element)) twice.add(element);
    seen.add(element);
  }
  for (const [index, element] of elements.entries()) {
    if (element === undefined) continue;
    into.add(element);
    // Items that cannot be told apart are owned together, as a whole.
    if (!twice.has(element)) collect(list[index], itemSchema(schema), into, element, depth);
  }
}

function isEmptyValue(value: unknown): boolean {
  return value === null || (isRecord(value) && Object.keys(value).length === 0);
}

/** `set` with every declared field that leads to a member being a member itself. */
export function withDeclaredParents(set: FieldSet, schema: JsonSchema): FieldSet {
  const members = new Set(set.members);
  const children: [PathElement, FieldSet][] = [];
  for (const [element, child] of set.children) {
    const name = fieldName(element);
    if (name !== undefined && isDeclared(schema, name)) members.add(element);
    children.push([element, withDeclaredParents(child, schemaAt(schema, element))]);
  }
  return FieldSet.of(members, children);
}

/**
 * `set` as the schema of today would have it: what was owned part by part, and has become atomic,
 * is owned as a whole.
 */
export function reconciled(set: FieldSet, schema: JsonSchema): FieldSet {
  let changed = false;
  const members = new Set(set.members);
  const children: [PathElement, FieldSet][] = [];
  for (const [element, child] of set.children) {
    const below = schemaAt(schema, element);
    if (below.type && shapeOf(undefined, below).kind === 'leaf' && isContainerType(below.type)) {
      members.add(element);
      changed = true;
      continue;
    }
    const next = reconciled(child, below);
    changed ||= next !== child;
    children.push([element, next]);
  }
  return changed ? FieldSet.of(members, children) : set;
}

function schemaAt(schema: JsonSchema, element: PathElement): JsonSchema {
  const name = fieldName(element);
  return name === undefined ? itemSchema(schema) : memberSchema(schema, name);
}

function isContainerType(type: string): boolean {
  return type === 'object' || type === 'array';
}
