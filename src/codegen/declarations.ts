import { alternativesOf } from './alternatives.ts';
import type { Alternative } from './alternatives.ts';
import type { ParsedResource } from './crd-parser.ts';
import type { CrdSchema } from './schema.ts';
import type { Declaration, TypeField, TypeNode } from './type-node.ts';
import { BOOLEAN, NEVER, NULL_TYPE, NUMBER, printType, STRING_TYPE, UNKNOWN } from './type-node.ts';

/** Types that generated modules import. Declarations cannot have these names. */
const LIBRARY_TYPES = ['Condition', 'KubernetesObject', 'Resource'] as const;
export type LibraryType = (typeof LIBRARY_TYPES)[number];

export interface Declarations {
  /** The interface of the kind first. Each declaration follows those that refer to it. */
  readonly all: readonly Declaration[];
  /** Name of the interface of the kind: the kind, unless this name has another meaning. */
  readonly root: string;
  /** Types of the library that the declarations use. */
  readonly imports: ReadonlySet<LibraryType>;
}

/** Fields of all objects, declared in `KubernetesObject`. */
const INHERITED: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata']);

/** Maximum length of an inline enumeration. A longer one gets a type alias. */
const LONGEST_INLINE = 72;

/** Returns the declarations of a custom resource and of the objects in it. */
export function declarationsOf(resource: ParsedResource): Declarations {
  const module = new Module();
  const root = module.declareRoot(resource);
  return { all: module.declarations, root, imports: module.imports };
}

/** Collects declarations with unique names. */
class Module {
  readonly declarations: Declaration[] = [];
  readonly imports = new Set<LibraryType>(['KubernetesObject', 'Resource']);
  readonly #names = new Set<string>([...LIBRARY_TYPES, 'Partial']);
  #map: 'map' | 'index' = 'map';

  /** `status` is always optional, because new objects have none. */
  declareRoot({ kind, schema }: ParsedResource): string {
    const properties = Object.fromEntries(
      Object.entries(schema.properties ?? {}).filter(([name]) => !INHERITED.has(name)),
    );
    const required = schema.required?.filter((name) => name !== 'status') ?? [];
    const name = kind.charAt(0).toUpperCase() + kind.slice(1);
    // The name of any other declaration is longer.
    if (name === 'Record') this.#map = 'index';
    return this.#declare({ ...schema, required, properties }, name, 'KubernetesObject');
  }

  #typeOf(schema: CrdSchema, name: string): TypeNode {
    const type = this.#presentTypeOf(schema, name);
    if (!schema.nullable || type === UNKNOWN) return type;
    return { kind: 'union', of: [...(type.kind === 'union' ? type.of : [type]), NULL_TYPE] };
  }

  #presentTypeOf(schema: CrdSchema, name: string): TypeNode {
    if (schema['x-kubernetes-int-or-string']) return { kind: 'union', of: [NUMBER, STRING_TYPE] };
    const values = schema.enum ?? valuesOfBranches(schema);
    if (values) return this.#enumeration(values, schema, name);
    switch (schema.type) {
      case 'string':
        return STRING_TYPE;
      case 'integer':
      case 'number':
        return NUMBER;
      case 'boolean':
        return BOOLEAN;
      case 'array':
        return { kind: 'list', of: this.#typeOf(schema.items ?? {}, singular(name)) };
      case 'object':
        return this.#objectType(schema, name);
      default:
        return UNKNOWN;
    }
  }

  #enumeration(values: readonly unknown[], schema: CrdSchema, name: string): TypeNode {
    const of = values.filter(isScalar).map((value): TypeNode => ({ kind: 'literal', value }));
    const [only] = of;
    if (!only || of.length < values.length) return UNKNOWN;
    const type: TypeNode = of.length === 1 ? only : { kind: 'union', of };
    if (printType(type).length <= LONGEST_INLINE) return type;
    const alias = this.#unusedName(name);
    this.declarations.push({ kind: 'alias', name: alias, doc: lines(schema.description), type });
    return { kind: 'named', name: alias };
  }

  #objectType(schema: CrdSchema, name: string): TypeNode {
    if (isCondition(schema)) return this.#library('Condition');
    const { properties, additionalProperties } = schema;
    if (properties && Object.keys(properties).length > 0) {
      const alternatives = alternativesOf(schema);
      const declared = alternatives
        ? this.#declareAlternatives(schema, name, alternatives)
        : this.#declare(schema, name);
      return { kind: 'named', name: declared };
    }
    if (schema['x-kubernetes-embedded-resource']) {
      return { kind: 'named', name: this.#declare(schema, name) };
    }
    if (typeof additionalProperties === 'object') {
      return { kind: this.#map, of: this.#typeOf(additionalProperties, singular(name)) };
    }
    const open = additionalProperties ?? schema['x-kubernetes-preserve-unknown-fields'];
    return { kind: this.#map, of: open ? UNKNOWN : NEVER };
  }

  #declare(schema: CrdSchema, preferred: string, base?: LibraryType): string {
    const name = this.#unusedName(preferred);
    const place = this.declarations.length;
    this.declarations.splice(place, 0, {
      kind: 'interface',
      name,
      doc: lines(schema.description),
      ...(base && { extends: base }),
      fields: this.#fields(schema, name),
      open: isOpen(schema),
    });
    return name;
  }

  /** Declares a union of interfaces, one for each alternative form of an object. */
  #declareAlternatives(
    schema: CrdSchema,
    preferred: string,
    alternatives: readonly Alternative[],
  ): string {
    const name = this.#unusedName(preferred);
    const place = this.declarations.length;
    const affected = new Set(
      alternatives.flatMap(({ required, absent, narrowed }) => [
        ...required,
        ...absent,
        ...narrowed.keys(),
      ]),
    );
    const fields = this.#fields(schema, name);
    const common = fields.filter((field) => !affected.has(field.name));
    const base = common.length > 0 || isOpen(schema) ? this.#unusedName(`${name}Base`) : undefined;
    const forms = alternatives.map((alternative): Declaration => ({
      kind: 'interface',
      name: this.#unusedName(name + formName(alternative)),
      doc: [],
      ...(base && { extends: base }),
      fields: fields
        .filter((field) => affected.has(field.name))
        .map((field) => fieldIn(field, alternative)),
      open: false,
    }));
    const of = forms.map((form): TypeNode => ({ kind: 'named', name: form.name }));
    this.declarations.splice(
      place,
      0,
      { kind: 'alias', name, doc: lines(schema.description), type: { kind: 'union', of } },
      ...(base
        ? [
            {
              kind: 'interface',
              name: base,
              doc: [],
              fields: common,
              open: isOpen(schema),
            } as const,
          ]
        : []),
      ...forms,
    );
    return name;
  }

  #fields(schema: CrdSchema, name: string): TypeField[] {
    const isEmbedded = schema['x-kubernetes-embedded-resource'];
    const properties = Object.entries(schema.properties ?? {}).filter(
      // The server keeps the metadata of an embedded resource, although the schema has no fields of it.
      ([property, of]) => !(isEmbedded && property === 'metadata' && !of.properties),
    );
    const declared = properties.map(([property, of]): TypeField => ({
      name: property,
      type: this.#typeOf(of, name + pascalCase(property)),
      // The server sets defaults, so the field is present in all its objects.
      optional: of.default === undefined && !schema.required?.includes(property),
      doc: [...lines(of.description), ...defaultTag(of.default)],
    }));
    return isEmbedded ? [...this.#embeddedFields(declared), ...declared] : declared;
  }

  #embeddedFields(declared: readonly TypeField[]): TypeField[] {
    const present = new Set(declared.map(({ name }) => name));
    return [
      { name: 'apiVersion', type: STRING_TYPE, optional: false, doc: [] },
      { name: 'kind', type: STRING_TYPE, optional: false, doc: [] },
      {
        name: 'metadata',
        type: { kind: 'named', name: "Partial<KubernetesObject['metadata']>" },
        optional: true,
        doc: [],
      } as const,
    ].filter(({ name }) => !present.has(name));
  }

  #library(name: LibraryType): TypeNode {
    this.imports.add(name);
    return { kind: 'named', name };
  }

  #unusedName(preferred: string): string {
    let name = preferred;
    for (let count = 2; this.#names.has(name); count++) name = `${preferred}${count}`;
    this.#names.add(name);
    return name;
  }
}

/** Reports whether the object may have undeclared fields. */
function isOpen(schema: CrdSchema): boolean {
  return schema['x-kubernetes-preserve-unknown-fields'] ?? false;
}

/** Returns `field` as it is in one alternative form of its object. */
function fieldIn(field: TypeField, { required, absent, narrowed }: Alternative): TypeField {
  if (absent.has(field.name)) return { ...field, type: NEVER, optional: true, doc: [] };
  const values = narrowed.get(field.name)?.filter(isScalar);
  const of = values?.map((value): TypeNode => ({ kind: 'literal', value }));
  const [only] = of ?? [];
  const type: TypeNode = of && only ? (of.length === 1 ? only : { kind: 'union', of }) : field.type;
  return { ...field, type, optional: field.optional && !required.has(field.name) };
}

/** Returns a suffix that names the distinction of a form: `WithGit`, `WithUserAndPassword`, `WithoutGit`. */
function formName({ required, absent, narrowed }: Alternative): string {
  const named = (names: Iterable<unknown>) =>
    Array.from(names, (name) => pascalCase(String(name)))
      .slice(0, 3)
      .join('And');
  if (required.size > 0) return `With${named(required)}`;
  const [values] = narrowed.values();
  return values ? `With${named(values)}` : `Without${named(absent)}`;
}

/** Joins the enumerations of branches: `anyOf: [{ enum: [a] }, { enum: [b] }]`. */
function valuesOfBranches({ oneOf, anyOf }: CrdSchema): readonly unknown[] | undefined {
  const branches = oneOf ?? anyOf ?? [];
  const isEnum = (branch: CrdSchema) =>
    branch.enum !== undefined && Object.keys(branch).length === 1;
  if (branches.length === 0 || !branches.every(isEnum)) return undefined;
  return [...new Set(branches.flatMap((branch) => branch.enum ?? []))];
}

/** Recognises a `meta/v1` Condition by its properties, since schemas do not name their type. */
function isCondition({ properties = {}, required = [] }: CrdSchema): boolean {
  const mandatory = ['type', 'status', 'lastTransitionTime', 'reason', 'message'];
  return (
    mandatory.every((name) => Object.hasOwn(properties, name) && required.includes(name)) &&
    Object.keys(properties).every(
      (name) => name === 'observedGeneration' || mandatory.includes(name),
    ) &&
    properties['status']?.enum?.toSorted().join() === 'False,True,Unknown'
  );
}

function isScalar(value: unknown): value is string | number | boolean | null {
  return value === null || ['string', 'number', 'boolean'].includes(typeof value);
}

/** Converts `max-surge` and `max_surge` to `MaxSurge`. Drops characters that names cannot contain. */
function pascalCase(text: string): string {
  return text
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
}

/** Returns the singular of a name by the common rules of English. */
function singular(name: string): string {
  if (/[^aeiou]ies$/i.test(name)) return `${name.slice(0, -3)}y`;
  if (/(?:ss|x|ch|sh)es$/i.test(name)) return name.slice(0, -2);
  return /[^su]s$/i.test(name) ? name.slice(0, -1) : `${name}Item`;
}

function lines(description: string | undefined): string[] {
  const text = description?.trim();
  return text ? text.split('\n') : [];
}

function defaultTag(value: unknown): string[] {
  return value === undefined ? [] : [`@default ${JSON.stringify(value)}`];
}
