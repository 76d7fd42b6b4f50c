import { listIn, objectIn, objectsIn, textIn } from '../../util/json-value.ts';
import {
  formatLabelSelector,
  matchesLabels,
  parseLabelSelector,
} from '../../api/label-selector.ts';
import type { Requirement } from '../../api/label-selector.ts';
import type { CrdConverter } from '../crd/crd-conversion.ts';
import type { ObjectStore } from '../storage/object-store.ts';
import type { Authorizer } from '../../api/policy-rule.ts';
import type { Registry } from '../objects/registry.ts';
import type { ResourceDefinition, StoredObject } from '../objects/resource-definition.ts';
import { oncePerObject } from '../../util/memo.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { internalError, notFoundError } from '../objects/status-error.ts';
import type { Attributes } from './attributes.ts';
import { equivalentsOf } from '../request/conversion.ts';
import { apiVersionIn } from '../request/negotiation.ts';

const NAMESPACES = { group: '', plural: 'namespaces' } as const;
const ADMISSION_GROUP = 'admissionregistration.k8s.io';

/** The parts of the server that admission uses. */
export interface AdmissionContext {
  readonly store: ObjectStore;
  readonly registry: Registry;
  readonly access: Pick<Authorizer, 'decide'>;
  readonly converter: CrdConverter;
}

/** The resource as which a webhook or policy sees an object: the requested one, or an equivalent version of it. */
export type Match = ResourceDefinition;

/** A webhook, or the `matchConstraints` of a policy. */
export interface Criteria {
  readonly rules: readonly JsonObject[];
  /** @default none */
  readonly excludedRules?: readonly JsonObject[];
  /** Whether no rules match all requests. */
  readonly matchesWithoutRules: boolean;
  readonly source: JsonObject;
}

/** Webhooks and policies do not apply to their own configuration, because a mistake could not be undone. */
export function isExempt({ definition }: Attributes): boolean {
  return definition.group === ADMISSION_GROUP;
}

/**
 * Decides whether a webhook or policy applies to a write. An error of a selector counts only if the rules match.
 *
 * @returns the resource in the version that the rules name, or undefined
 * @throws {StatusError} 404 if the namespace does not exist, 500 if a selector is malformed
 */
export function matchOf(
  attributes: Attributes,
  criteria: Criteria,
  context: AdmissionContext,
): Match | undefined {
  const { source, rules, excludedRules = [], matchesWithoutRules } = criteria;
  const isEquivalent = source['matchPolicy'] !== 'Exact';
  if (matchRules(excludedRules, isEquivalent, attributes, context)) return undefined;
  const match =
    rules.length === 0 && matchesWithoutRules
      ? attributes.definition
      : matchRules(rules, isEquivalent, attributes, context);
  if (!match) return undefined;
  const isSelected =
    matchesNamespace(objectIn(source, 'namespaceSelector'), attributes, context) &&
    matchesObject(objectIn(source, 'objectSelector'), attributes);
  return isSelected ? match : undefined;
}

function matchRules(
  rules: readonly JsonObject[],
  isEquivalent: boolean,
  attributes: Attributes,
  { registry }: AdmissionContext,
): Match | undefined {
  const { definition } = attributes;
  if (rules.some((rule) => matchesRule(rule, attributes, definition))) return definition;
  if (!isEquivalent || rules.length === 0) return undefined;
  const others = equivalentsOf(definition, registry);
  for (const rule of rules) {
    const other = others.find((each) => matchesRule(rule, attributes, each));
    if (other) return other;
  }
  return undefined;
}

function matchesRule(
  rule: JsonObject,
  { operation, subresource, namespace, name }: Attributes,
  { group, version, plural }: ResourceDefinition,
): boolean {
  const isNamespace = group === '' && plural === NAMESPACES.plural;
  const isInNamespace = !isNamespace && namespace !== '';
  const names = listIn(rule, 'resourceNames');
  return (
    matchesScope(textIn(rule, 'scope'), isInNamespace) &&
    includes(listIn(rule, 'operations'), operation) &&
    includes(listIn(rule, 'apiGroups'), group) &&
    includes(listIn(rule, 'apiVersions'), version) &&
    listIn(rule, 'resources').some((each) => matchesResource(String(each), plural, subresource)) &&
    (names.length === 0 || names.includes(name))
  );
}

function matchesScope(scope: string, isInNamespace: boolean): boolean {
  if (scope === 'Namespaced') return isInNamespace;
  return scope === 'Cluster' ? !isInNamespace : true;
}

function matchesResource(pattern: string, plural: string, subresource: string): boolean {
  const [resource, part = ''] = pattern.split('/', 2);
  return (resource === '*' || resource === plural) && (part === '*' || part === subresource);
}

function includes(list: readonly unknown[], item: string): boolean {
  return list.includes('*') || list.includes(item);
}

function matchesNamespace(
  selector: JsonObject | undefined,
  attributes: Attributes,
  { store }: AdmissionContext,
): boolean {
  const requirements = matchRequirements(selector);
  const { namespace, definition, subresource, operation, object } = attributes;
  const isNamespace = definition.group === '' && definition.plural === NAMESPACES.plural;
  if (requirements.length === 0 || (namespace === '' && !isNamespace)) return true;
  if (isNamespace && subresource === '' && operation !== 'DELETE') {
    return matchesLabels(requirements, object?.metadata.labels);
  }
  const found = store.collection(NAMESPACES).get(undefined, namespace);
  if (!found) throw notFoundError(NAMESPACES, namespace);
  return matchesLabels(requirements, found.metadata.labels);
}

function matchesObject(
  selector: JsonObject | undefined,
  { object, oldObject }: Attributes,
): boolean {
  const requirements = matchRequirements(selector);
  if (requirements.length === 0) return true;
  const matches = (each: StoredObject | undefined) =>
    each !== undefined && matchesLabels(requirements, each.metadata.labels);
  return matches(object) || matches(oldObject);
}

/** @throws {StatusError} 500 if the selector is malformed */
export function matchRequirements(selector: JsonObject | undefined): readonly Requirement[] {
  return selector ? parsedSelector(selector) : [];
}

/** Stored configuration is immutable, so that each selector is parsed once. */
const parsedSelector = oncePerObject((selector: JsonObject): readonly Requirement[] => {
  try {
    return parseLabelSelector(formatLabelSelector(selector));
  } catch (error) {
    if (error instanceof SyntaxError) throw internalError(error.message);
    throw error;
  }
});

export function webhookCriteria(webhook: JsonObject): Criteria {
  return { rules: objectsIn(webhook, 'rules'), matchesWithoutRules: false, source: webhook };
}

export function policyCriteria(matchResources: JsonObject | undefined): Criteria {
  const source = matchResources ?? {};
  return {
    rules: objectsIn(source, 'resourceRules'),
    excludedRules: objectsIn(source, 'excludeResourceRules'),
    matchesWithoutRules: true,
    source,
  };
}

/** Converts the objects of a write to the version of a match, so that `convertedTo` returns them. */
export function prepareVersions(
  converter: CrdConverter,
  objects: readonly (StoredObject | undefined)[],
  from: ResourceDefinition,
  to: Match,
): Promise<void> | undefined {
  if (from === to || !to.conversion) return;
  const apiVersion = apiVersionIn(from);
  return converter.prepare(
    objects.filter((object) => object?.apiVersion === apiVersion) as readonly StoredObject[],
    to,
  );
}
