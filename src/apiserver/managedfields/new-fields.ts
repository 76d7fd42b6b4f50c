import { memberSchema } from '../../api/json-schema.ts';
import { Memo, oncePerObject } from '../../util/memo.ts';
import { isRecord } from '../../util/values.ts';
import type { JsonSchema } from '../../api/json-schema.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { requireDepth } from '../../util/json-value.ts';
import { compareFields, isEmptyOf } from './compare-fields.ts';
import { fieldElement, FieldSet } from './field-set.ts';
import { UNMANAGED } from './managed-fields.ts';
import { shapeOf } from './typed-value.ts';

/** Maximum number of nodes for a schema, because clients choose the names of fields. */
export const MAX_NODES = 10_000;

/** The beginning of an object: the names of its fields so far, and which of them contain others. */
class Node {
  readonly leaves = new Map<string, Node>();
  readonly objects = new Map<string, Node>();
  /** The same fields, and the end of the innermost object. */
  end: Node | undefined;
  /** The fields of the objects that end here. */
  fields: FieldSet | undefined;
}

/** The fields of new objects by the shapes of the objects, because most objects of a kind have the same shape. */
class NewFields {
  readonly #schema: JsonSchema;
  readonly #omitted: FieldSet;
  #root = new Node();
  #nodes = 0;

  constructor(schema: JsonSchema, resetFields: readonly string[]) {
    this.#schema = schema;
    this.#omitted = FieldSet.of(resetFields.map(fieldElement));
  }

  of(object: Readonly<JsonObject>): FieldSet {
    if (this.#nodes > MAX_NODES) {
      this.#root = new Node();
      this.#nodes = 0;
    }
    const node = this.#walk(object, this.#schema, this.#root, 0);
    if (node?.fields) return node.fields;
    const { added } = compareFields({}, object, this.#schema);
    const fields = added.recursiveDifference(this.#omitted).difference(UNMANAGED);
    if (node) node.fields = fields;
    return fields;
  }

  /** Returns the node at the end of an object, or undefined if its fields depend on the items of a list. */
  #walk(
    object: Readonly<JsonObject>,
    schema: JsonSchema,
    start: Node,
    depth: number,
  ): Node | undefined {
    requireDepth(depth);
    let node = start;
    for (const name of Object.keys(object)) {
      const value = object[name];
      if (value === undefined) continue;
      // An object with so many names shares them with no other one.
      if (this.#nodes > MAX_NODES) return undefined;
      const member = memberSchema(schema, name);
      const shape = shapeOf(value, member);
      if (shape.kind === 'leaf' || isEmptyOf(shape, value)) {
        node = this.#next(node.leaves, name);
        continue;
      }
      if (shape.kind !== 'map' || !isRecord(value)) return undefined;
      const last = this.#walk(value, member, this.#next(node.objects, name), depth + 1);
      if (!last) return undefined;
      last.end ??= this.#added();
      node = last.end;
    }
    return node;
  }

  #next(nodes: Map<string, Node>, name: string): Node {
    let next = nodes.get(name);
    if (!next) {
      next = this.#added();
      nodes.set(name, next);
    }
    return next;
  }

  #added(): Node {
    this.#nodes++;
    return new Node();
  }
}

const bySchema = oncePerObject(
  (schema: JsonSchema) =>
    new Memo(100, (resetFields) => new NewFields(schema, JSON.parse(resetFields) as string[])),
);

/**
 * Returns the fields of an object that was not there, without those that have no manager and without `resetFields` and
 * the fields below them. Objects of the same shape have the same set.
 *
 * @param schema must not change
 * @throws {NestingError} if the object is nested too deeply
 */
export function newFields(
  object: Readonly<JsonObject>,
  schema: JsonSchema,
  resetFields: readonly string[] = [],
): FieldSet {
  return bySchema(schema).get(JSON.stringify(resetFields)).of(object);
}
