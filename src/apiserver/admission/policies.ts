import { matchesLabels } from '../../api/label-selector.ts';
import { listIn, objectIn, objectsIn, textIn } from '../builtin/fields.ts';
import { inVersion } from '../negotiation.ts';
import type { Registry } from '../registry.ts';
import type { ResourceDefinition, StoredObject } from '../resource-definition.ts';
import { Failure } from '../schema/cel/value.ts';
import type { JsonObject } from '../schema/json-value.ts';
import { StatusError, forbidden } from '../status-error.ts';
import { admissionRequest } from './admission-request.ts';
import type { Attributes } from './attributes.ts';
import { convertedTo } from './conversion.ts';
import type { Conditions, Expression } from './expressions.ts';
import {
  Budget,
  Environment,
  OutOfBudget,
  POLICY_LIMIT,
  compileConditions,
  evaluateConditions,
} from './expressions.ts';
import type { Match, MatchContext } from './matching.ts';
import { matchOf, policyCriteria, requirementsOf } from './matching.ts';

/** Maximum length of a message from an expression. */
const MAX_MESSAGE = 5 * 1024;

/** A validation that failed, or an error that counts as one. */
interface Denial {
  readonly policy: StoredObject;
  readonly binding: StoredObject | undefined;
  readonly message: string;
  /** @default 'Invalid' */
  readonly reason?: string;
}

/** The compiled expressions of a policy. */
interface CompiledPolicy {
  readonly conditions: Conditions;
  readonly validations: readonly {
    readonly source: JsonObject;
    readonly expression: Expression;
    readonly message: Expression | undefined;
  }[];
}

/** A configuration that does not fit. `failurePolicy` decides. */
class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
}

/**
 * Evaluates ValidatingAdmissionPolicies for a write.
 *
 * @throws {StatusError} the first denial
 */
export function validatePolicies(
  attributes: Attributes,
  policies: readonly StoredObject[],
  bindings: readonly StoredObject[],
  context: MatchContext,
): void {
  const denials = policies.flatMap((policy) => {
    const its = bindings.filter(
      ({ spec }) => textIn(spec as JsonObject, 'policyName') === policy.metadata.name,
    );
    return its.length === 0 ? [] : new Evaluation(attributes, policy, context).run(its);
  });
  const [first] = denials;
  if (first) throw refusal(attributes, first);
}

class Evaluation {
  readonly #attributes: Attributes;
  readonly #policy: StoredObject;
  readonly #spec: JsonObject;
  readonly #context: MatchContext;
  readonly #denials: Denial[] = [];

  constructor(attributes: Attributes, policy: StoredObject, context: MatchContext) {
    this.#attributes = attributes;
    this.#policy = policy;
    this.#spec = objectIn(policy, 'spec') ?? {};
    this.#context = context;
  }

  run(bindings: readonly StoredObject[]): readonly Denial[] {
    let match: Match | undefined;
    try {
      const constraints = policyCriteria(objectIn(this.#spec, 'matchConstraints'));
      match = matchOf(
        this.#attributes,
        { ...constraints, matchesWithoutRules: false },
        this.#context,
      );
      if (match) this.#paramDefinition();
    } catch (error) {
      this.#configurationFailed(error, undefined);
      return this.#denials;
    }
    if (match) for (const binding of bindings) this.#runBinding(binding, match);
    return this.#denials;
  }

  #runBinding(binding: StoredObject, match: Match): void {
    const spec = objectIn(binding, 'spec') ?? {};
    let params: readonly (StoredObject | undefined)[];
    try {
      const criteria = policyCriteria(objectIn(spec, 'matchResources'));
      if (!matchOf(this.#attributes, criteria, this.#context)) return;
      params = this.#paramsOf(objectIn(spec, 'paramRef'));
    } catch (error) {
      this.#configurationFailed(error, binding);
      return;
    }
    const actions = listIn(spec, 'validationActions');
    for (const each of params.flatMap((param) => this.#validate(match, param))) {
      const denial = { ...each, policy: this.#policy, binding };
      if (actions.includes('Deny')) this.#denials.push(denial);
      if (actions.includes('Warn')) {
        const { name } = this.#policy.metadata;
        this.#attributes.warnings.push(
          `Validation failed for ValidatingAdmissionPolicy '${name}' with binding '${binding.metadata.name}': ${each.message}`,
        );
      }
    }
  }

  #validate(
    match: Match,
    params: StoredObject | undefined,
  ): readonly Pick<Denial, 'message' | 'reason'>[] {
    const { conditions, validations } = compiledPolicy(this.#policy);
    const { object, oldObject, definition } = this.#attributes;
    const versioned = (each: StoredObject | undefined) =>
      each && convertedTo(each, definition, match);
    const bindings = {
      object: versioned(object),
      oldObject: versioned(oldObject),
      request: admissionRequest(this.#attributes, match),
      namespaceObject: this.#namespace(),
      params,
    };
    const applies = evaluateConditions(conditions, bindings);
    if (applies === false) return [];
    if (applies !== true) return this.#failed(applies.error);
    try {
      const activation = conditions.environment.bind(bindings, new Budget(POLICY_LIMIT));
      const results = validations.map(({ source, expression, message }) => ({
        source,
        message,
        result: activation.evaluate(expression),
      }));
      return results.flatMap(({ source, result, message }) => {
        if (result instanceof Failure) return this.#failed(result.message);
        if (result === true) return [];
        const text = message ? activation.evaluate(message) : '';
        return [{ message: messageOfFailure(source, text), reason: textIn(source, 'reason') }];
      });
    } catch (error) {
      if (error instanceof OutOfBudget) return this.#failed(error.message);
      throw error;
    }
  }

  /** Returns the params that a binding selects; one undefined value if the policy has none. */
  #paramsOf(ref: JsonObject | undefined): readonly (StoredObject | undefined)[] {
    const definition = this.#paramDefinition();
    if (!definition || !ref) return [undefined];
    const collection = this.#context.store.collection(definition);
    const namespace = this.#paramNamespace(definition, textIn(ref, 'namespace'));
    const name = textIn(ref, 'name');
    const requirements = requirementsOf(objectIn(ref, 'selector'));
    const named = collection.get(namespace, name);
    const found =
      name === ''
        ? collection
            .list(namespace)
            .filter(({ metadata }) => matchesLabels(requirements, metadata.labels))
        : named
          ? [named]
          : [];
    if (found.length === 0 && ref['parameterNotFoundAction'] === 'Deny') {
      throw new ConfigurationError(
        'no params found for policy binding with `Deny` parameterNotFoundAction',
      );
    }
    return found.map((param) => inVersion(param, definition));
  }

  #paramNamespace({ namespaced }: ResourceDefinition, given: string): string | undefined {
    if (!namespaced) {
      if (given === '') return undefined;
      throw new ConfigurationError(
        'paramRef.namespace must not be provided for a cluster-scoped `paramKind`',
      );
    }
    const namespace = given || this.#attributes.namespace;
    if (namespace !== '') return namespace;
    throw new ConfigurationError(
      'cannot use namespaced paramRef in policy binding that matches cluster-scoped resources',
    );
  }

  #paramDefinition(): ResourceDefinition | undefined {
    const paramKind = objectIn(this.#spec, 'paramKind');
    if (!paramKind) return undefined;
    const [apiVersion, kind] = [textIn(paramKind, 'apiVersion'), textIn(paramKind, 'kind')];
    const definition = definitionOfKind(this.#context.registry, apiVersion, kind);
    if (definition) return definition;
    const groupVersion = apiVersion.includes('/') ? apiVersion : `/${apiVersion}`;
    throw new ConfigurationError(
      `failed to find resource referenced by paramKind: '${groupVersion}, Kind=${kind}'`,
    );
  }

  #namespace(): StoredObject | undefined {
    const { namespace, definition } = this.#attributes;
    if (namespace === '' || (definition.group === '' && definition.kind === 'Namespace')) {
      return undefined;
    }
    const namespaces = this.#context.store.collection({ group: '', plural: 'namespaces' });
    return namespaces.get(undefined, namespace);
  }

  #configurationFailed(error: unknown, binding: StoredObject | undefined): void {
    if (!(error instanceof ConfigurationError) && !(error instanceof StatusError)) throw error;
    const what = binding ? 'binding' : 'policy';
    for (const { message } of this.#failed(`failed to configure ${what}: ${error.message}`)) {
      this.#denials.push({ policy: this.#policy, binding, message });
    }
  }

  /** Returns a denial, unless the policy ignores errors. */
  #failed(message: string): readonly Pick<Denial, 'message' | 'reason'>[] {
    return this.#spec['failurePolicy'] === 'Ignore' ? [] : [{ message }];
  }
}

function definitionOfKind(
  registry: Registry,
  apiVersion: string,
  kind: string,
): ResourceDefinition | undefined {
  const [version = '', group = ''] = apiVersion.split('/').reverse();
  return registry.groupVersion(group, version)?.definitions.find((each) => each.kind === kind);
}

/** Stored policies are immutable, so that each is compiled once. */
const compiledPolicies = new WeakMap<StoredObject, CompiledPolicy>();

function compiledPolicy(policy: StoredObject): CompiledPolicy {
  let compiled = compiledPolicies.get(policy);
  if (!compiled) {
    compiled = compilePolicy(objectIn(policy, 'spec') ?? {});
    compiledPolicies.set(policy, compiled);
  }
  return compiled;
}

function compilePolicy(spec: JsonObject): CompiledPolicy {
  const environment = new Environment(objectIn(spec, 'paramKind') !== undefined);
  const conditions = compileConditions(objectsIn(spec, 'matchConditions'), environment);
  for (const variable of objectsIn(spec, 'variables')) {
    environment.declare(textIn(variable, 'name'), textIn(variable, 'expression'));
  }
  const validations = objectsIn(spec, 'validations').map((source) => {
    const message = textIn(source, 'messageExpression');
    return {
      source,
      expression: environment.compile(textIn(source, 'expression'), 'bool'),
      message: message === '' ? undefined : environment.compile(message, 'string'),
    };
  });
  return { conditions, validations };
}

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
  { policy, binding, message, reason }: Denial,
): StatusError {
  const by = binding ? ` with binding '${binding.metadata.name}'` : '';
  const why = `ValidatingAdmissionPolicy '${policy.metadata.name}'${by} denied request: ${message}`;
  const { status } = forbidden(attributes.definition, shownName(attributes), why, [
    { message: why },
  ]);
  return StatusError.of({
    ...status,
    reason: reason || 'Invalid',
    code: CODES.get(reason ?? '') ?? 422,
  });
}

/** The name of an object in messages, which may still have to be generated. */
export function shownName({ name, object }: Attributes): string {
  return name || object?.metadata.generateName || 'Unknown';
}
