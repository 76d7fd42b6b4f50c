import { objectIn, objectsIn, textIn } from '../util/json-value.ts';
import { CostExceeded, CostMeter } from './values/overload.ts';
import { jsonValue } from './json-value.ts';
import type { AuthorizerValue } from './functions/authorization.ts';
import { AUTHORIZER } from './functions/authorization.ts';
import type { Compiled, ResultType } from './rule.ts';
import { compileExpression } from './rule.ts';
import type { CelType } from './values/type.ts';
import { BOOL, DYN, STRING, listOf, mapOf } from './values/type.ts';
import type { Dictionary, Result, Value } from './values/value.ts';
import { EvaluationError } from './values/value.ts';
import type { JsonObject } from '../util/json-value.ts';

/** Maximum cost of one expression, and of all expressions of a policy or of match conditions. */
const EXPRESSION_LIMIT = 1_000_000;
export const POLICY_LIMIT: number = 10_000_000;
const CONDITIONS_LIMIT: number = 2_500_000;

/** An expression of a policy or a match condition. */
export interface PolicyExpression {
  readonly source: string;
  /** The program, or the reason why there is none. */
  readonly compiled: Compiled | { readonly error: string; readonly isInternal?: boolean };
}

/** The expressions of a policy exceed their cost limit. */
export class OutOfBudget extends Error {
  override readonly name = 'OutOfBudget';

  constructor() {
    super(
      'validation failed due to running out of cost budget, no further validation rules will be run',
    );
  }
}

/** The cost that is left for the expressions of one evaluation. */
export class Budget {
  #left: number;

  constructor(limit: number) {
    this.#left = limit;
  }

  /** @throws {OutOfBudget} */
  spend(cost: number): void {
    if (cost > this.#left) throw new OutOfBudget();
    this.#left -= cost;
  }
}

interface ObjectTypes {
  readonly object?: CelType;
  readonly params?: CelType;
}

/** The variables that expressions can use, with their types. */
export class PolicyEnvironment {
  readonly #types: Map<string, CelType>;
  readonly #variableTypes = new Map<string, CelType>();
  readonly #variables = new Map<string, PolicyExpression>();

  /**
   * @param hasParams whether the policy has a `paramKind`
   * @param types of the object and the params; any type by default
   */
  constructor(hasParams: boolean, { object = DYN, params = DYN }: ObjectTypes = {}) {
    this.#types = new Map([
      ['object', object],
      ['oldObject', object],
      ['request', REQUEST],
      ['namespaceObject', NAMESPACE],
      ['authorizer', AUTHORIZER],
      ...(hasParams ? [['params', params] as const] : []),
      ['variables', { kind: 'object', name: 'kubernetes.variables', fields: this.#variableTypes }],
    ]);
  }

  /** Returns the environment of a policy, with its variables. */
  static of(spec: JsonObject, types?: ObjectTypes): PolicyEnvironment {
    const environment = new PolicyEnvironment(objectIn(spec, 'paramKind') !== undefined, types);
    for (const variable of objectsIn(spec, 'variables')) {
      environment.declare(textIn(variable, 'name'), textIn(variable, 'expression'));
    }
    return environment;
  }

  /** Declares `variables.NAME`, which later expressions can use. */
  declare(name: string, expression: string): PolicyExpression {
    const variable = this.compile(expression, 'any');
    const { compiled } = variable;
    this.#variables.set(name, variable);
    this.#variableTypes.set(name, 'error' in compiled ? DYN : compiled.type);
    return variable;
  }

  compile(source: string, expected: ResultType): PolicyExpression {
    const compiled = compileExpression(source, this.#types, expected);
    if (!('error' in compiled)) return { source, compiled };
    const { failed, error } = compiled;
    const reason =
      failed === 'type'
        ? `must evaluate to ${expected} but got ${error}`
        : `${failed} failed: ${error}`;
    return { source, compiled: { error: reason, isInternal: failed === 'program instantiation' } };
  }

  /** Returns the values of the variables for one write. */
  bind(values: PolicyBindings, budget: Budget): Activation {
    return new Activation(values, this.#variables, budget);
  }
}

/** Values of the variables, in JSON except for the authorizer. */
export interface PolicyBindings {
  readonly object: unknown;
  readonly oldObject: unknown;
  readonly request: JsonObject;
  readonly namespaceObject: unknown;
  readonly params?: unknown;
  readonly authorizer: AuthorizerValue;
}

/** The evaluation of the expressions of a policy for one write. */
export class Activation {
  readonly #variables: ReadonlyMap<string, Value>;
  readonly #budget: Budget;

  constructor(
    { authorizer, ...values }: PolicyBindings,
    expressions: ReadonlyMap<string, PolicyExpression>,
    budget: Budget,
  ) {
    this.#budget = budget;
    const variables = new Map(
      Object.entries(values).map(([name, value]) => [name, jsonValue(value)]),
    );
    variables.set('authorizer', authorizer);
    variables.set('variables', new LazyVariables(expressions, (each) => this.evaluate(each)));
    this.#variables = variables;
  }

  /**
   * Returns the value of an expression, or its error with upstream's text.
   *
   * @throws {OutOfBudget}
   */
  evaluate({ source, compiled }: PolicyExpression): Result {
    if ('error' in compiled) return new EvaluationError(`compilation error: ${compiled.error}`);
    const meter = new CostMeter(EXPRESSION_LIMIT);
    let result: Result;
    try {
      result = compiled.program(this.#variables, meter);
    } catch (error) {
      if (!(error instanceof CostExceeded)) throw error;
      result = new EvaluationError(error.message);
    }
    this.#budget.spend(meter.spent);
    if (!(result instanceof EvaluationError)) return result;
    return new EvaluationError(`expression '${source}' resulted in error: ${result.message}`);
  }
}

/** `variables`, whose members are evaluated once, when they are first read. */
class LazyVariables implements Dictionary {
  readonly kind = 'dictionary';
  readonly #expressions: ReadonlyMap<string, PolicyExpression>;
  readonly #evaluate: (expression: PolicyExpression) => Result;
  readonly #known = new Map<string, Result>();

  constructor(
    expressions: ReadonlyMap<string, PolicyExpression>,
    evaluate: (expression: PolicyExpression) => Result,
  ) {
    this.#expressions = expressions;
    this.#evaluate = evaluate;
  }

  get size(): number {
    return this.#expressions.size;
  }

  get(key: Value): Result | undefined {
    if (typeof key !== 'string') return undefined;
    const expression = this.#expressions.get(key);
    if (!expression) return undefined;
    let value = this.#known.get(key);
    if (value === undefined) {
      value = this.#evaluate(expression);
      if (value instanceof EvaluationError) {
        value = new EvaluationError(
          `composited variable "${key}" fails to evaluate: ${value.message}`,
        );
      }
      this.#known.set(key, value);
    }
    return value;
  }

  keys(): Iterable<string> {
    return this.#expressions.keys();
  }
}

/** Match conditions of a webhook or policy. */
export interface Conditions {
  readonly environment: PolicyEnvironment;
  readonly expressions: readonly PolicyExpression[];
}

/** Compiles the match conditions of a webhook or policy. */
export function compileConditions(
  conditions: readonly JsonObject[],
  environment: PolicyEnvironment,
): Conditions {
  const expressions = conditions.map((condition) =>
    environment.compile(textIn(condition, 'expression'), 'bool'),
  );
  return { environment, expressions };
}

/** Whether all conditions are true. An error counts only if no condition is false. */
export function evaluateConditions(
  { environment, expressions }: Conditions,
  bindings: PolicyBindings,
): boolean | { readonly error: string } {
  if (expressions.length === 0) return true;
  const errors: string[] = [];
  try {
    const activation = environment.bind(bindings, new Budget(CONDITIONS_LIMIT));
    for (const expression of expressions) {
      const result = activation.evaluate(expression);
      if (result === false) return false;
      if (result instanceof EvaluationError) errors.push(result.message);
    }
  } catch (error) {
    if (!(error instanceof OutOfBudget)) throw error;
    return { error: error.message };
  }
  if (errors.length === 0) return true;
  return { error: errors.length === 1 ? (errors[0] ?? '') : `[${errors.join(', ')}]` };
}

function objectType(name: string, fields: Readonly<Record<string, CelType>>): CelType {
  return { kind: 'object', name, fields: new Map(Object.entries(fields)) };
}

const KIND = objectType('kubernetes.GroupVersionKind', {
  group: STRING,
  version: STRING,
  kind: STRING,
});
const RESOURCE = objectType('kubernetes.GroupVersionResource', {
  group: STRING,
  version: STRING,
  resource: STRING,
});

const REQUEST = objectType('kubernetes.AdmissionRequest', {
  kind: KIND,
  resource: RESOURCE,
  subResource: STRING,
  requestKind: KIND,
  requestResource: RESOURCE,
  requestSubResource: STRING,
  name: STRING,
  namespace: STRING,
  operation: STRING,
  userInfo: objectType('kubernetes.UserInfo', {
    username: STRING,
    uid: STRING,
    groups: listOf(STRING),
    extra: mapOf(STRING, listOf(STRING)),
  }),
  dryRun: BOOL,
  options: DYN,
});

const NAMESPACE = objectType('kubernetes.Namespace', {
  metadata: objectType('kubernetes.NamespaceMetadata', {
    name: STRING,
    generateName: STRING,
    labels: mapOf(STRING, STRING),
    annotations: mapOf(STRING, STRING),
    UID: STRING,
    creationTimestamp: DYN,
    deletionTimestamp: DYN,
    deletionGracePeriodSeconds: DYN,
    generation: DYN,
    resourceVersion: STRING,
    finalizers: listOf(STRING),
  }),
  spec: objectType('kubernetes.NamespaceSpec', { finalizers: listOf(STRING) }),
  status: objectType('kubernetes.NamespaceStatus', { phase: STRING }),
});
