import type { FieldError } from './field-error.ts';
import type { JsonSchema } from './json-schema.ts';

/**
 * Returns the message of Go's decoder for a value of the wrong type in a built-in kind. The path in
 * it has field names, but neither map keys nor list indices.
 *
 * @param error the schema error of the value
 */
export function unmarshalProblem(
  { field, badValue }: FieldError,
  kind: string,
  schema: JsonSchema,
): string {
  const path: string[] = [kind];
  let at: JsonSchema = schema;
  for (const step of field.split('.')) {
    const [name = '', ...indices] = step.split('[');
    const property = Object.hasOwn(at.properties ?? {}, name) ? at.properties?.[name] : undefined;
    const member = property ?? valuesOf(at);
    if (!member) break;
    if (property) path.push(name);
    at = indices.reduce((list: JsonSchema) => list.items ?? {}, member);
    // A map key may contain dots.
    if (!property) break;
  }
  return `json: cannot unmarshal ${VALUES.get(String(badValue)) ?? String(badValue)} into Go struct field ${path.join('.')} of type ${goType(at)}`;
}

/** The names of JSON types in Go's decoder that differ from the schema's. */
const VALUES: ReadonlyMap<string, string> = new Map([
  ['integer', 'number'],
  ['boolean', 'bool'],
]);

function valuesOf({ additionalProperties }: JsonSchema): JsonSchema | undefined {
  return typeof additionalProperties === 'object' ? additionalProperties : undefined;
}

function goType(schema: JsonSchema): string {
  switch (schema.type) {
    case 'boolean':
      return 'bool';
    case 'integer':
      return schema.format ?? 'int64';
    case 'number':
      return 'float64';
    case 'array':
      return `[]${goType(schema.items ?? {})}`;
    case 'object': {
      const values = valuesOf(schema);
      return values ? `map[string]${goType(values)}` : 'struct';
    }
    default:
      return schema.type ?? 'interface {}';
  }
}
