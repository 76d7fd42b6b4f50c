import { parseAllDocuments } from 'yaml';
import type { Resource } from '../api/resource.ts';
import { asRecord, asSchema } from './schema.ts';
import type { Schema } from './schema.ts';

/** A kind that a CustomResourceDefinition defines, in one of its versions. */
export interface CustomResource extends Omit<Resource, 'objectType'> {
  readonly schema: Schema;
}

/**
 * The kinds that the CustomResourceDefinitions in a YAML text define, each in its storage version.
 * Documents of other kinds are passed over.
 *
 * @throws {SyntaxError} if the text is not YAML
 * @throws {TypeError} if a definition is not a `apiextensions.k8s.io/v1` one, or has no schema
 */
export function parseCustomResources(text: string): CustomResource[] {
  return parseAllDocuments(text).flatMap((document) => {
    const [error] = document.errors;
    if (error) throw new SyntaxError(error.message, { cause: error });
    const object: unknown = document.toJS();
    return isDefinition(object) ? [customResourceOf(object)] : [];
  });
}

function isDefinition(object: unknown): object is Record<string, unknown> {
  return (
    typeof object === 'object' &&
    object !== null &&
    'kind' in object &&
    object.kind === 'CustomResourceDefinition'
  );
}

function customResourceOf(definition: Record<string, unknown>): CustomResource {
  if (definition['apiVersion'] !== 'apiextensions.k8s.io/v1') {
    throw new TypeError(
      `apiVersion must be apiextensions.k8s.io/v1, found ${JSON.stringify(definition['apiVersion'])}`,
    );
  }
  const spec = asRecord(definition['spec'], 'spec');
  const names = asRecord(spec['names'], 'spec.names');
  const versions: unknown[] = Array.isArray(spec['versions']) ? spec['versions'] : [];
  const stored = versions
    .map((version, index) => asRecord(version, `spec.versions[${index}]`))
    .find((version) => version['storage'] === true);
  if (!stored) throw new TypeError('spec.versions: none of them has storage: true');
  const kind = asString(names['kind'], 'spec.names.kind', /^[A-Za-z][A-Za-z0-9]*$/);
  return {
    group: asString(spec['group'], 'spec.group', /^[a-z0-9.-]+$/),
    version: asString(stored['name'], 'spec.versions[].name', /^[a-z0-9]+$/),
    plural: asString(names['plural'], 'spec.names.plural', /^[a-z0-9-]+$/),
    kind,
    namespaced: spec['scope'] === 'Namespaced',
    schema: asSchema(asRecord(stored['schema'], `${kind}: schema`)['openAPIV3Schema'], kind),
  };
}

function asString(value: unknown, path: string, form: RegExp): string {
  if (typeof value === 'string' && form.test(value)) return value;
  throw new TypeError(`${path}: expected ${String(form)}, found ${JSON.stringify(value)}`);
}
