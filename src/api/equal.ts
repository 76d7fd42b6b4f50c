/**
 * Reports whether two JSON values are equal. Members with value `undefined` count as absent, as in JSON
 * text. Compares own enumerable keys only, so that a `__proto__` key is data. Iterative, because the
 * sender controls the depth.
 */
export function equalJson(a: unknown, b: unknown): boolean {
  /** Pairs of values to compare. */
  const pending: unknown[] = [a, b];
  while (pending.length > 0) {
    const right = pending.pop();
    const left = pending.pop();
    if (left === right) continue;
    if (typeof left !== 'object' || typeof right !== 'object' || !left || !right) return false;
    if (Array.isArray(left) || Array.isArray(right)) {
      if (!Array.isArray(left) || !Array.isArray(right) || left.length !== right.length)
        return false;
      for (let index = 0; index < left.length; index++) pending.push(left[index], right[index]);
      continue;
    }
    let present = 0;
    for (const key of Object.keys(left)) {
      const member = memberOf(left, key);
      if (member === undefined) continue;
      const counterpart = memberOf(right, key);
      if (counterpart === undefined) return false;
      present++;
      if (member !== counterpart) pending.push(member, counterpart);
    }
    if (present !== presentMembers(right)) return false;
  }
  return true;
}

function presentMembers(value: object): number {
  let present = 0;
  for (const key of Object.keys(value)) if (memberOf(value, key) !== undefined) present++;
  return present;
}

function memberOf(value: object, key: string): unknown {
  return Object.hasOwn(value, key) ? (value as Record<string, unknown>)[key] : undefined;
}

/** Maps and selectors of built-in kinds that a write replaces as a whole (`x-kubernetes-map-type: atomic`). */
export const ATOMIC_MAPS: ReadonlySet<string> = new Set([
  'matchLabels',
  'nodeSelector',
  'selector',
]);

/** Lists of objects of built-in kinds that are merged by a key. All other lists are replaced as a whole. */
export const MERGED_LISTS: ReadonlySet<string> = new Set(
  `addresses allocatedResourcesStatus claims conditions containers devices drivers env ephemeralContainers evictionResponders healthConditions hostAliases imagePullSecrets initContainers mapping matchConditions nodeAllocatableResourceClaimStatuses overhead ownerReferences podIPs ports reservedFor resourceClaimStatuses resourceClaims resources schedulingGates secrets storageHealth topologySpreadConstraints variables volumeDevices volumeHealth volumeMounts volumes webhooks x-kubernetes-validations`.split(
    /\s+/,
  ),
);

/**
 * Reports whether `actual` has all values of `desired`. Fields that `desired` does not set are ignored:
 * defaults of the server, autoscalers and users set them.
 *
 * An object covers another if its members cover the other's. A list of objects covers another if each
 * element of the other is covered by any of its elements, since servers merge such lists by key and add
 * elements. Lists of plain values must be equal. In objects of built-in kinds, maps and lists that are written as a
 * whole must have no further members. Recursive, because the caller creates `desired`.
 */
export function covers(actual: unknown, desired: unknown): boolean {
  return coversField(actual, desired, '', isOfBuiltinKind(desired));
}

/** @param name name of the field */
function coversField(actual: unknown, desired: unknown, name: string, isBuiltin: boolean): boolean {
  if (actual === desired || desired === undefined) return true;
  if (typeof actual !== 'object' || typeof desired !== 'object' || !actual || !desired) {
    return false;
  }
  if (Array.isArray(desired)) {
    if (!Array.isArray(actual)) return false;
    const candidates: readonly unknown[] = actual;
    if (desired.length === 0) return candidates.length === 0;
    const isOfObjects = desired.every((item) => typeof item === 'object' && item !== null);
    const isMerged = isOfObjects && (!isBuiltin || MERGED_LISTS.has(name));
    const covered = (candidate: unknown, item: unknown) =>
      coversField(candidate, item, '', isBuiltin);
    return isMerged
      ? desired.every((item) => candidates.some((candidate) => covered(candidate, item)))
      : desired.length === candidates.length &&
          desired.every((item, index) => covered(candidates[index], item));
  }
  if (Array.isArray(actual)) return false;
  if (isBuiltin && ATOMIC_MAPS.has(name)) return equalJson(actual, desired);
  for (const member of Object.keys(desired)) {
    const wanted = (desired as Record<string, unknown>)[member];
    if (!coversField(memberOf(actual, member), wanted, member, isBuiltin)) return false;
  }
  return true;
}

/** Whether an object has a kind of Kubernetes itself, by the group of its `apiVersion`. */
function isOfBuiltinKind(object: unknown): boolean {
  if (typeof object !== 'object' || object === null) return false;
  const apiVersion = memberOf(object, 'apiVersion');
  return typeof apiVersion === 'string' && /^(?:[a-z]+\/)?v\d\w*$|\.k8s\.io\//.test(apiVersion);
}
