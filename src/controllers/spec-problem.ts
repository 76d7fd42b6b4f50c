/** The API server accepts names of objects up to this length. */
export const MAX_NAME_LENGTH = 253;

/** The type of a field of a spec. */
export type FieldRule =
  | { readonly type: 'string'; readonly optional?: boolean }
  | { readonly type: 'image'; readonly optional?: boolean }
  | {
      readonly type: 'integer';
      readonly minimum: number;
      readonly maximum: number;
      readonly optional?: boolean;
    };

/** A rule for each field: the compiler reports a missing one. */
export type SpecRules<S extends object> = { readonly [K in keyof S]-?: FieldRule };

/** Characters of a value that a message shows. */
const MAX_SHOWN = 80;

/**
 * Returns why a spec is invalid, or undefined. The API server rejects such specs because of the schema
 * of our CustomResourceDefinitions; objects that were stored under another schema are checked here.
 */
export function specProblem<S extends object>(
  spec: unknown,
  rules: SpecRules<S>,
): string | undefined {
  if (typeof spec !== 'object' || spec === null) return 'spec is missing: set it';
  for (const field in rules) {
    const rule: FieldRule = rules[field];
    const value = Object.hasOwn(spec, field) ? (spec as Record<string, unknown>)[field] : undefined;
    const problem = value === undefined && rule.optional ? undefined : fieldProblem(value, rule);
    if (problem !== undefined) return `spec.${field} ${problem}`;
  }
  return undefined;
}

/** Returns why the API server rejects a name, or undefined. */
export function longNameProblem(what: string, name: string, fix: string): string | undefined {
  if (name.length <= MAX_NAME_LENGTH) return undefined;
  return `${what} ${name.slice(0, 40)}... would have ${name.length} characters, ${MAX_NAME_LENGTH} are allowed; ${fix}`;
}

function fieldProblem(value: unknown, rule: FieldRule): string | undefined {
  if (value === undefined || value === null) return 'is missing: set it';
  switch (rule.type) {
    case 'string':
      if (typeof value !== 'string') return `is ${shown(value)}, expected a string`;
      return value === '' ? 'is empty: set it' : undefined;
    case 'image':
      if (typeof value === 'string' && /^[!-~]+$/.test(value)) return undefined;
      return `is ${shown(value)}, expected printable ASCII characters without white space`;
    case 'integer': {
      const { minimum, maximum } = rule;
      const fits = Number.isSafeInteger(value) && Number(value) >= minimum;
      if (fits && Number(value) <= maximum) return undefined;
      return `is ${shown(value)}, expected an integer from ${minimum} to ${maximum}`;
    }
  }
}

/** Formats a value for a message, and shortens a long one. */
export function shown(value: unknown): string {
  if (typeof value === 'object') return Array.isArray(value) ? 'a list' : 'an object';
  const isLong = typeof value === 'string' && value.length > MAX_SHOWN;
  return JSON.stringify(isLong ? `${value.slice(0, MAX_SHOWN)}...` : value);
}
