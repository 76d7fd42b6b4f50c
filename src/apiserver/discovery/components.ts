import { publishedSchema, schemaName } from '../schema/builtin-schemas.ts';
import type { ResourceDefinition } from '../objects/resource-definition.ts';
import { subresourcesOf } from '../objects/subresources.ts';
import { describeSchema } from './descriptions.ts';
import type { Descriptions } from './descriptions.ts';
import type { JsonSchema } from '../../api/json-schema.ts';

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1.';
const REF_PREFIX = '#/components/schemas/';

/** Names of the schemas that the operations of all kinds refer to. */
export const SHARED_SCHEMAS = {
  deleteOptions: `${META}DeleteOptions`,
  patch: `${META}Patch`,
  status: `${META}Status`,
} as const;

/** Returns a reference to the schema `name`. */
export function refTo(name: string): { readonly $ref: string } {
  return { $ref: `${REF_PREFIX}${name}` };
}

/**
 * Returns the name of a kind's schema: the package of its Go type for a built-in kind, the reversed
 * group for a custom kind (`io.mark8s.demo.v1.Count`).
 */
export function componentName(
  { group, version, custom }: Pick<ResourceDefinition, 'group' | 'version' | 'custom'>,
  kind: string,
): string {
  if (!custom) return schemaName({ group, version }, kind);
  return [...group.split('.').reverse(), version, kind].join('.');
}

/**
 * Returns the schemas of kinds and of their lists, with all schemas that these and operations refer to.
 *
 * @param descriptions those of the built-in types
 */
export function componentsOf(
  definitions: readonly ResourceDefinition[],
  descriptions: Descriptions,
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
      if (definition.verbs?.includes('list') !== false) pending.push(list);
    }
    for (const { kind, isOwnKind, isLongRunning } of subresourcesOf(definition)) {
      if (!isOwnKind && !isLongRunning) pending.push(schemaName(kind, kind.kind));
    }
  }
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    if (found.has(name)) continue;
    const schema = publishedSchema(name);
    if (!schema) throw new Error(`no schema named ${name}`);
    found.set(name, describeSchema(schema, descriptions[name] ?? {}));
    for (const reference of referencesOf(schema)) pending.push(reference);
  }
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The names of all schemas that a schema refers to, at any depth. */
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

/** A published schema. It has references, and may name the kind that it describes. */
interface PublishedSchema extends JsonSchema {
  readonly 'x-kubernetes-group-version-kind'?: readonly GroupVersionKind[];
}

export interface GroupVersionKind {
  readonly group: string;
  readonly kind: string;
  readonly version: string;
}

const CONVENTIONS =
  'More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md';

// Upstream's descriptions, which clients of `kubectl explain` look for.
const TYPE_META: Readonly<Record<string, JsonSchema>> = {
  apiVersion: {
    type: 'string',
    description: `APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. ${CONVENTIONS}#resources`,
  },
  kind: {
    type: 'string',
    description: `Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. ${CONVENTIONS}#types-kinds`,
  },
};

const OBJECT_META: JsonSchema = {
  allOf: [refTo(`${META}ObjectMeta`)],
  default: {},
  description: `Standard object's metadata. ${CONVENTIONS}#metadata`,
};

const LIST_META: JsonSchema = {
  allOf: [refTo(`${META}ListMeta`)],
  default: {},
  description: `Standard list metadata. ${CONVENTIONS}#types-kinds`,
};

/** The schema of a custom kind: the schema of its CRD with the fields of every object. */
function customSchema(definition: ResourceDefinition): PublishedSchema {
  const { group, version, kind, schema, selectableFields = {} } = definition;
  const selectable = Object.keys(selectableFields);
  const own: JsonSchema = schema ? withEmbedded(schema) : {};
  return {
    ...own,
    type: 'object',
    // Without a schema no field is declared; with declared fields, clients would reject all others.
    ...(schema && {
      properties: { ...own.properties, ...TYPE_META, metadata: OBJECT_META },
    }),
    'x-kubernetes-group-version-kind': [{ group, kind, version }],
    ...(selectable.length > 0 && {
      'x-kubernetes-selectable-fields': selectable.map((fieldPath) => ({ fieldPath })),
    }),
  };
}

/** The schema of a list of a custom kind, whose items have the schema `itemSchema`. */
function customListSchema(
  { group, version, plural, kind, listKind }: ResourceDefinition,
  itemSchema: string,
): PublishedSchema {
  return {
    type: 'object',
    description: `${listKind} is a list of ${kind}`,
    required: ['items'],
    properties: {
      ...TYPE_META,
      items: {
        type: 'array',
        description: `List of ${plural}. ${CONVENTIONS}`,
        items: refTo(itemSchema),
      },
      metadata: LIST_META,
    },
    'x-kubernetes-group-version-kind': [{ group, kind: listKind, version }],
  };
}

/** Adds the fields of every object to the embedded resources of a schema. */
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
