import { Correlation, itemsByKey, listMapKey } from './correlation.ts';
import type { FieldError, FieldErrorReason } from '../api/field-error.ts';
import { OMITTED, fieldError } from '../api/field-error.ts';
import { goQuote } from '../util/go-quote.ts';
import type { JsonSchema, SchemaRule } from '../api/json-schema.ts';
import { own, requireDepth } from '../util/json-value.ts';
import { isRecord } from '../util/values.ts';
import { CostExceeded, CostMeter } from './values/overload.ts';
import type { Rule, RuleNode } from './rule.ts';
import { ruleTree, ruleTreeOfValue } from './rule.ts';
import { withTypeAndName } from './schema-type.ts';
import { toValue } from './schema-value.ts';
import type { Result, Value } from './values/value.ts';
import { EvaluationError, Optional } from './values/value.ts';

/** Maximum cost of one evaluation, and of all evaluations of one write. */
const RULE_LIMIT = 1_000_000;
const WRITE_LIMIT = 10_000_000;

/** Maximum length of a message from an expression. */
const MAX_MESSAGE = 5 * 1024;

/**
 * Validates an object by the rules of its custom resource (`x-kubernetes-validations`). Returns the
 * errors with upstream's texts; empty if it is valid.
 *
 * Transition rules (with `oldSelf`) apply only to values with an old value. Errors of other rules are
 * ignored for unchanged values (ratcheting), so that a new rule does not block updates of existing objects.
 *
 * @param previous the stored object, if this is an update
 * @param others other errors of the object; rules depend on types and limits
 */
export function validateRules(
  object: unknown,
  previous: unknown,
  schema: JsonSchema,
  others: readonly FieldError[],
): readonly FieldError[] {
  const tree = ruleTree(schema);
  if (!tree) return [];
  if (others.some(({ reason }) => BLOCKING.has(reason))) {
    const detail =
      'some validation rules were not checked because the object was invalid; correct the existing errors to complete validation';
    return [fieldError.invalid('', null, detail)];
  }
  const validation = new Validation();
  const current = previous === undefined ? undefined : new Correlation(object, previous, schema);
  const history = { current, parent: undefined };
  validation.visit(tree, { value: object, before: previous, path: '', history, depth: 0 });
  return validation.errors;
}

/** Validates a valid default by the rules of its schema, which has this path. */
export function validateDefault(
  value: unknown,
  schema: JsonSchema,
  path: string,
): readonly FieldError[] {
  const tree = ruleTreeOfValue(schema);
  if (!tree) return [];
  const validation = new Validation();
  const history = { current: undefined, parent: undefined };
  validation.visit(tree, { value, before: undefined, path, history, depth: 0 });
  return validation.errors;
}

const BLOCKING: ReadonlySet<FieldErrorReason> = new Set([
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
]);

/** The correlation of a value and of its parent with their old values. */
interface History {
  /** Undefined if the value cannot be correlated. */
  readonly current: Correlation | undefined;
  readonly parent: Correlation | undefined;
}

function isUnchanged({ current, parent }: History): boolean {
  return (current ?? parent)?.unchanged ?? false;
}

/** A value, and the value before the update, if it can be found. */
interface Place {
  readonly value: unknown;
  readonly before: unknown;
  readonly path: string;
  readonly history: History;
  readonly depth: number;
}

class Validation {
  readonly errors: FieldError[] = [];
  #left = WRITE_LIMIT;

  /** @returns false if no further rule may run */
  visit(node: RuleNode, place: Place): boolean {
    const { value, depth } = place;
    if (value === null || value === undefined) return true;
    requireDepth(depth);
    if (!this.#runRules(node, place)) return false;
    if (Array.isArray(value)) return this.#visitItems(node, value, place);
    return !isRecord(value) || this.#visitFields(node, value, place);
  }

  #visitItems(
    { item, schema }: RuleNode,
    items: readonly unknown[],
    { before, path, history, depth }: Place,
  ): boolean {
    if (!item) return true;
    const isMap = schema['x-kubernetes-list-type'] === 'map' && Array.isArray(before);
    const others = isMap ? itemsByKey(before, schema) : undefined;
    return items.every((value, index) =>
      this.visit(item, {
        value,
        before: others?.get(listMapKey(value, schema)),
        path: `${path}[${index}]`,
        history: history.current
          ? { current: history.current.item(index), parent: history.current }
          : history,
        depth: depth + 1,
      }),
    );
  }

  #visitFields(
    { fields, item }: RuleNode,
    object: Readonly<Record<string, unknown>>,
    { before, path, history, depth }: Place,
  ): boolean {
    return Object.entries(object).every(([name, value]) => {
      const node = fields.get(name) ?? item;
      if (!node) return true;
      return this.visit(node, {
        value,
        before: isRecord(before) ? own(before, name) : undefined,
        path: node === item ? `${path}[${name}]` : path === '' ? name : `${path}.${name}`,
        history: historyOf(name, history),
        depth: depth + 1,
      });
    });
  }

  #runRules({ rules, schema, isResource }: RuleNode, place: Place): boolean {
    if (rules.length === 0) return true;
    const { value, before, path } = place;
    const type = schema.type ?? '';
    if (this.#left <= 0) return this.#giveUp(path, type, OUT_OF_BUDGET);
    const visible = isResource ? withTypeAndName(schema) : schema;
    const self = toValue(value, visible);
    const oldSelf = (before ?? undefined) === undefined ? undefined : toValue(before, visible);
    for (const rule of rules) {
      if (rule === undefined) continue;
      if ('error' in rule) {
        this.#add(fieldError.invalid(path, type, `rule compile error: ${rule.error}`));
        continue;
      }
      const optional = rule.source.optionalOldSelf === true;
      if (rule.usesOldSelf && oldSelf === undefined && !optional) continue;
      const variables = variablesOf(self, oldSelf, optional);
      if (!this.#runRule(rule, variables, type, place)) return false;
    }
    return true;
  }

  #runRule(
    rule: Rule,
    variables: ReadonlyMap<string, Value> | EvaluationError,
    type: string,
    { value, path, history }: Place,
  ): boolean {
    const { source } = rule;
    const name = shortText(source);
    const outcome =
      variables instanceof EvaluationError ? variables : this.#evaluate(rule, variables);
    if (outcome instanceof CostExceeded) {
      const detail = `'${outcome.message}': no further validation rules will be run due to call cost exceeds limit for rule: ${name}`;
      return this.#giveUp(path, type, detail);
    }
    if (this.#left < 0) return this.#giveUp(path, type, OUT_OF_BUDGET);
    if (outcome instanceof EvaluationError) {
      const { message } = outcome;
      const detail = message.startsWith('no such overload')
        ? `'${message}': call arguments did not match a supported operator, function or macro signature for rule: ${name}`
        : `${message} evaluating rule: ${name}`;
      this.#add(fieldError.invalid(path, type, detail));
      return true;
    }
    if (outcome === true || variables instanceof EvaluationError) return true;
    const at = rule.fieldPath === '' ? path : join(path, rule.fieldPath);
    const tolerated = !rule.usesOldSelf && isUnchanged(history);
    const message = this.#message(rule, variables);
    if (typeof message === 'object') {
      if (!tolerated) this.#add(fieldError.invalid(at, type, message.fatal));
      return false;
    }
    if (tolerated) return true;
    const shown = type === 'object' || type === 'array' ? OMITTED : value;
    this.#add(ruleError(source.reason, at, shown, message));
    return true;
  }

  #evaluate(
    { program }: Pick<Rule, 'program'>,
    variables: ReadonlyMap<string, Value>,
  ): Result | CostExceeded {
    const meter = new CostMeter(RULE_LIMIT);
    try {
      return program(variables, meter);
    } catch (error) {
      if (error instanceof CostExceeded) return error;
      throw error;
    } finally {
      this.#left -= meter.spent;
    }
  }

  /** Returns the message of the message expression, if it has one and the result is valid. */
  #message(
    { source, message }: Rule,
    variables: ReadonlyMap<string, Value>,
  ): string | { readonly fatal: string } {
    const written = source.message?.trim() || `failed rule: ${shortText(source)}`;
    if (!message || 'error' in message) return written;
    const outcome = this.#evaluate(message, variables);
    if (outcome instanceof CostExceeded) {
      return {
        fatal: `no further validation rules will be run due to call cost exceeds limit for messageExpression: ${goQuote(source.messageExpression ?? '')}`,
      };
    }
    if (this.#left < 0) {
      return {
        fatal:
          'messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run',
      };
    }
    const text = typeof outcome === 'string' ? outcome.trim() : '';
    return text === '' || text.length > MAX_MESSAGE || text.includes('\n') ? written : text;
  }

  #giveUp(path: string, type: string, detail: string): false {
    this.#add(fieldError.invalid(path, type, detail));
    return false;
  }

  #add(error: FieldError): void {
    this.errors.push(error);
  }
}

const OUT_OF_BUDGET =
  'validation failed due to running out of cost budget, no further validation rules will be run';

/** Ignores changes of the type and version of a resource. */
function historyOf(name: string, { current, parent }: History): History {
  if (!current) return { current, parent };
  if (!parent && (name === 'apiVersion' || name === 'kind')) {
    return { current: undefined, parent: undefined };
  }
  return { current: current.field(name), parent: current };
}

function variablesOf(
  self: Result,
  oldSelf: Result | undefined,
  optional: boolean,
): ReadonlyMap<string, Value> | EvaluationError {
  if (self instanceof EvaluationError) return self;
  if (oldSelf instanceof EvaluationError) return oldSelf;
  const variables = new Map<string, Value>([['self', self]]);
  if (optional) {
    variables.set('oldSelf', oldSelf === undefined ? Optional.none : new Optional(oldSelf));
  } else if (oldSelf !== undefined) {
    variables.set('oldSelf', oldSelf);
  }
  return variables;
}

/** The name of a rule in messages. */
function shortText({ rule, message }: SchemaRule): string {
  return message?.trim() || rule.trim();
}

function join(path: string, field: string): string {
  return path === '' || field.startsWith('[') ? path + field : `${path}.${field}`;
}

function ruleError(
  reason: string | undefined,
  field: string,
  badValue: unknown,
  detail: string,
): FieldError {
  const known: FieldErrorReason | undefined = REASONS.find((each) => each === reason);
  switch (known) {
    case 'FieldValueForbidden':
      return fieldError.forbidden(field, detail);
    case 'FieldValueRequired':
      return fieldError.required(field, detail);
    case 'FieldValueDuplicate':
      return fieldError.duplicate(field, badValue);
    default:
      return fieldError.invalid(field, badValue, detail);
  }
}

const REASONS: readonly FieldErrorReason[] = [
  'FieldValueForbidden',
  'FieldValueRequired',
  'FieldValueDuplicate',
];
