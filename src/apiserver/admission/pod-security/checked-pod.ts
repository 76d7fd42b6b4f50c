import type { DeepReadonly, ObjectMeta } from '../../../api/object.ts';
import type { JsonObject } from '../../../util/json-value.ts';
import { objectIn, objectsIn, textIn } from '../../../util/json-value.ts';

/** Metadata and spec of a Pod or of the template of one. */
export interface CheckedPod {
  readonly metadata: DeepReadonly<Partial<ObjectMeta>>;
  readonly spec: JsonObject;
}

/** Why a Pod is forbidden, with upstream's texts. */
export interface PodViolation {
  readonly reason: string;
  readonly detail: string;
}

export type CheckPod = (pod: CheckedPod) => PodViolation | undefined;

export function containersOf(spec: JsonObject): readonly JsonObject[] {
  return ['initContainers', 'containers', 'ephemeralContainers'].flatMap((field) =>
    objectsIn(spec, field),
  );
}

export function securityOf(owner: JsonObject): JsonObject | undefined {
  return objectIn(owner, 'securityContext');
}

/** Returns the names of the containers for which a predicate of their security context holds. */
export function containerNamesWhere(
  spec: JsonObject,
  isMatch: (security: JsonObject | undefined, container: JsonObject) => boolean,
): string[] {
  return containersOf(spec)
    .filter((container) => isMatch(securityOf(container), container))
    .map((container) => textIn(container, 'name'));
}

export function quotedNames(names: Iterable<string>): string {
  return Array.from(names, (name) => `"${name}"`).join(', ');
}

export function sortedUnique(values: Iterable<string>): string[] {
  return [...new Set(values)].sort();
}

export function pluralOfNoun(noun: string, count: number): string {
  return count === 1 ? noun : `${noun}s`;
}

export function nounWithNames(noun: string, names: readonly string[]): string {
  return `${pluralOfNoun(noun, names.length)} ${quotedNames(names)}`;
}

/** Text of those that use something: `containers "a", "b" use`. */
export function usersOf(noun: string, names: readonly string[]): string {
  return `${nounWithNames(noun, names)} ${names.length === 1 ? 'uses' : 'use'}`;
}

/** Text of the Pod and of containers that set a field, or undefined if there are none. */
export function settersOf(isSetByPod: boolean, containers: readonly string[]): string | undefined {
  const setters = isSetByPod ? ['pod'] : [];
  if (containers.length > 0) setters.push(nounWithNames('container', containers));
  return setters.length === 0 ? undefined : setters.join(' and ');
}
