import type { Schema } from './schema.ts';

/** What one branch of a `oneOf` or `anyOf` says about the properties of an object. */
export interface Alternative {
  /** Properties that are there, besides those that always are. */
  readonly required: ReadonlySet<string>;
  /** Properties that are not there. */
  readonly absent: ReadonlySet<string>;
  /** Properties that have one of these values. */
  readonly narrowed: ReadonlyMap<string, readonly unknown[]>;
}

/** More branches than this are no choice that a reader of types would recognise. */
const MOST_BRANCHES = 16;

/**
 * The alternatives between the forms of an object, if its schema has some that a type can tell
 * apart: `oneOf: [{ required: [git] }, { required: [image] }]`. Undefined otherwise. What a type
 * cannot say (patterns, bounds) is left out, so that the alternatives never refuse what the schema
 * allows.
 */
export function alternativesOf(schema: Schema): readonly Alternative[] | undefined {
  return alternativesAmong(schema, schema.oneOf, true) ?? alternativesAmong(schema, schema.anyOf);
}

function alternativesAmong(
  schema: Schema,
  branches: readonly Schema[] = [],
  isExclusive: boolean = false,
): readonly Alternative[] | undefined {
  if (branches.length < 2 || branches.length > MOST_BRANCHES) return undefined;
  const marks = isExclusive ? branches.map(markOf) : [];
  const alternatives = branches.map((branch, at): Alternative => {
    const required = new Set(branch.required?.filter((name) => isOptional(schema, name)));
    const excluded = marks.filter((name, other) => name !== undefined && other !== at);
    const absent = [...excluded, ...absentIn(branch)].filter((name) => name !== undefined);
    return {
      required,
      absent: new Set(absent.filter((name) => isOptional(schema, name) && !required.has(name))),
      narrowed: narrowedIn(branch, schema),
    };
  });
  const saysNothing = ({ required, absent, narrowed }: Alternative) =>
    required.size + absent.size + narrowed.size === 0;
  return alternatives.some(saysNothing) ? undefined : alternatives;
}

function isOptional(schema: Schema, name: string): boolean {
  return Object.hasOwn(schema.properties ?? {}, name) && !schema.required?.includes(name);
}

/**
 * The property whose mere presence makes the branch apply: no other of a `oneOf` can have it. One
 * that asks for more can be left by the rest, with the property in place.
 */
function markOf(branch: Schema): string | undefined {
  const [name, ...more] = branch.required ?? [];
  return Object.keys(branch).length === 1 && more.length === 0 ? name : undefined;
}

/** `not: { required: [a] }`, or `not: { anyOf: [{ required: [a] }, { required: [b] }] }`. */
function absentIn({ not }: Schema): string[] {
  if (!not) return [];
  const refused = Object.keys(not).length === 1 && not.anyOf ? not.anyOf : [not];
  return refused.map(markOf).filter((name) => name !== undefined);
}

/** The branch's enumerations of properties that are text; only those tell branches apart. */
function narrowedIn(branch: Schema, schema: Schema): Map<string, readonly unknown[]> {
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
