import { SCHEMAS } from '../generated/schemas.ts';
import type { JsonSchema } from '../../api/json-schema.ts';
import { SchemaLibrary } from './schema-library.ts';

const packages = new Map<string, Readonly<Record<string, JsonSchema>>>();
const library = new SchemaLibrary(publishedSchema);

/**
 * Returns the schema of that name as OpenAPI publishes it, or undefined. The schemas of a Go package are parsed
 * when the first of them is used.
 */
export function publishedSchema(name: string): JsonSchema | undefined {
  const end = name.lastIndexOf('.') + 1;
  const prefix = name.slice(0, end);
  let schemas = packages.get(prefix);
  if (!schemas) {
    const json = SCHEMAS[prefix];
    if (json === undefined) return undefined;
    const complete = json.replaceAll('"$ref":"#', '"$ref":"#/components/schemas/');
    schemas = JSON.parse(complete) as Readonly<Record<string, JsonSchema>>;
    packages.set(prefix, schemas);
  }
  return Object.hasOwn(schemas, name.slice(end)) ? schemas[name.slice(end)] : undefined;
}

/** Returns the schema of that name with resolved references, for validation and pruning. */
export function linkedSchema(name: string): JsonSchema {
  return library.get(name);
}

/** Returns the schema of metadata, which custom resources do not declare. */
export function objectMetaSchema(): JsonSchema {
  return linkedSchema('io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta');
}

/** Returns the name in OpenAPI documents of a type of a built-in group version. */
export function schemaName(
  { group, version }: { readonly group: string; readonly version: string },
  type: string,
): string {
  const [name = ''] = (group || 'core').split('.');
  const place = SERVERS.get(name) ?? 'io.k8s.api.';
  return `${place}${name}.${version}.${type}`;
}

/** Packages of the groups that are not in `k8s.io/api`. */
const SERVERS: ReadonlyMap<string, string> = new Map([
  ['apiextensions', 'io.k8s.apiextensions-apiserver.pkg.apis.'],
  ['apiregistration', 'io.k8s.kube-aggregator.pkg.apis.'],
]);
