import { schemaName } from '../builtin/definition.ts';
import { publishedSchemas } from '../builtin/schemas.ts';
import type { ResourceDefinition } from '../resource-definition.ts';
import type { JsonSchema } from '../schema/json-schema.ts';
import { customListSchema, customSchema } from './custom-schema.ts';
import type { PublishedSchema } from './published-schema.ts';

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
