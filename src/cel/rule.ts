import { oncePerObject } from '../util/memo.ts';
import type { JsonSchema, SchemaRule } from '../api/json-schema.ts';
import { checkTypes } from './check.ts';
import { MAX_COST, estimate } from './estimate.ts';
import type { CompiledProgram } from './evaluate.ts';
import { compile } from './evaluate.ts';
import { CelSyntaxError } from './expression.ts';
import { problemText } from './literal-problems.ts';
import type { Declared } from './schema-type.ts';
import { declare, escapeName, isEmbedded, MAX_REQUEST } from './schema-type.ts';
import { parse } from './syntax.ts';
import type { CelType } from './values/type.ts';
import { formatType, optionalOf } from './values/type.ts';
import { EvaluationError } from './values/value.ts';
import { declaredField } from '../api/json-schema.ts';

export interface Rule {
  readonly source: SchemaRule;
  readonly program: CompiledProgram;
  readonly usesOldSelf: boolean;
  /** Estimated maximum cost. */
  readonly maxCost: number;
  readonly message: CompiledMessage | undefined;
  /** Path relative to the validated value; may be empty. */
  readonly fieldPath: string;
}

/** A compiled message expression, or the reason why it is invalid. */
type CompiledMessage =
  { readonly program: CompiledProgram; readonly maxCost: number } | { readonly error: string };

/** The reason why a rule does not compile. */
export interface RuleError {
  readonly error: string;
}

/** Compiles the rules of `schema` itself, each when it is read. Yields undefined for an empty rule. */
export function* compileRules(
  schema: JsonSchema,
  declared: Declared,
): Generator<Rule | RuleError | undefined> {
  for (const rule of schema['x-kubernetes-validations'] ?? []) {
    yield rule.rule.trim() === '' ? undefined : compileRule(rule, schema, declared);
  }
}

function compileRule(source: SchemaRule, schema: JsonSchema, { type }: Declared): Rule | RuleError {
  const oldSelf = source.optionalOldSelf === true ? optionalOf(type) : type;
  const variables = new Map([
    ['self', type],
    ['oldSelf', oldSelf],
  ]);
  const rule = compileExpression(source.rule, variables, 'bool');
  if ('error' in rule) {
    const { failed, error } = rule;
    return {
      error:
        failed === 'type' ? 'cel expression must evaluate to a bool' : `${failed} failed: ${error}`,
    };
  }
  return {
    source,
    program: rule.program,
    usesOldSelf: rule.usesOldSelf,
    maxCost: rule.maxCost,
    message: source.messageExpression
      ? compileMessage(source.messageExpression, variables)
      : undefined,
    fieldPath: source.fieldPath ? (fieldPathOf(source.fieldPath, schema) ?? '') : '',
  };
}

function compileMessage(source: string, variables: ReadonlyMap<string, CelType>): CompiledMessage {
  const message = compileExpression(source, variables, 'string');
  if (!('error' in message)) return message;
  const { failed, error } = message;
  if (failed === 'type') return { error: 'messageExpression must evaluate to a string' };
  return { error: `messageExpression ${failed.replace('program ', '')} failed: ${error}` };
}

export interface Compiled {
  readonly program: CompiledProgram;
  readonly type: CelType;
  readonly maxCost: number;
  readonly usesOldSelf: boolean;
}

/** Why an expression does not compile. */
export interface CompilationFailure {
  /** What failed. `type`: the result has another type than expected. */
  readonly failed: 'compilation' | 'program instantiation' | 'type';
  /** The errors; the actual type if that is wrong. */
  readonly error: string;
}

export type ResultType = 'any' | 'bool' | 'string' | 'Object' | 'list(JSONPatch)';

/** The results of expressions that may construct objects and patches. */
const PATCHES: ReadonlySet<ResultType> = new Set(['Object', 'list(JSONPatch)']);

/**
 * Compiles an expression with declared variables.
 *
 * @param expected the type of its result
 */
export function compileExpression(
  source: string,
  variables: ReadonlyMap<string, CelType>,
  expected: ResultType,
): Compiled | CompilationFailure {
  const parsed = parse(source);
  if (parsed instanceof CelSyntaxError) {
    return { failed: 'compilation', error: problemText(source, [parsed]) };
  }
  const { expression, placeOf } = parsed;
  const checked = checkTypes(expression, variables, PATCHES.has(expected));
  if (!('type' in checked)) {
    const problems = checked.map(({ at, message }) => ({ at: placeOf(at), message }));
    return { failed: 'compilation', error: problemText(source, problems) };
  }
  const type = formatType(checked.type);
  if (expected !== 'any' && type !== expected) return { failed: 'type', error: type };
  const program = compile(checked);
  if (program instanceof EvaluationError) {
    return { failed: 'program instantiation', error: program.message };
  }
  return {
    program,
    type: checked.type,
    maxCost: Math.min(MAX_COST, estimate(checked, variables.get('self'))),
    usesOldSelf: checked.variables.has('oldSelf'),
  };
}

/** Maximum number of such values in one object. */
export function maxCardinality({ minSize }: Declared): number {
  return Math.floor(MAX_REQUEST / (minSize + 1));
}

/** A schema with rules, itself or below it. */
export interface RuleNode {
  readonly schema: JsonSchema;
  readonly rules: readonly (Rule | RuleError | undefined)[];
  readonly isResource: boolean;
  readonly fields: ReadonlyMap<string, RuleNode>;
  /** Node of the items of a list or of the values of a map. */
  readonly item: RuleNode | undefined;
}

/**
 * Returns the rules of a custom resource, or undefined if it has none. They are compiled when the first object is
 * validated.
 */
export const ruleTree: (schema: JsonSchema) => RuleNode | undefined = oncePerObject((schema) =>
  hasRules(schema) ? nodeOf(schema, declare(schema, true), true) : undefined,
);

/** Returns the rules of a value that is no custom resource, or undefined if it has none. */
export function ruleTreeOfValue(schema: JsonSchema): RuleNode | undefined {
  const isResource = isEmbedded(schema);
  return nodeOf(schema, declare(schema, isResource), isResource);
}

function nodeOf(
  schema: JsonSchema,
  declared: Declared | undefined,
  isResource: boolean,
): RuleNode | undefined {
  if (!hasRules(schema) || !declared) return undefined;
  const fields = new Map<string, RuleNode>();
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    const embedded = isEmbedded(field);
    // A field whose name cannot be escaped may have rules.
    const its =
      escapeName(name) === undefined ? declare(field, embedded) : declared.fields?.get(name);
    const node = nodeOf(field, its, embedded);
    if (node) fields.set(name, node);
  }
  const { items, additionalProperties: values } = schema;
  const inner = items ?? (typeof values === 'object' ? values : undefined);
  const item = inner && nodeOf(inner, declared.item, isEmbedded(inner));
  return { schema, rules: [...compileRules(schema, declared)], isResource, fields, item };
}

export function hasRules(schema: JsonSchema): boolean {
  const { items, additionalProperties: values, properties } = schema;
  return (
    (schema['x-kubernetes-validations']?.length ?? 0) > 0 ||
    (items !== undefined && hasRules(items)) ||
    (typeof values === 'object' && hasRules(values)) ||
    (properties !== undefined && Object.values(properties).some(hasRules))
  );
}

/**
 * Converts the `fieldPath` of a rule (`.spec.list`, `['a.b']`) to the path in errors. It may contain
 * fields and map keys.
 *
 * @returns undefined if the path is malformed or does not lead to a field of `schema`
 */
export function fieldPathOf(text: string, schema: JsonSchema): string | undefined {
  let path = '';
  let current: JsonSchema | undefined = schema;
  let rest = text;
  while (rest !== '') {
    const [step, name] = nextStep(rest) ?? [];
    if (step === undefined || name === undefined) return undefined;
    rest = rest.slice(step.length);
    const at: JsonSchema = current;
    const { properties, additionalProperties: values } = at;
    if (properties === undefined && typeof values !== 'object') return undefined;
    if (properties !== undefined) path += path === '' ? name : `.${name}`;
    else path += `[${name}]`;
    current = properties !== undefined ? declaredField(at, name) : (values as JsonSchema);
    if (!current) return undefined;
  }
  return path;
}

function nextStep(text: string): readonly [step: string, name: string] | undefined {
  const field = /^\.([^.[\]]+)/.exec(text);
  if (field) return [field[0], field[1] ?? ''];
  const quoted = /^\['((?:[^'\\]|\\[abfnrtv'\\])*)'\]/.exec(text);
  return quoted ? [quoted[0], unescape(quoted[1] ?? '')] : undefined;
}

const ESCAPES: Readonly<Record<string, string>> = {
  a: '\u0007',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};

function unescape(text: string): string {
  return text.replace(/\\(.)/g, (_, letter: string) => ESCAPES[letter] ?? letter);
}
