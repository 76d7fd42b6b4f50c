import type { FieldError } from './field-error.ts';
import type { JsonSchema } from './json-schema.ts';

/**
 * A value of the wrong type in a built-in kind, as Go's decoder puts it. It names the fields on the
 * way but neither keys of maps nor indices of lists.
 *
 * @param error the same mistake as a schema has it
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
    // A key of a map may have dots of its own.
    if (!property) break;
  }
  return `json: cannot unmarshal ${VALUES.get(String(badValue)) ?? String(badValue)} into Go struct field ${path.join('.')} of type ${goType(at)}`;
}

/** What Go calls the JSON values that schemas tell apart. */
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
