import { objectIn, textIn } from '../../util/json-value.ts';
import { matchesLabels } from '../../api/label-selector.ts';
import { toRequestedVersion } from '../request/negotiation.ts';
import type { Registry } from '../objects/registry.ts';
import type { ResourceDefinition, StoredObject } from '../objects/resource-definition.ts';
import { AuthorizerValue } from '../../cel/functions/authorization.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { StatusError } from '../objects/status-error.ts';
import { admissionRequest } from './admission-request.ts';
import type { Attributes } from './attributes.ts';
import { convertedTo } from '../request/conversion.ts';
import type { PolicyBindings } from '../../cel/policy-environment.ts';
import type { Match, AdmissionContext } from './matching.ts';
import { matchOf, matchRequirements, policyCriteria, prepareVersions } from './matching.ts';

/** A policy that applies to a write by one of its bindings, with one of the params of the binding. */
export interface PolicyInvocation {
  readonly policy: StoredObject;
  readonly binding: StoredObject;
  readonly match: Match;
  /** Undefined if the policy or the binding has none. */
  readonly param: Param | undefined;
}

interface Param {
  readonly object: StoredObject;
  /** Definition in the version of `paramKind`. */
  readonly definition: ResourceDefinition;
}

/** A policy that cannot be evaluated, although its failures are not ignored. */
export interface PolicyFailure {
  readonly policy: StoredObject;
  readonly binding: StoredObject | undefined;
  readonly message: string;
  /** Reason of the rejection, if the policy or the kind of admission has its own. */
  readonly reason?: string;
}

/** A configuration that does not fit. `failurePolicy` decides. */
class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
}

/** Returns the policies that apply to a write and the failures, in the order of the policies and bindings. */
export function invocationsOf(
  attributes: Attributes,
  policies: readonly StoredObject[],
  bindings: readonly StoredObject[],
  context: AdmissionContext,
): readonly (PolicyInvocation | PolicyFailure)[] {
  return policies.flatMap((policy) => {
    const its = bindings.filter(
      (binding) => textIn(objectIn(binding, 'spec'), 'policyName') === policy.metadata.name,
    );
    return its.length === 0 ? [] : invocationsOfPolicy(attributes, policy, its, context);
  });
}

function invocationsOfPolicy(
  attributes: Attributes,
  policy: StoredObject,
  bindings: readonly StoredObject[],
  context: AdmissionContext,
): readonly (PolicyInvocation | PolicyFailure)[] {
  const spec = objectIn(policy, 'spec') ?? {};
  const failed = (error: unknown, binding?: StoredObject): readonly PolicyFailure[] => {
    if (!(error instanceof ConfigurationError) && !(error instanceof StatusError)) throw error;
    if (ignoresFailures(policy)) return [];
    const what = binding ? 'binding' : 'policy';
    return [{ policy, binding, message: `failed to configure ${what}: ${error.message}` }];
  };
  let match: Match | undefined;
  let params: ResourceDefinition | undefined;
  try {
    const constraints = policyCriteria(objectIn(spec, 'matchConstraints'));
    match = matchOf(attributes, { ...constraints, matchesWithoutRules: false }, context);
    if (match) params = paramDefinition(spec, context.registry);
  } catch (error) {
    return failed(error);
  }
  if (!match) return [];
  const found = match;
  return bindings.flatMap((binding): readonly (PolicyInvocation | PolicyFailure)[] => {
    const { matchResources, paramRef } = objectIn(binding, 'spec') ?? {};
    try {
      const criteria = policyCriteria(matchResources as JsonObject | undefined);
      if (!matchOf(attributes, criteria, context)) return [];
      const its = paramsOf(params, paramRef as JsonObject | undefined, attributes, context);
      return its.map((param) => ({ policy, binding, match: found, param }));
    } catch (error) {
      return failed(error, binding);
    }
  });
}

export function ignoresFailures(policy: StoredObject): boolean {
  return objectIn(policy, 'spec')?.['failurePolicy'] === 'Ignore';
}

/** Converts the objects of a write and the param to the versions in which the policy sees them. */
export async function prepareInvocation(
  { object, oldObject, definition }: Attributes,
  { match, param }: PolicyInvocation,
  { converter }: AdmissionContext,
): Promise<void> {
  await prepareVersions(converter, [object, oldObject], definition, match);
  if (param) await converter.prepare([param.object], param.definition);
}

/** Returns the values of the variables of a webhook or policy. */
export function policyVariables(
  attributes: Attributes,
  match: Match,
  context: AdmissionContext,
  param?: Param,
): PolicyBindings {
  const { object, oldObject, definition, user, subresource, namespace, name } = attributes;
  const versioned = (each: StoredObject | undefined) =>
    each && convertedTo(each, definition, match);
  const { group, plural: resource } = definition;
  const requestResource = { group, resource, subresource, namespace, name };
  return {
    object: versioned(object),
    oldObject: versioned(oldObject),
    request: admissionRequest(attributes, match),
    namespaceObject: namespaceOf(attributes, context),
    params: param && toRequestedVersion(param.object, param.definition),
    authorizer: new AuthorizerValue({ access: context.access, user }, requestResource),
  };
}

function namespaceOf(
  { namespace, definition }: Attributes,
  { store }: AdmissionContext,
): StoredObject | undefined {
  if (namespace === '' || (definition.group === '' && definition.kind === 'Namespace')) {
    return undefined;
  }
  return store.collection({ group: '', plural: 'namespaces' }).get(undefined, namespace);
}

/** Returns the params that a binding selects; one undefined value if the policy or the binding has none. */
function paramsOf(
  definition: ResourceDefinition | undefined,
  ref: JsonObject | undefined,
  attributes: Attributes,
  { store }: AdmissionContext,
): readonly (Param | undefined)[] {
  if (!definition || !ref) return [undefined];
  const collection = store.collection(definition);
  const namespace = paramNamespace(
    definition,
    textIn(ref, 'namespace') || attributes.namespace,
    ref,
  );
  const name = textIn(ref, 'name');
  const requirements = matchRequirements(objectIn(ref, 'selector'));
  const found =
    name === ''
      ? collection
          .list(namespace)
          .filter(({ metadata }) => matchesLabels(requirements, metadata.labels))
      : [collection.get(namespace, name)].filter((param) => param !== undefined);
  if (found.length === 0 && ref['parameterNotFoundAction'] === 'Deny') {
    throw new ConfigurationError(
      'no params found for policy binding with `Deny` parameterNotFoundAction',
    );
  }
  return found.map((object) => ({ object, definition }));
}

function paramNamespace(
  { namespaced }: ResourceDefinition,
  namespace: string,
  ref: JsonObject,
): string | undefined {
  if (namespaced) {
    if (namespace !== '') return namespace;
    throw new ConfigurationError(
      'cannot use namespaced paramRef in policy binding that matches cluster-scoped resources',
    );
  }
  if (textIn(ref, 'namespace') === '') return undefined;
  throw new ConfigurationError(
    'paramRef.namespace must not be provided for a cluster-scoped `paramKind`',
  );
}

function paramDefinition(spec: JsonObject, registry: Registry): ResourceDefinition | undefined {
  const paramKind = objectIn(spec, 'paramKind');
  if (!paramKind) return undefined;
  const [apiVersion, kind] = [textIn(paramKind, 'apiVersion'), textIn(paramKind, 'kind')];
  const [version = '', group = ''] = apiVersion.split('/').reverse();
  const { definitions = [] } = registry.groupVersion(group, version) ?? {};
  const definition = definitions.find((each) => each.kind === kind);
  if (definition) return definition;
  const groupVersion = apiVersion.includes('/') ? apiVersion : `/${apiVersion}`;
  throw new ConfigurationError(
    `failed to find resource referenced by paramKind: '${groupVersion}, Kind=${kind}'`,
  );
}

/** The name of an object in messages, which may still have to be generated. */
export function shownName({ name, object }: Attributes): string {
  return name || object?.metadata.generateName || 'Unknown';
}
