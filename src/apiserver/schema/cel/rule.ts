import type { JsonSchema, ValidationRule } from '../json-schema.ts';
import { check } from './check.ts';
import { MAX_COST, estimate } from './estimate.ts';
import type { Program } from './evaluate.ts';
import { compile } from './evaluate.ts';
import type { Expression } from './expression.ts';
import { SyntaxFault } from './expression.ts';
import { fieldPathOf } from './field-path.ts';
import { problemText } from './problem-text.ts';
import type { Declared } from './schema-type.ts';
import { MAX_REQUEST } from './schema-type.ts';
import { parse } from './syntax.ts';
import type { CelType } from './type.ts';
import { formatType, optionalOf } from './type.ts';

/** A rule that can be evaluated. */
export interface Rule {
  readonly source: ValidationRule;
  readonly program: Program;
  readonly usesOldSelf: boolean;
  /** What it can cost at most. */
  readonly maxCost: number;
  readonly message: CompiledMessage | undefined;
  /** Below the value that the rule is about, to be appended to its path; may be empty. */
  readonly fieldPath: string;
}

/** An expression for the message, or why it is none. */
export type CompiledMessage =
  { readonly program: Program; readonly maxCost: number } | { readonly fault: string };

/** Why a rule cannot be evaluated. */
export interface RuleFault {
  readonly fault: string;
}

/** The rules that stand at `schema` itself; undefined in place of one that is empty. */
export function compileRules(
  schema: JsonSchema,
  declared: Declared,
): readonly (Rule | RuleFault | undefined)[] {
  return (schema['x-kubernetes-validations'] ?? []).map((rule) =>
    rule.rule.trim() === '' ? undefined : compileRule(rule, schema, declared),
  );
}

function compileRule(
  source: ValidationRule,
  schema: JsonSchema,
  { type }: Declared,
): Rule | RuleFault {
  const oldSelf = source.optionalOldSelf === true ? optionalOf(type) : type;
  const variables = new Map([
    ['self', type],
    ['oldSelf', oldSelf],
  ]);
  const rule = compileExpression(source.rule, variables, 'bool');
  if ('fault' in rule) {
    const fault = rule.wrongType
      ? 'cel expression must evaluate to a bool'
      : `compilation failed: ${rule.fault}`;
    return { fault };
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
  if (!('fault' in message)) return message;
  const fault = message.wrongType
    ? 'messageExpression must evaluate to a string'
    : `messageExpression compilation failed: ${message.fault}`;
  return { fault };
}

interface Compiled {
  readonly program: Program;
  readonly maxCost: number;
  readonly usesOldSelf: boolean;
}

function compileExpression(
  source: string,
  variables: ReadonlyMap<string, CelType>,
  expected: 'bool' | 'string',
): Compiled | { readonly fault: string; readonly wrongType: boolean } {
  const parsed: Expression | SyntaxFault = parse(source);
  if (parsed instanceof SyntaxFault) {
    return { fault: problemText(source, [parsed]), wrongType: false };
  }
  const checked = check(parsed, variables);
  if (!('type' in checked)) return { fault: problemText(source, checked), wrongType: false };
  if (checked.type.kind !== expected) return { fault: formatType(checked.type), wrongType: true };
  return {
    program: compile(checked),
    maxCost: Math.min(MAX_COST, estimate(checked)),
    usesOldSelf: checked.variables.has('oldSelf'),
  };
}

/** How often such values can be in one object. */
export function maxCardinality({ minSize }: Declared): number {
  return Math.floor(MAX_REQUEST / (minSize + 1));
}
