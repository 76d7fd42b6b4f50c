import { Document, parseAllDocuments, Scalar, stringify, visit } from 'yaml';
import type { Resource } from '../api/resource.ts';
import { asRecord, asSchema } from './schema.ts';
import type { CrdSchema } from './schema.ts';

/** One version of a kind that a CustomResourceDefinition defines. */
export interface ParsedResource extends Omit<Resource, 'objectType'> {
  readonly schema: CrdSchema;
  /** Whether it is the main version: the storage version, or the first served version. */
  readonly isMain: boolean;
}

/** Maximum depth of nested lists. A list that kubectl prints has one level. */
const DEEPEST_LIST = 4;

/**
 * Parses the CustomResourceDefinitions in a YAML text. Returns each served version, the main version first.
 * Skips documents of other kinds.
 *
 * @throws {SyntaxError} if the text is not YAML
 * @throws {TypeError} if a definition is not of `apiextensions.k8s.io/v1`, or is invalid
 */
export function parseCustomResources(text: string): ParsedResource[] {
  return parseAllDocuments(text).flatMap((document) => {
    const [error] = document.errors;
    if (error) throw new SyntaxError(error.message, { cause: error });
    return definitionsIn(document.toJS()).flatMap(customResourcesOf);
  });
}

function definitionsIn(object: unknown, depth: number = 0): Record<string, unknown>[] {
  if (typeof object !== 'object' || object === null || !('kind' in object)) return [];
  if (object.kind === 'CustomResourceDefinition') return [{ ...object }];
  if (object.kind !== 'List' && object.kind !== 'CustomResourceDefinitionList') return [];
  const items: unknown = 'items' in object ? object.items : undefined;
  if (!Array.isArray(items) || depth >= DEEPEST_LIST) return [];
  return items.flatMap((item) => definitionsIn(item, depth + 1));
}

function customResourcesOf(definition: Record<string, unknown>): ParsedResource[] {
  if (definition['apiVersion'] !== 'apiextensions.k8s.io/v1') {
    throw new TypeError(
      `apiVersion must be apiextensions.k8s.io/v1, found ${JSON.stringify(definition['apiVersion'])}`,
    );
  }
  const spec = asRecord(definition['spec'], 'spec');
  const names = asRecord(spec['names'], 'spec.names');
  const group = asString(spec['group'], 'spec.group', /^[a-z0-9.-]+$/);
  const kind = asString(names['kind'], 'spec.names.kind', /^[A-Za-z][A-Za-z0-9]*$/);
  const plural = asString(names['plural'], 'spec.names.plural', /^[a-z0-9-]+$/);
  return servedVersions(spec['versions']).map((version, index) => ({
    group,
    version: asString(version['name'], 'spec.versions[].name', /^[a-z]([-a-z0-9]*[a-z0-9])?$/),
    plural,
    kind,
    namespaced: spec['scope'] === 'Namespaced',
    schema: asSchema(asRecord(version['schema'], `${kind}: schema`)['openAPIV3Schema'], kind),
    isMain: index === 0,
  }));
}

/** Returns the served versions, the storage version first. */
function servedVersions(versions: unknown): Record<string, unknown>[] {
  const served = (Array.isArray(versions) ? versions : [])
    .map((version, index) => asRecord(version, `spec.versions[${index}]`))
    .filter((version) => version['served'] === true);
  if (served.length === 0) throw new TypeError('spec.versions: no version has served: true');
  const isStored = (version: Record<string, unknown>) => version['storage'] === true;
  return [...served.filter(isStored), ...served.filter((version) => !isStored(version))];
}

function asString(value: unknown, path: string, form: RegExp): string {
  if (typeof value === 'string' && form.test(value)) return value;
  throw new TypeError(`${path}: expected ${String(form)}, found ${JSON.stringify(value)}`);
}

/** Returns a CRD as YAML, with a comment that it was generated from the module `source`. */
export function definitionText(definition: object, source: string): string {
  const head = `# Generated from ${source} by \`crd-controller generate\`. Do not edit.\n`;
  const document = new Document(definition, { aliasDuplicateObjects: false });
  visit(document, {
    // In quotes it would be broken where prettier does not break it.
    Scalar: (_, node) => {
      if (typeof node.value === 'string' && node.value.length > 60 && isQuoted(node.value))
        node.type = Scalar.BLOCK_FOLDED;
    },
  });
  return head + document.toString({ lineWidth: 100, singleQuote: true });
}

function isQuoted(text: string): boolean {
  return /^['"]/.test(stringify(text, { lineWidth: 0 }));
}
