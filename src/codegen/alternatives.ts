import type { CrdSchema } from './schema.ts';

/** The effect of one branch of a `oneOf` or `anyOf` on the properties of an object. */
export interface Alternative {
  /** Optional properties that are required in this branch. */
  readonly required: ReadonlySet<string>;
  /** Properties that are absent in this branch. */
  readonly absent: ReadonlySet<string>;
  /** Properties that have only these values in this branch. */
  readonly narrowed: ReadonlyMap<string, readonly unknown[]>;
}

/** Maximum number of branches. A larger union type is not readable. */
const MOST_BRANCHES = 16;

/**
 * Returns the alternative forms of an object, or undefined if its schema has none that types can
 * distinguish. Example: `oneOf: [{ required: [git] }, { required: [image] }]`. Ignores constraints that
 * types cannot express, such as patterns and bounds, so that the types accept every valid object.
 */
export function alternativesOf(schema: CrdSchema): readonly Alternative[] | undefined {
  return alternativesAmong(schema, schema.oneOf, true) ?? alternativesAmong(schema, schema.anyOf);
}

function alternativesAmong(
  schema: CrdSchema,
  branches: readonly CrdSchema[] = [],
  isExclusive: boolean = false,
): readonly Alternative[] | undefined {
  if (branches.length < 2 || branches.length > MOST_BRANCHES) return undefined;
  const soleProperties = isExclusive ? branches.map(soleRequired) : [];
  const alternatives = branches.map((branch, at): Alternative => {
    const required = new Set(branch.required?.filter((name) => isOptional(schema, name)));
    const excluded = soleProperties.filter((name, other) => name !== undefined && other !== at);
    const absent = [...excluded, ...absentIn(branch)].filter((name) => name !== undefined);
    return {
      required,
      absent: new Set(absent.filter((name) => isOptional(schema, name) && !required.has(name))),
      narrowed: narrowedIn(branch, schema),
    };
  });
  const isEmpty = ({ required, absent, narrowed }: Alternative) =>
    required.size + absent.size + narrowed.size === 0;
  return alternatives.some(isEmpty) ? undefined : alternatives;
}

function isOptional(schema: CrdSchema, name: string): boolean {
  return Object.hasOwn(schema.properties ?? {}, name) && !schema.required?.includes(name);
}

/**
 * Returns the property of a branch that requires only this property. Other branches of a `oneOf` cannot have
 * it, because both branches would apply.
 */
function soleRequired(branch: CrdSchema): string | undefined {
  const [name, ...more] = branch.required ?? [];
  return Object.keys(branch).length === 1 && more.length === 0 ? name : undefined;
}

/** Returns `a` for `not: { required: [a] }` and for this schema in a `not: { anyOf: […] }`. */
function absentIn({ not }: CrdSchema): string[] {
  if (!not) return [];
  const excluded = Object.keys(not).length === 1 && not.anyOf ? not.anyOf : [not];
  return excluded.map(soleRequired).filter((name) => name !== undefined);
}

/** Returns the enumerations of string properties, which distinguish branches. */
function narrowedIn(branch: CrdSchema, schema: CrdSchema): Map<string, readonly unknown[]> {
  const narrowed = new Map<string, readonly unknown[]>();
  for (const [name, property] of Object.entries(branch.properties ?? {})) {
    const values = property.enum;
    if (!values || values.length === 0 || values.some((value) => typeof value !== 'string'))
      continue;
    if (!Object.hasOwn(schema.properties ?? {}, name)) continue;
    const whole = schema.properties?.[name];
    if (whole?.type === 'string' && !whole.nullable) narrowed.set(name, values);
  }
  return narrowed;
}
