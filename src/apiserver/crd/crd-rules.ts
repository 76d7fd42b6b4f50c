import { compileRules, fieldPathOf, hasRules, maxCardinality } from '../../cel/rule.ts';
import type { CheckSteps } from '../objects/check-steps.ts';
import { PART_WEIGHT } from '../objects/check-steps.ts';
import type { CheckedObject } from '../objects/checked-object.ts';
import type { FieldError } from '../../api/field-error.ts';
import { fieldError, MAX_FIELD_ERRORS, Verbatim } from '../../api/field-error.ts';
import type { Declared } from '../../cel/schema-type.ts';
import { declare, isEmbedded } from '../../cel/schema-type.ts';
import type { Rule, RuleError } from '../../cel/rule.ts';
import { goJson } from '../../util/go-format.ts';
import type { JsonSchema, SchemaRule } from '../../api/json-schema.ts';
import { propertyPath } from './structural-schema.ts';

const REASONS = [
  'FieldValueDuplicate',
  'FieldValueForbidden',
  'FieldValueInvalid',
  'FieldValueRequired',
];

/**
 * Checks the form of validation rules (`x-kubernetes-validations`). `checkRuleExpressions` checks
 * their expressions once the rest of the schema is valid.
 */
export function* checkRules(schema: CheckedObject): CheckSteps {
  for (const rule of schema.items('x-kubernetes-validations')) {
    yield PART_WEIGHT;
    checkRule(rule);
    const fieldPath = rule.text('fieldPath');
    if (fieldPath !== '' && fieldPathOf(fieldPath, schema.value) === undefined) {
      rule.invalid('fieldPath', 'must be a valid path');
    }
  }
}

function checkRule(rule: CheckedObject): void {
  const isBlank = (name: string) => rule.text(name) !== '' && rule.text(name).trim() === '';
  const message = rule.text('message').trim();
  const source = rule.text('rule').trim();
  if (source === '') rule.required('rule', 'rule is not specified');
  else if (isBlank('message')) rule.invalid('message', 'must be non-empty if specified');
  else if (hasLineBreaks(message)) rule.invalid('message', 'must not contain line breaks');
  else if (hasLineBreaks(source) && message === '') {
    rule.required('message', 'message must be specified if rule contains line breaks');
  }
  if (isBlank('messageExpression')) {
    rule.required('messageExpression', 'messageExpression must be non-empty if specified');
  }
  const { reason } = rule.value;
  if (typeof reason === 'string' && !REASONS.includes(reason)) {
    rule.notSupported('reason', REASONS);
  }
  if (isBlank('fieldPath')) rule.invalid('fieldPath', 'must be non-empty if specified');
  if (hasLineBreaks(rule.text('fieldPath'))) {
    rule.invalid('fieldPath', 'must not contain line breaks');
  }
}

function hasLineBreaks(text: string): boolean {
  return /[\n\r]/.test(text);
}

/** Maximum estimated cost of one rule for all its values in an object, and of all rules of a schema. */
const RULE_LIMIT = 10_000_000;
const SCHEMA_LIMIT = 100_000_000;

/**
 * Checks the rules of an otherwise valid schema. Returns an error for each expression that does not
 * compile or that may cost too much for a valid object.
 *
 * @param path path of the schema
 */
export function* checkRuleExpressions(schema: JsonSchema, path: string): CheckSteps<FieldError[]> {
  if (!hasRules(schema)) return [];
  const check = new RuleCheck();
  yield* check.visit(schema, path, declare(schema, true), {
    isResource: true,
    cardinality: 1,
    uncorrelatable: undefined,
  });
  return [...check.errors, ...check.totalErrors(path)];
}

interface Place {
  readonly isResource: boolean;
  /** Maximum number of such values in an object; undefined without a declared limit. */
  readonly cardinality: number | undefined;
  /** Path of the enclosing list whose items cannot be correlated with old ones, if any. */
  readonly uncorrelatable: string | undefined;
}

class RuleCheck {
  readonly errors: FieldError[] = [];
  readonly #costs: { readonly path: string; readonly cost: number }[] = [];

  *visit(
    schema: JsonSchema,
    path: string,
    declared: Declared | undefined,
    place: Place,
  ): CheckSteps {
    yield PART_WEIGHT;
    const { properties, items, additionalProperties: values } = schema;
    const cardinality = times(place.cardinality, elementsOf(schema));
    if (typeof values === 'object') {
      const its = declared?.item ?? declare(values, isEmbedded(values));
      yield* this.visit(values, `${path}.additionalProperties`, its, {
        isResource: isEmbedded(values),
        cardinality,
        uncorrelatable: place.uncorrelatable,
      });
    }
    for (const [name, field] of Object.entries(properties ?? {})) {
      const its = declared?.fields?.get(name) ?? declare(field, isEmbedded(field));
      yield* this.visit(field, propertyPath(path, name), its, {
        isResource: isEmbedded(field),
        cardinality,
        uncorrelatable: place.uncorrelatable,
      });
    }
    if (items) {
      const isMap = schema['x-kubernetes-list-type'] === 'map';
      yield* this.visit(
        items,
        `${path}.items`,
        declared?.item ?? declare(items, isEmbedded(items)),
        {
          isResource: isEmbedded(items),
          cardinality,
          uncorrelatable: place.uncorrelatable ?? (isMap ? undefined : path),
        },
      );
    }
    yield* this.#checkRules(schema, path, declared, place);
  }

  /** Errors of the total cost, which can be too high although each rule is cheap enough. */
  totalErrors(path: string): FieldError[] {
    const total = this.#costs.reduce((sum, { cost }) => sum + cost, 0);
    if (total <= SCHEMA_LIMIT) return [];
    const largest = this.#costs
      .filter(({ cost }) => cost >= SCHEMA_LIMIT / 100)
      .toSorted((a, b) => b.cost - a.cost)
      .slice(0, 4);
    const what = 'x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema';
    return [
      ...largest.map((each) =>
        fieldError.forbidden(
          each.path,
          'contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema',
        ),
      ),
      fieldError.forbidden(path, tooExpensive(what, total, SCHEMA_LIMIT)),
    ];
  }

  *#checkRules(
    schema: JsonSchema,
    path: string,
    declared: Declared | undefined,
    place: Place,
  ): CheckSteps {
    const sources = schema['x-kubernetes-validations'] ?? [];
    if (sources.length === 0) return;
    if (!declared) {
      this.errors.push({
        reason: 'InternalError',
        field: `${path}.x-kubernetes-validations`,
        detail:
          'internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations',
      });
      return;
    }
    let index = -1;
    for (const rule of compileRules(schema, declared)) {
      const source = sources[++index];
      if (!rule || !source) continue;
      yield source.rule.length + PART_WEIGHT;
      // More errors are not shown.
      if (this.errors.length >= MAX_FIELD_ERRORS) return;
      const at = `${path}.x-kubernetes-validations[${index}]`;
      if ('error' in rule) this.#compileError(rule, source, at);
      else this.#check(rule, at, place.cardinality ?? maxCardinality(declared), place);
    }
  }

  #compileError({ error }: RuleError, source: SchemaRule, at: string): void {
    this.errors.push(fieldError.invalid(`${at}.rule`, asGo(source), error));
    // As upstream, to which a rule that it cannot compile uses nothing.
    this.#rejectOptionalOldSelf(source, at);
  }

  #check(rule: Rule, at: string, cardinality: number, { uncorrelatable }: Place): void {
    const { source, message, usesOldSelf } = rule;
    this.#observe(`${at}.rule`, 'estimated rule cost', rule.maxCost * cardinality);
    if (message && 'error' in message) {
      const field = `${at}.messageExpression`;
      this.errors.push(fieldError.invalid(field, asGo(source), message.error));
    } else if (message) {
      this.#observe(`${at}.messageExpression`, 'estimated messageExpression cost', message.maxCost);
    }
    if (usesOldSelf && uncorrelatable !== undefined) {
      const detail = `oldSelf cannot be used on the uncorrelatable portion of the schema within ${uncorrelatable}`;
      this.errors.push(fieldError.invalid(`${at}.rule`, source.rule, detail));
    } else if (!usesOldSelf) this.#rejectOptionalOldSelf(source, at);
  }

  #rejectOptionalOldSelf({ optionalOldSelf }: SchemaRule, at: string): void {
    if (optionalOldSelf === undefined) return;
    const detail = 'may not be set if oldSelf is not used in rule';
    this.errors.push(fieldError.invalid(`${at}.optionalOldSelf`, optionalOldSelf, detail));
  }

  #observe(path: string, what: string, cost: number): void {
    this.#costs.push({ path, cost });
    if (cost > RULE_LIMIT) {
      this.errors.push(fieldError.forbidden(path, tooExpensive(what, cost, RULE_LIMIT)));
    }
  }
}

/** Maximum number of elements of a value; undefined if the schema sets no limit. */
function elementsOf(schema: JsonSchema): number | undefined {
  const { type, additionalProperties, maxProperties, maxItems } = schema;
  if (type === 'object' && additionalProperties !== undefined) return maxProperties;
  return type === 'array' ? maxItems : 1;
}

function times(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : a * b;
}

function tooExpensive(what: string, cost: number, limit: number): string {
  const excess = cost / limit;
  const factor =
    excess > 100
      ? 'more than 100x'
      : excess < 1.5
        ? `${excess.toFixed(6)}x`
        : `${excess.toFixed(1)}x`;
  return `${what} exceeds budget by factor of ${factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)`;
}

/** A rule as upstream shows it: all fields in the order of the Go struct. */
function asGo(rule: SchemaRule): Verbatim {
  const members = [
    ['Rule', rule.rule],
    ['Message', rule.message ?? ''],
    ['MessageExpression', rule.messageExpression ?? ''],
    ['Reason', rule.reason ?? null],
    ['FieldPath', rule.fieldPath ?? ''],
    ['OptionalOldSelf', rule.optionalOldSelf ?? null],
  ] as const;
  return new Verbatim(
    `{${members.map(([name, value]) => `"${name}":${goJson(value)}`).join(',')}}`,
  );
}
