import { schemaName } from '../builtin/definition.ts';
import { publishedSchemas } from '../builtin/schemas.ts';
import type { ResourceDefinition } from '../resource-definition.ts';
import type { JsonSchema } from '../schema/json-schema.ts';

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1.';
const REF_PREFIX = '#/components/schemas/';

/** Names of the schemas that operations refer to beside those of their own kinds. */
export const SHARED_SCHEMAS = {
  deleteOptions: `${META}DeleteOptions`,
  patch: `${META}Patch`,
  status: `${META}Status`,
  scale: schemaName('autoscaling', 'Scale'),
  binding: schemaName('', 'Binding'),
  eviction: schemaName('policy', 'Eviction'),
} as const;

/** A reference to the schema of that name. */
export function refTo(name: string): { readonly $ref: string } {
  return { $ref: `${REF_PREFIX}${name}` };
}

/**
 * What a kind's schema is called: the package of its Go type, or the group turned round
 * (`io.mark8s.demo.v1.Count`).
 */
export function componentName(
  { group, version, custom }: Pick<ResourceDefinition, 'group' | 'version' | 'custom'>,
  kind: string,
): string {
  if (!custom) return schemaName(group, kind);
  return [...group.split('.').reverse(), version, kind].join('.');
}

/** The schemas of these kinds and of their lists, with all that they and operations refer to. */
export function componentsOf(
  definitions: readonly ResourceDefinition[],
): ReadonlyMap<string, PublishedSchema> {
  const found = new Map<string, PublishedSchema>();
  const pending: string[] = [
    SHARED_SCHEMAS.deleteOptions,
    SHARED_SCHEMAS.patch,
    SHARED_SCHEMAS.status,
  ];
  for (const definition of definitions) {
    const name = componentName(definition, definition.kind);
    const list = componentName(definition, definition.listKind);
    if (definition.custom) {
      found.set(name, customSchema(definition));
      found.set(list, customListSchema(definition, name));
      pending.push(`${META}ObjectMeta`, `${META}ListMeta`);
    } else {
      pending.push(name);
      if (!definition.review) pending.push(list);
    }
    const { scale, binding, eviction } = definition.subresources;
    if (scale) pending.push(SHARED_SCHEMAS.scale);
    if (binding) pending.push(SHARED_SCHEMAS.binding);
    if (eviction) pending.push(SHARED_SCHEMAS.eviction);
  }
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    if (found.has(name)) continue;
    const schema = publishedSchemas().get(name);
    if (!schema) throw new Error(`There is no schema ${name}`);
    found.set(name, schema);
    for (const reference of referencesOf(schema)) pending.push(reference);
  }
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The names that a schema refers to, at any depth. */
function referencesOf(schema: JsonSchema): string[] {
  const references: string[] = [];
  const pending: unknown[] = [schema];
  while (pending.length > 0) {
    const value = pending.pop();
    if (typeof value !== 'object' || value === null) continue;
    for (const [key, member] of Object.entries(value)) {
      if (key === '$ref' && typeof member === 'string') {
        references.push(member.slice(REF_PREFIX.length));
      } else pending.push(member);
    }
  }
  return references;
}

/** A schema as it is published: with references, and with the kind that it describes. */
interface PublishedSchema extends JsonSchema {
  readonly 'x-kubernetes-group-version-kind'?: readonly GroupVersionKind[];
}

export interface GroupVersionKind {
  readonly group: string;
  readonly kind: string;
  readonly version: string;
}

const TYPE_META: Readonly<Record<string, JsonSchema>> = {
  apiVersion: { type: 'string', description: 'Group and version of the kind.' },
  kind: { type: 'string', description: 'What kind of object this is.' },
};

const OBJECT_META: JsonSchema = {
  allOf: [refTo(`${META}ObjectMeta`)],
  default: {},
  description: 'Name, labels and whatever else every object has.',
};

const LIST_META: JsonSchema = {
  allOf: [refTo(`${META}ListMeta`)],
  default: {},
  description: 'Version of the list, and where its next page begins.',
};

/** The schema of a custom kind: what its CRD says, and what every object has. */
function customSchema(definition: ResourceDefinition): PublishedSchema {
  const { group, version, kind, schema } = definition;
  const own: JsonSchema = schema ? withEmbedded(schema) : {};
  return {
    ...own,
    type: 'object',
    // Without a schema nothing is declared: with fields, clients would take others for wrong.
    ...(schema && {
      properties: { ...own.properties, ...TYPE_META, metadata: OBJECT_META },
    }),
    'x-kubernetes-group-version-kind': [{ group, kind, version }],
  };
}

/** The schema of a list of a custom kind, whose items have the schema of that name. */
function customListSchema(
  { group, version, kind, listKind }: ResourceDefinition,
  itemSchema: string,
): PublishedSchema {
  return {
    type: 'object',
    description: `A list of ${kind} objects.`,
    required: ['items'],
    properties: {
      ...TYPE_META,
      items: {
        type: 'array',
        description: 'The objects.',
        items: refTo(itemSchema),
      },
      metadata: LIST_META,
    },
    'x-kubernetes-group-version-kind': [{ group, kind: listKind, version }],
  };
}

/** The schema, in which objects of other kinds have the fields that every object has. */
function withEmbedded(schema: JsonSchema): JsonSchema {
  const { properties, items, additionalProperties } = schema;
  const isEmbedded = schema['x-kubernetes-embedded-resource'] === true;
  const fields =
    properties &&
    Object.fromEntries(
      Object.entries(properties).map(([name, field]) => [name, withEmbedded(field)]),
    );
  return {
    ...schema,
    ...(items && { items: withEmbedded(items) }),
    ...(typeof additionalProperties === 'object' && {
      additionalProperties: withEmbedded(additionalProperties),
    }),
    ...(fields && { properties: fields }),
    ...(isEmbedded && {
      properties: { ...fields, ...TYPE_META, metadata: OBJECT_META },
      required: [...new Set([...(schema.required ?? []), 'kind', 'apiVersion'])],
    }),
  };
}
