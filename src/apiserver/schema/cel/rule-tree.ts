import type { JsonSchema } from '../json-schema.ts';
import { escapeName } from './escape.ts';
import type { Rule, RuleFault } from './rule.ts';
import { compileRules } from './rule.ts';
import type { Declared } from './schema-type.ts';
import { declare, isEmbedded } from './schema-type.ts';

/** The part of a schema that has rules, in it or below it. */
export interface RuleNode {
  readonly schema: JsonSchema;
  readonly rules: readonly (Rule | RuleFault | undefined)[];
  readonly isResource: boolean;
  readonly fields: ReadonlyMap<string, RuleNode>;
  /** Of the items of a list, or of the values of a map. */
  readonly item: RuleNode | undefined;
}

/** Compiled when the first object is validated. Schemas do not change. */
const trees = new WeakMap<JsonSchema, RuleNode | 'no rules'>();

/** The rules of a custom resource; undefined if it has none. */
export function ruleTree(schema: JsonSchema): RuleNode | undefined {
  let tree = trees.get(schema);
  if (!tree) {
    tree = (hasRules(schema) && nodeOf(schema, declare(schema, true), true)) || 'no rules';
    trees.set(schema, tree);
  }
  return tree === 'no rules' ? undefined : tree;
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
    // What has no name that a rule could say may have rules of its own.
    const its =
      escapeName(name) === undefined ? declare(field, embedded) : declared.fields?.get(name);
    const node = nodeOf(field, its, embedded);
    if (node) fields.set(name, node);
  }
  const { items, additionalProperties: values } = schema;
  const inner = items ?? (typeof values === 'object' ? values : undefined);
  const item = inner && nodeOf(inner, declared.item, isEmbedded(inner));
  return { schema, rules: compileRules(schema, declared), isResource, fields, item };
}

function hasRules(schema: JsonSchema): boolean {
  const { items, additionalProperties: values, properties } = schema;
  return (
    (schema['x-kubernetes-validations']?.length ?? 0) > 0 ||
    (items !== undefined && hasRules(items)) ||
    (typeof values === 'object' && hasRules(values)) ||
    Object.values(properties ?? {}).some(hasRules)
  );
}
