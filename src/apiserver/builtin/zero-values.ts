import type { JsonSchema } from '../schema/json-schema.ts';

/**
 * The schema of a status, in which a required field that is missing has Go's zero value: a server
 * whose types are Go's does not notice that it was left out, and shows it from then on. (In a spec
 * it does not notice either, but goes on to find that the value is no good; there the field stays
 * required.) A field whose zero value the format would refuse, a time, stays absent.
 */
export function withZeroValues(schema: JsonSchema): JsonSchema {
  return copy(schema, new Map());
}

/** Schemas are shared and may contain themselves: each is copied once. */
function copy(schema: JsonSchema, copies: Map<JsonSchema, JsonSchema>): JsonSchema {
  const known = copies.get(schema);
  if (known) return known;
  const node = {};
  copies.set(schema, node);
  const { required = [], properties, items, additionalProperties, ...rest } = schema;
  Object.assign(node, rest, {
    ...(properties && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([name, field]) => {
          const copied = copy(field, copies);
          const zero = required.includes(name) ? zeroOf(field) : undefined;
          return [name, zero === undefined ? copied : { ...copied, default: zero }];
        }),
      ),
    }),
    ...(items && { items: copy(items, copies) }),
    ...(additionalProperties !== undefined && {
      additionalProperties:
        typeof additionalProperties === 'object'
          ? copy(additionalProperties, copies)
          : additionalProperties,
    }),
  });
  return node;
}

function zeroOf({ type, format, default: given }: JsonSchema): unknown {
  if (given !== undefined) return given;
  switch (type) {
    case 'string':
      return format === undefined ? '' : undefined;
    case 'integer':
    case 'number':
      return 0;
    case 'boolean':
      return false;
    default:
      return undefined;
  }
}
