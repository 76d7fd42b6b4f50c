import type { JsonSchema } from '../../api/json-schema.ts';

/** The description of a type, under the empty name, and those of its fields. */
export type TypeDescriptions = Readonly<Record<string, string>>;

/** Descriptions of the built-in types by the names of their schemas. */
export type Descriptions = Readonly<Record<string, TypeDescriptions>>;

let loaded: Promise<Descriptions> | undefined;

/** Returns upstream's descriptions. They are loaded for the first document, because they need a megabyte. */
export function loadDescriptions(): Promise<Descriptions> {
  loaded ??= import('../generated/descriptions.ts').then(
    ({ DESCRIPTIONS }) => JSON.parse(DESCRIPTIONS) as Descriptions,
  );
  return loaded;
}

/** Returns a published schema with the descriptions of its type and its fields. */
export function describeSchema(schema: JsonSchema, descriptions: TypeDescriptions): JsonSchema {
  const { '': description, ...ofFields } = descriptions;
  const properties = Object.entries(schema.properties ?? {}).map(([name, field]) => {
    const text = Object.hasOwn(ofFields, name) ? ofFields[name] : undefined;
    return [name, text === undefined ? field : { description: text, ...field }] as const;
  });
  return {
    ...(description && { description }),
    ...schema,
    ...(schema.properties && { properties: Object.fromEntries(properties) }),
  };
}
