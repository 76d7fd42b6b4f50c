import type { JsonObject } from '../../../util/json-value.ts';
import { objectIn, objectsIn } from '../../../util/json-value.ts';
import { compareQuantities } from '../../../api/quantity.ts';

type QosClass = 'Guaranteed' | 'Burstable' | 'BestEffort';

/**
 * Guaranteed: every container limits CPU and memory, and requests just as much. BestEffort: none
 * says anything of either. Burstable: all others. The resources of the Pod as a whole, if it has some, decide instead.
 */
export function qosClassOf(spec: JsonObject): QosClass {
  const isSet = ['limits', 'requests'].some((list) => {
    return Object.keys(objectIn(objectIn(spec, 'resources'), list) ?? {}).length > 0;
  });
  const containers = isSet
    ? [spec]
    : [...objectsIn(spec, 'containers'), ...objectsIn(spec, 'initContainers')];
  const claims = containers.flatMap((container) => {
    const resources = objectIn(container, 'resources');
    return ['cpu', 'memory'].map((name) => ({
      limit: amount(objectIn(resources, 'limits'), name),
      request: amount(objectIn(resources, 'requests'), name),
    }));
  });
  if (claims.every(({ limit, request }) => limit === undefined && request === undefined)) {
    return 'BestEffort';
  }
  const guaranteed = claims.every(
    ({ limit, request }) =>
      limit !== undefined && request !== undefined && compareQuantities(limit, request) === 0,
  );
  return guaranteed ? 'Guaranteed' : 'Burstable';
}

/** A quantity of nothing is no claim. */
function amount(list: JsonObject | undefined, name: string): string | undefined {
  const value = list?.[name];
  const text = typeof value === 'number' ? String(value) : value;
  return typeof text === 'string' && compareQuantities(text, '0') !== 0 ? text : undefined;
}
