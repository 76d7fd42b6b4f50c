import { alternativesOf } from './alternatives.ts';
import type { Alternative } from './alternatives.ts';
import type { CustomResource } from './crd-parser.ts';
import type { Schema } from './schema.ts';
import type { Declaration, Field, TypeNode } from './type-node.ts';
import { BOOLEAN, NEVER, NULL, NUMBER, printType, STRING, UNKNOWN } from './type-node.ts';

/** What generated modules import. Nothing that is declared may have one of these names. */
export const LIBRARY_TYPES = ['Condition', 'KubernetesObject', 'ObjectMeta', 'Resource'] as const;
export type LibraryType = (typeof LIBRARY_TYPES)[number];

export interface Declarations {
  /** The kind's own interface first, then what it refers to, each after what refers to it. */
  readonly all: readonly Declaration[];
  /** What the kind's own interface is called: the kind, unless that name means something else. */
  readonly root: string;
  /** What of the library is referred to. */
  readonly imports: ReadonlySet<LibraryType>;
}

/** The fields of every object, which `KubernetesObject` declares. */
const INHERITED: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata']);

/** An enumeration longer than this gets a name of its own instead of standing inline. */
const LONGEST_INLINE = 72;

/** The interfaces of a custom resource and of every object inside it. */
export function declarationsOf(resource: CustomResource): Declarations {
  const module = new Module();
  const root = module.declareRoot(resource);
  return { all: module.declarations, root, imports: module.imports };
}

/** Collects declarations and keeps their names apart. */
class Module {
  readonly declarations: Declaration[] = [];
  readonly imports = new Set<LibraryType>(['KubernetesObject', 'Resource']);
  readonly #names = new Set<string>([...LIBRARY_TYPES, 'Array', 'Partial', 'Record']);

  /** `status` is optional whatever the schema says: nobody has written it in a new object. */
  declareRoot({ kind, schema }: CustomResource): string {
    const properties = Object.fromEntries(
      Object.entries(schema.properties ?? {}).filter(([name]) => !INHERITED.has(name)),
    );
    const required = schema.required?.filter((name) => name !== 'status') ?? [];
    const name = kind.charAt(0).toUpperCase() + kind.slice(1);
    return this.#declare({ ...schema, required, properties }, name, 'KubernetesObject');
  }

  #typeOf(schema: Schema, name: string): TypeNode {
    const type = this.#presentTypeOf(schema, name);
    if (!schema.nullable || type === UNKNOWN) return type;
    return { kind: 'union', of: [...(type.kind === 'union' ? type.of : [type]), NULL] };
  }

  #presentTypeOf(schema: Schema, name: string): TypeNode {
    if (schema['x-kubernetes-int-or-string']) return { kind: 'union', of: [NUMBER, STRING] };
    const values = schema.enum ?? valuesOfBranches(schema);
    if (values) return this.#enumeration(values, schema, name);
    switch (schema.type) {
      case 'string':
        return STRING;
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

  #enumeration(values: readonly unknown[], schema: Schema, name: string): TypeNode {
    const of = values.filter(isScalar).map((value): TypeNode => ({ kind: 'literal', value }));
    const [only] = of;
    if (!only || of.length < values.length) return UNKNOWN;
    const type: TypeNode = of.length === 1 ? only : { kind: 'union', of };
    if (printType(type).length <= LONGEST_INLINE) return type;
    const alias = this.#unusedName(name);
    this.declarations.push({ kind: 'alias', name: alias, doc: lines(schema.description), type });
    return { kind: 'named', name: alias };
  }

  #objectType(schema: Schema, name: string): TypeNode {
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
      return { kind: 'map', of: this.#typeOf(additionalProperties, singular(name)) };
    }
    const open = additionalProperties ?? schema['x-kubernetes-preserve-unknown-fields'];
    return { kind: 'map', of: open ? UNKNOWN : NEVER };
  }

  #declare(schema: Schema, wanted: string, base?: LibraryType): string {
    const name = this.#unusedName(wanted);
    const place = this.declarations.length;
    this.declarations.splice(place, 0, {
      kind: 'interface',
      name,
      doc: lines(schema.description),
      ...(base ? { extends: base } : {}),
      fields: this.#fields(schema, name),
      open: isOpen(schema),
    });
    return name;
  }

  /** A union of interfaces, one for each form that the object may have. */
  #declareAlternatives(
    schema: Schema,
    wanted: string,
    alternatives: readonly Alternative[],
  ): string {
    const name = this.#unusedName(wanted);
    const place = this.declarations.length;
    const touched = new Set(
      alternatives.flatMap(({ required, absent, narrowed }) => [
        ...required,
        ...absent,
        ...narrowed.keys(),
      ]),
    );
    const fields = this.#fields(schema, name);
    const common = fields.filter((field) => !touched.has(field.name));
    const base = common.length > 0 || isOpen(schema) ? this.#unusedName(`${name}Base`) : undefined;
    const forms = alternatives.map((alternative): Declaration => ({
      kind: 'interface',
      name: this.#unusedName(name + formName(alternative)),
      doc: [],
      ...(base ? { extends: base } : {}),
      fields: fields
        .filter((field) => touched.has(field.name))
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

  #fields(schema: Schema, name: string): Field[] {
    const declared = Object.entries(schema.properties ?? {}).map(([property, of]): Field => ({
      name: property,
      type: this.#typeOf(of, name + pascalCase(property)),
      // What has a default is there in every object that a server hands out.
      optional: of.default === undefined && !schema.required?.includes(property),
      doc: [...lines(of.description), ...defaultTag(of.default)],
    }));
    return schema['x-kubernetes-embedded-resource']
      ? [...this.#embeddedFields(declared), ...declared]
      : declared;
  }

  #embeddedFields(declared: readonly Field[]): Field[] {
    const present = new Set(declared.map(({ name }) => name));
    const partialMetadata = `Partial<${printType(this.#library('ObjectMeta'))}>`;
    return [
      { name: 'apiVersion', type: STRING, optional: false, doc: [] },
      { name: 'kind', type: STRING, optional: false, doc: [] },
      {
        name: 'metadata',
        type: { kind: 'named', name: partialMetadata },
        optional: true,
        doc: [],
      } as const,
    ].filter(({ name }) => !present.has(name));
  }

  #library(name: LibraryType): TypeNode {
    this.imports.add(name);
    return { kind: 'named', name };
  }

  #unusedName(wanted: string): string {
    let name = wanted;
    for (let count = 2; this.#names.has(name); count++) name = `${wanted}${count}`;
    this.#names.add(name);
    return name;
  }
}

/** The object may have fields that are not declared. */
function isOpen(schema: Schema): boolean {
  return schema['x-kubernetes-preserve-unknown-fields'] ?? false;
}

/** `field` as one of the forms of its object has it. */
function fieldIn(field: Field, { required, absent, narrowed }: Alternative): Field {
  if (absent.has(field.name)) return { ...field, type: NEVER, optional: true, doc: [] };
  const values = narrowed.get(field.name)?.filter(isScalar);
  const of = values?.map((value): TypeNode => ({ kind: 'literal', value }));
  const [only] = of ?? [];
  const type: TypeNode = of && only ? (of.length === 1 ? only : { kind: 'union', of }) : field.type;
  return { ...field, type, optional: field.optional && !required.has(field.name) };
}

/** `WithGit`, `WithUserAndPassword`, `WithoutGit`: by what sets a form apart. */
function formName({ required, absent, narrowed }: Alternative): string {
  const named = (names: Iterable<unknown>) =>
    Array.from(names, (name) => pascalCase(String(name)))
      .slice(0, 3)
      .join('And');
  if (required.size > 0) return `With${named(required)}`;
  const [values] = narrowed.values();
  return values ? `With${named(values)}` : `Without${named(absent)}`;
}

/** `anyOf: [{ enum: [a] }, { enum: [b] }]` is an enumeration in pieces. */
function valuesOfBranches({ oneOf, anyOf }: Schema): readonly unknown[] | undefined {
  const branches = oneOf ?? anyOf ?? [];
  const isPiece = (branch: Schema) => branch.enum !== undefined && Object.keys(branch).length === 1;
  if (branches.length === 0 || !branches.every(isPiece)) return undefined;
  return [...new Set(branches.flatMap((branch) => branch.enum ?? []))];
}

/** A `meta/v1` Condition by its looks: it has no other mark in a schema. */
function isCondition({ properties = {}, required = [] }: Schema): boolean {
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

/** `max-surge` and `max_surge` become `MaxSurge`; whatever no name can hold is left out. */
function pascalCase(text: string): string {
  return text
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
}

/** What one of many is called, by the commonest rules of English alone. */
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
