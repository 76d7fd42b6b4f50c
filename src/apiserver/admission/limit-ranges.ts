import type { Pod } from '../../api/builtin.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { compareQuantities, quantityNanos } from '../../api/quantity.ts';
import { podResources } from '../../api/resource-list.ts';
import { copyJson } from '../json/copy-json.ts';
import type { StoredObject } from '../objects/resource-definition.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { objectIn, objectsIn, setOwn, textIn } from '../../util/json-value.ts';
import { forbiddenError } from '../objects/status-error.ts';
import type { Attributes } from './attributes.ts';
import { shownName } from './policies.ts';

const ANNOTATION = 'kubernetes.io/limit-ranger';
const CONTAINER_LISTS = [
  ['containers', 'container'],
  ['initContainers', 'init container'],
] as const;

/** Whether LimitRanges apply: to new Pods and to the storage of claims. */
function isLimited({ definition, operation, subresource }: Attributes): boolean {
  if (definition.group !== '' || subresource !== '') return false;
  if (definition.plural === 'pods') return operation === 'CREATE';
  return definition.plural === 'persistentvolumeclaims' && operation !== 'DELETE';
}

/** Returns a Pod with the default requests and limits of the LimitRanges; the same value if there are none. */
export function withDefaultLimits(
  attributes: Attributes,
  ranges: readonly StoredObject[],
): StoredObject | undefined {
  const { object, definition } = attributes;
  if (!object || !isLimited(attributes) || definition.plural !== 'pods') return object;
  return ranges.reduce<StoredObject>(withDefaultsOf, object);
}

function withDefaultsOf(pod: StoredObject, range: StoredObject): StoredObject {
  const limits: JsonObject = {};
  const requests: JsonObject = {};
  for (const limit of objectsIn(objectIn(range, 'spec'), 'limits')) {
    if (limit['type'] !== 'Container') continue;
    Object.assign(limits, objectIn(limit, 'default'));
    Object.assign(requests, objectIn(limit, 'defaultRequest'));
  }
  const next = copyJson(pod) as StoredObject & { metadata: { annotations?: JsonObject } };
  const notes = CONTAINER_LISTS.flatMap(([field, label]) =>
    objectsIn(objectIn(next, 'spec'), field).flatMap((container) => {
      const name = `${label} ${textIn(container, 'name')}`;
      return [
        note(addMissing(container, 'requests', requests), `request for ${name}`),
        note(addMissing(container, 'limits', limits), `limit for ${name}`),
      ].flat();
    }),
  );
  if (notes.length === 0) return pod;
  const text = `LimitRanger plugin set: ${notes.join('; ')}`;
  const { annotations } = pod.metadata;
  return {
    ...next,
    metadata: { ...next.metadata, annotations: { ...annotations, [ANNOTATION]: text } },
  };
}

function note(resources: readonly string[], what: string): string[] {
  return resources.length === 0 ? [] : [`${resources.toSorted().join(', ')} ${what}`];
}

/** Adds the missing amounts to the resources of a container. Returns their names. */
function addMissing(
  container: JsonObject,
  field: 'limits' | 'requests',
  defaults: JsonObject,
): string[] {
  const resources = objectIn(container, 'resources') ?? {};
  const amounts = objectIn(resources, field) ?? {};
  const missing = Object.keys(defaults).filter((name) => !Object.hasOwn(amounts, name));
  if (missing.length === 0) return missing;
  for (const name of missing) setOwn(amounts, name, defaults[name]);
  resources[field] = amounts;
  container['resources'] = resources;
  return missing;
}

/** @throws {StatusError} 403 if a Pod or claim is outside of a LimitRange */
export function requireWithinLimits(attributes: Attributes, ranges: readonly StoredObject[]): void {
  const { object, definition } = attributes;
  if (!object || !isLimited(attributes)) return;
  const spec = objectIn(object, 'spec');
  for (const range of ranges) {
    const problems = objectsIn(objectIn(range, 'spec'), 'limits').flatMap((limit) => {
      const type = textIn(limit, 'type');
      if (definition.plural === 'pods') {
        if (type === 'Pod') return problemsOf(limit, resourcesOf(object));
        if (type !== 'Container') return [];
        return CONTAINER_LISTS.flatMap(([field]) =>
          objectsIn(spec, field).flatMap((container) =>
            problemsOf(limit, objectIn(container, 'resources')),
          ),
        );
      }
      return type === 'PersistentVolumeClaim'
        ? claimProblems(limit, objectIn(spec, 'resources'))
        : [];
    });
    const unique = [...new Set(problems)];
    if (unique.length === 0) continue;
    const why = unique.length === 1 ? (unique[0] ?? '') : `[${unique.join(', ')}]`;
    throw forbiddenError(definition, shownName(attributes), why);
  }
}

/** The requests and limits of a whole Pod. As upstream, its overhead counts for nothing here. */
function resourcesOf({ spec = { containers: [] } }: DeepReadonly<Pod>): JsonObject {
  const { overhead: _overhead, ...own } = spec;
  const pod = { spec: own };
  return { requests: podResources(pod, 'requests'), limits: podResources(pod, 'limits') };
}

/** Returns the amounts of a container or a Pod that are outside of a limit, with upstream's texts. */
function problemsOf(limit: JsonObject, resources: JsonObject | undefined): string[] {
  const requests = amountsOf(resources, 'requests');
  const limits = amountsOf(resources, 'limits');
  return [
    ...boundProblems(limit, 'min', { request: requests, limit: limits }),
    ...boundProblems(limit, 'max', { limit: limits, request: requests }),
    ...amountsOf(limit, 'maxLimitRequestRatio')
      .entries()
      .flatMap(([name, max]) => {
        const subject = `${name} max limit to request ratio per ${textIn(limit, 'type')} is ${max}`;
        const [request, most] = [nanosOf(requests.get(name)), nanosOf(limits.get(name))];
        if (request === 0) return [`${subject}, but no request is specified or request is 0`];
        if (most === 0) return [`${subject}, but no limit is specified or limit is 0`];
        const ratio = most / request;
        const isHigh = ratio * 1e9 > nanosOf(max);
        return isHigh ? [`${subject}, but provided ratio is ${ratio.toFixed(6)}`] : [];
      }),
  ];
}

/** A claim has requests only. */
function claimProblems(limit: JsonObject, resources: JsonObject | undefined): string[] {
  const request = amountsOf(resources, 'requests');
  return [...boundProblems(limit, 'min', { request }), ...boundProblems(limit, 'max', { request })];
}

/** Returns the amounts that are outside of a bound. The first list must have an amount. */
function boundProblems(
  limit: JsonObject,
  field: 'min' | 'max',
  lists: Readonly<Partial<Record<'request' | 'limit', ReadonlyMap<string, string>>>>,
): string[] {
  const [first] = Object.entries(lists);
  return [...amountsOf(limit, field)].flatMap(([name, bound]) => {
    const subject = `${field}imum ${name} usage per ${textIn(limit, 'type')} is ${bound}`;
    if (!first?.[1].has(name)) return [`${subject}.  No ${first?.[0]} is specified`];
    const outside = Object.entries(lists).find(([, amounts]) => {
      const order = compareQuantities(amounts.get(name) ?? bound, bound);
      return field === 'min' ? order < 0 : order > 0;
    });
    return outside ? [`${subject}, but ${outside[0]} is ${outside[1].get(name)}`] : [];
  });
}

function amountsOf(parent: JsonObject | undefined, field: string): ReadonlyMap<string, string> {
  const amounts = objectIn(parent, field) ?? {};
  return new Map(Object.entries(amounts).map(([name, amount]) => [name, String(amount)]));
}

function nanosOf(amount: string | undefined): number {
  return amount === undefined ? 0 : Number(quantityNanos(amount) ?? 0n);
}
