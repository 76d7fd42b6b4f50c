import { equalJson } from '../../../api/equal.ts';
import { goQuote } from '../../../util/go-quote.ts';
import type { JsonObject } from '../../../util/json-value.ts';
import { isSet, objectIn, objectsIn, textIn } from '../../../util/json-value.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { structDiff } from '../shared/internal-structs.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';
import { qosClassOf } from './pod-qos.ts';

/** Validates an update by `/ephemeralcontainers`: those that a Pod has stay as they are. */
export function validateEphemeralUpdate(pod: CheckedObject, previous: StoredObject): void {
  const spec = pod.in('spec');
  const field = 'ephemeralContainers';
  const now = new Map(objectsIn(spec.value, field).map((each) => [textIn(each, 'name'), each]));
  for (const was of objectsIn(objectIn(previous, 'spec'), field)) {
    const name = textIn(was, 'name');
    const is = now.get(name);
    if (is && equalJson(is, was)) continue;
    const end = is ? `changed\n${structDiff('core.v1.EphemeralContainer', was, is)}` : 'removed\n';
    spec.forbidden(field, `existing ephemeral containers ${goQuote(name)} may not be ${end}`);
  }
}

/** Resources that a resize changes. */
const RESIZABLE: ReadonlySet<string> = new Set(['cpu', 'memory']);

/** Validates an update by `/resize`, which has changed nothing but resources. */
export function validateResize(pod: CheckedObject, previous: StoredObject): void {
  const before = objectIn(previous, 'spec') ?? {};
  const spec = pod.in('spec');
  if (textIn(objectIn(before, 'os'), 'name') === 'windows') {
    pod.forbidden('[]', 'windows pods cannot be resized');
    return;
  }
  const status = objectIn(previous, 'status');
  const qosClass = textIn(status, 'qosClass');
  if (qosClass !== qosClassOf(spec.value)) {
    spec.invalid('', 'Pod QOS Class may not change as a result of resizing', qosClass);
  }
  const running = objectsIn(status, 'containerStatuses').find((each) =>
    objectIn(objectIn(each, 'state'), 'running'),
  );
  if (running && !isSet(running, 'resources')) {
    spec.forbidden('', 'Pod running on node without support for resize');
  }
  const whole = objectIn(before, 'resources');
  validatePodLevel(spec, whole);
  if (spec.errors.length === 0 && spec.has('resources') && !whole) {
    const isEmpty = Object.keys(spec.in('resources').value).length === 0;
    if (isEmpty) spec.forbidden('', 'only cpu and memory resources are mutable');
  }
  if (!validateOrder(spec, before)) return;
  for (const list of ['initContainers', 'containers'] as const) {
    const former = objectsIn(before, list);
    for (const [index, container] of spec.items(list).entries()) {
      validateContainer(spec, container, former[index] ?? {}, list);
    }
  }
}

function validatePodLevel(spec: CheckedObject, before: JsonObject | undefined): void {
  const resources = spec.in('resources');
  requireKept(resources, before, 'pod-level resource');
  if (equalJson(masked(resources.value, before), masked(before, before))) return;
  spec.forbidden('', 'only cpu and memory resources are mutable at pod-level');
}

function validateContainer(
  spec: CheckedObject,
  container: CheckedObject,
  before: JsonObject,
  list: 'containers' | 'initContainers',
): void {
  const former = objectIn(before, 'resources');
  requireKept(container.in('resources'), former, 'resource');
  const resources = masked(container.in('resources').value, former);
  const isFixed = equalJson(
    { ...container.value, resources },
    { ...before, resources: masked(former, former) },
  );
  if (list === 'containers') {
    if (!isFixed) spec.forbidden('', 'only cpu and memory resources are mutable');
    return;
  }
  if (!isFixed) {
    const why = 'only cpu and memory resources for init or sidecar containers are mutable';
    container.forbidden('', why);
  }
  if (container.text('restartPolicy') === 'Always' || equalJson(container.value, before)) return;
  for (const policy of container.items('resizePolicy')) {
    if (policy.text('restartPolicy') !== 'RestartContainer') continue;
    const why =
      'non-sidecar init containers with a resize policy of RestartContainer cannot be resized';
    container.forbidden('', why);
  }
}

/** Resources whose CPU and memory are those of others. */
function masked(resources: JsonObject | undefined, others: JsonObject | undefined): JsonObject {
  const lists = ['limits', 'requests'].map((list) => {
    const own = Object.entries(objectIn(resources, list) ?? {});
    const former = Object.entries(objectIn(others, list) ?? {});
    return [
      list,
      Object.fromEntries([
        ...own.filter(([name]) => !RESIZABLE.has(name)),
        ...former.filter(([name]) => RESIZABLE.has(name)),
      ]),
    ] as const;
  });
  return { ...resources, ...Object.fromEntries(lists) };
}

/** A resize removes no request and no limit. */
function requireKept(
  resources: CheckedObject,
  before: JsonObject | undefined,
  what: 'resource' | 'pod-level resource',
): void {
  for (const list of ['requests', 'limits']) {
    const names = Object.keys(objectIn(before, list) ?? {});
    if (names.every((name) => resources.in(list).has(name))) continue;
    resources.forbidden(list, `${what} ${list} cannot be removed`);
  }
}

/** @returns whether the containers are the same in the same order */
function validateOrder(spec: CheckedObject, before: JsonObject): boolean {
  const count = spec.errors.length;
  for (const list of ['containers', 'initContainers']) {
    const former = objectsIn(before, list);
    const containers = spec.items(list);
    if (containers.length !== former.length) {
      spec.forbidden(list, `${list} may not be added or removed on resize`);
      continue;
    }
    for (const [index, container] of containers.entries()) {
      if (container.text('name') === textIn(former[index], 'name')) continue;
      container.forbidden('name', `${list} may not be renamed or reordered on resize`);
    }
  }
  return spec.errors.length === count;
}

/**
 * Returns the spec of a Pod with the resources of another one. If that has other containers, it is returned as it is,
 * and refused later.
 */
export function resizedSpec(before: JsonObject, after: JsonObject): JsonObject {
  const lists = ['containers', 'initContainers'] as const;
  if (lists.some((list) => objectsIn(after, list).length !== objectsIn(before, list).length)) {
    return after;
  }
  const { resources: _, ...spec } = before;
  for (const list of lists) {
    if (isSet(before, list)) spec[list] = resized(objectsIn(before, list), objectsIn(after, list));
  }
  const resources = after['resources'] ?? before['resources'];
  return { ...spec, ...(resources !== undefined && { resources }) };
}

function resized(
  before: readonly JsonObject[],
  after: readonly JsonObject[],
): readonly JsonObject[] {
  if (after.some((each, index) => textIn(each, 'name') !== textIn(before[index], 'name'))) {
    return after;
  }
  return before.map((container, index) => {
    const copy = Object.assign({}, container);
    for (const field of ['resources', 'resizePolicy'] as const) {
      const value = after[index]?.[field];
      if (value === undefined) delete copy[field];
      else copy[field] = value;
    }
    return copy;
  });
}
