import { listIn, objectIn, objectsIn, textIn } from '../../util/json-value.ts';
import { oncePerObject } from '../../util/memo.ts';
import type { StoredObject } from '../objects/resource-definition.ts';
import { EvaluationError } from '../../cel/values/value.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { StatusError, forbiddenError } from '../objects/status-error.ts';
import type { Attributes } from './attributes.ts';
import type { Activation, Conditions, PolicyExpression } from '../../cel/policy-environment.ts';
import {
  Budget,
  PolicyEnvironment,
  OutOfBudget,
  POLICY_LIMIT,
  compileConditions,
  evaluateConditions,
} from '../../cel/policy-environment.ts';
import type { AdmissionContext } from './matching.ts';
import type { PolicyFailure, PolicyInvocation } from './policies.ts';
import { policyVariables, ignoresFailures, shownName } from './policies.ts';

/** Maximum length of a message, of the value of an audit annotation, and maximum number of audited failures. */
const MAX_MESSAGE = 5 * 1024;
const MAX_ANNOTATION = 10 * 1024;
const MAX_AUDITED = 50;

/** A validation that failed. */
interface Problem {
  readonly message: string;
  readonly reason?: string;
  readonly index: number;
}

interface CompiledPolicy {
  readonly conditions: Conditions;
  readonly validations: readonly {
    readonly source: JsonObject;
    readonly expression: PolicyExpression;
    readonly message: PolicyExpression | undefined;
  }[];
  readonly annotations: readonly { readonly key: string; readonly value: PolicyExpression }[];
}

/**
 * Evaluates ValidatingAdmissionPolicies for a write.
 *
 * @throws {StatusError} the first denial
 */
export function validatePolicies(
  attributes: Attributes,
  invocations: readonly (PolicyInvocation | PolicyFailure)[],
  context: AdmissionContext,
): void {
  const denials: PolicyFailure[] = [];
  const audited: object[] = [];
  const annotations = new Map<string, Set<string>>();
  for (const invocation of invocations) {
    if (!('match' in invocation)) {
      denials.push(invocation);
      continue;
    }
    const { policy, binding } = invocation;
    const { problems, errors, values } = evaluate(attributes, invocation, context);
    const { name } = policy.metadata;
    const actions = listIn(objectIn(binding, 'spec'), 'validationActions');
    for (const { message, reason = '', index } of problems) {
      if (actions.includes('Deny')) denials.push({ policy, binding, message, reason });
      if (actions.includes('Audit')) {
        const its = { binding: binding.metadata.name, expressionIndex: index };
        audited.push({ message, policy: name, ...its, validationActions: actions });
      }
      if (actions.includes('Warn')) {
        const where = `'${name}' with binding '${binding.metadata.name}'`;
        attributes.warnings.push(
          `Validation failed for ValidatingAdmissionPolicy ${where}: ${message}`,
        );
      }
    }
    for (const message of errors) denials.push({ policy, binding, message });
    for (const [key, value] of values) {
      const id = `${name}/${key}`;
      annotations.set(id, (annotations.get(id) ?? new Set()).add(value.slice(0, MAX_ANNOTATION)));
    }
  }
  for (const [key, values] of annotations) attributes.annotations.set(key, [...values].join(', '));
  if (audited.length > 0) {
    attributes.annotations.set(
      'validation.policy.admission.k8s.io/validation_failure',
      JSON.stringify(audited.slice(0, MAX_AUDITED)),
    );
  }
  const [first] = denials;
  if (first) throw refusal(attributes, first);
}

interface Evaluation {
  readonly problems: readonly Problem[];
  /** Errors of audit annotations, which deny the write whatever the binding says. */
  readonly errors: readonly string[];
  /** Audit annotations. */
  readonly values: readonly (readonly [key: string, value: string])[];
}

function evaluate(
  attributes: Attributes,
  { policy, match, param }: PolicyInvocation,
  context: AdmissionContext,
): Evaluation {
  const { conditions, validations, annotations } = compiledPolicy(policy);
  const failed = <T>(failure: T): readonly T[] => (ignoresFailures(policy) ? [] : [failure]);
  const only = (problems: readonly Problem[]) => ({ problems, errors: [], values: [] });
  const bindings = policyVariables(attributes, match, context, param);
  const applies = evaluateConditions(conditions, bindings);
  if (applies === false) return only([]);
  if (applies !== true) return only(failed({ message: applies.error, index: 0 }));
  const problemsOf = (activation: Activation) => {
    const results = validations.map(({ expression }) => activation.evaluate(expression));
    return results.flatMap((result, index): readonly Problem[] => {
      const validation = validations[index];
      if (result === true || !validation) return [];
      if (result instanceof EvaluationError) return failed({ message: result.message, index });
      const { source, message } = validation;
      const text = message ? activation.evaluate(message) : '';
      return [{ message: messageOfFailure(source, text), reason: textIn(source, 'reason'), index }];
    });
  };
  try {
    const activate = () => conditions.environment.bind(bindings, new Budget(POLICY_LIMIT));
    const problems = problemsOf(activate());
    const errors: string[] = [];
    const values: [key: string, value: string][] = [];
    const activation = activate();
    for (const { key, value } of annotations) {
      const result = activation.evaluate(value);
      if (result instanceof EvaluationError) {
        for (const message of failed(result.message)) errors.push(message);
      } else if (typeof result === 'string' && result.trim() !== '')
        values.push([key, result.trim()]);
    }
    return { problems, errors, values };
  } catch (error) {
    if (error instanceof OutOfBudget) return only(failed({ message: error.message, index: 0 }));
    throw error;
  }
}

/** Stored policies are immutable, so that each is compiled once. */
const compiledPolicy = oncePerObject((policy: StoredObject): CompiledPolicy => {
  const spec = objectIn(policy, 'spec') ?? {};
  const environment = PolicyEnvironment.of(spec);
  const conditions = compileConditions(objectsIn(spec, 'matchConditions'), environment);
  const validations = objectsIn(spec, 'validations').map((source) => {
    const message = textIn(source, 'messageExpression');
    return {
      source,
      expression: environment.compile(textIn(source, 'expression'), 'bool'),
      message: message === '' ? undefined : environment.compile(message, 'string'),
    };
  });
  const annotations = objectsIn(spec, 'auditAnnotations').map((source) => ({
    key: textIn(source, 'key'),
    value: environment.compile(textIn(source, 'valueExpression'), 'any'),
  }));
  return { conditions, validations, annotations };
});

/** Returns the message of a failed validation: from its expression if that is usable, else its text. */
function messageOfFailure(source: JsonObject, evaluated: unknown): string {
  const text = typeof evaluated === 'string' ? evaluated.trim() : '';
  if (text !== '' && text.length <= MAX_MESSAGE && !text.includes('\n')) return text;
  return (
    textIn(source, 'message').trim() || `failed expression: ${textIn(source, 'expression').trim()}`
  );
}

const CODES: ReadonlyMap<string, number> = new Map([
  ['Unauthorized', 401],
  ['Forbidden', 403],
  ['RequestEntityTooLarge', 413],
]);

function refusal(
  attributes: Attributes,
  { policy, binding, message, reason }: PolicyFailure,
): StatusError {
  const by = binding ? ` with binding '${binding.metadata.name}'` : '';
  const why = `ValidatingAdmissionPolicy '${policy.metadata.name}'${by} denied request: ${message}`;
  const { status } = forbiddenError(attributes.definition, shownName(attributes), why, [
    { message: why },
  ]);
  return new StatusError({
    ...status,
    reason: reason || 'Invalid',
    code: CODES.get(reason ?? '') ?? 422,
  });
}
