import { goJson } from '../../../util/go-format.ts';
import type { JsonObject } from '../../../util/json-value.ts';
import { isSet, listIn, numberIn, objectIn, objectsIn, textIn } from '../../../util/json-value.ts';
import { equalJson } from '../../../api/equal.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';
import { structDiff } from '../shared/internal-structs.ts';

const MAX_INT32 = 2 ** 31 - 1;

const UPDATABLE = [
  '`spec.containers[*].image`',
  '`spec.initContainers[*].image`',
  '`spec.activeDeadlineSeconds`',
  '`spec.tolerations` (only additions to existing tolerations)',
  '`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)',
].join(',');

/** A Pod's spec hardly changes once it is there; its containers never come or go. */
export function validatePodUpdate(pod: CheckedObject, previous: StoredObject): void {
  const next = pod.in('spec');
  const before = objectIn(previous, 'spec') ?? {};
  for (const list of ['containers', 'initContainers'] as const) {
    const containers = next.items(list);
    if (containers.length !== objectsIn(before, list).length) {
      next.forbidden(list, 'pod updates may not add or remove containers');
      return;
    }
    for (const container of containers) {
      const image = container.text('image');
      if (image === image.trim()) continue;
      container.invalid('image', 'must not have leading or trailing whitespace');
    }
  }
  if (!validateDeadline(next, before)) return;
  validateTolerations(next, before);
  validateGates(next, before);
  if (objectsIn(before, 'schedulingGates').length > 0) validateGated(next, before);
  validateFixedFields(next, before);
  const qosClass = pod.in('status').text('qosClass');
  if (qosClass !== textIn(objectIn(previous, 'status'), 'qosClass')) {
    pod.invalid('status.qosClass', 'field is immutable', qosClass);
  }
}

/** @returns false if nothing else is validated, as upstream */
function validateDeadline(next: CheckedObject, before: JsonObject): boolean {
  const field = 'activeDeadlineSeconds';
  const was = numberIn(before, field);
  const is = next.number(field);
  if (is === undefined) {
    if (was !== undefined) {
      next.invalid(field, 'must not update from a positive integer to nil value', null);
    }
    return true;
  }
  if (is < 0 || is > MAX_INT32) {
    next.invalid(field, `must be between 0 and ${MAX_INT32}, inclusive`);
  } else if (was !== undefined && was < is) {
    next.invalid(field, 'must be less than or equal to previous value');
  } else return true;
  return false;
}

function validateTolerations(next: CheckedObject, before: JsonObject): void {
  const fixed = (toleration: JsonObject) => goJson({ ...toleration, tolerationSeconds: 0 });
  const kept = new Set(objectsIn(next.value, 'tolerations').map(fixed));
  if (objectsIn(before, 'tolerations').every((was) => kept.has(fixed(was)))) return;
  const why = 'existing toleration can not be modified except its tolerationSeconds';
  next.forbidden('tolerations', why);
}

function validateGates(next: CheckedObject, before: JsonObject): void {
  const known = new Set(objectsIn(before, 'schedulingGates').map((gate) => textIn(gate, 'name')));
  for (const gate of next.items('schedulingGates')) {
    const name = gate.text('name');
    if (known.has(name)) continue;
    gate.forbidden('name', `only deletion is allowed, but found new scheduling gate '${name}'`);
  }
}

const REQUIRED_TERMS = 'requiredDuringSchedulingIgnoredDuringExecution';

/** A Pod that is not scheduled yet may become more particular about its node. */
function validateGated(next: CheckedObject, before: JsonObject): void {
  const selector = next.in('nodeSelector').value;
  const former = Object.entries(objectIn(before, 'nodeSelector') ?? {});
  if (former.some(([key, value]) => selector[key] !== value)) {
    const why = 'only additions to spec.nodeSelector are allowed (no mutations or deletions)';
    next.invalid('nodeSelector', why);
  }
  const affinity = objectIn(objectIn(before, 'affinity'), 'nodeAffinity');
  const terms = objectsIn(objectIn(affinity, REQUIRED_TERMS), 'nodeSelectorTerms');
  const required = next.in('affinity').in('nodeAffinity').in(REQUIRED_TERMS);
  const now = required.items('nodeSelectorTerms');
  if (terms.length === 0) return;
  if (terms.length !== now.length) {
    const why = 'no additions/deletions to non-empty NodeSelectorTerms list are allowed';
    required.invalid('nodeSelectorTerms', why);
    return;
  }
  for (const [index, term] of now.entries()) {
    if (onlyAdds(term.value, terms[index] ?? {})) continue;
    term.invalid('', 'only additions are allowed (no mutations or deletions)', term.value);
  }
}

function onlyAdds(term: Readonly<JsonObject>, former: Readonly<JsonObject>): boolean {
  const lists = ['matchExpressions', 'matchFields'] as const;
  if (lists.every((list) => listIn(former, list).length === 0)) {
    return lists.every((list) => listIn(term, list).length === 0);
  }
  return lists.every((list) => {
    const was = listIn(former, list);
    return equalJson(listIn(term, list).slice(0, was.length), was);
  });
}

function validateFixedFields(next: CheckedObject, before: JsonObject): void {
  const fixed = withoutUpdatable(next.value, before);
  if (equalJson(fixed, before)) return;
  const diff = structDiff('core.v1.PodSpec', before, fixed);
  next.forbidden('', `pod updates may not change fields other than ${UPDATABLE}\n${diff}`);
}

/** The new spec with every field that may change as it was before. */
function withoutUpdatable(next: Readonly<Record<string, unknown>>, before: JsonObject): JsonObject {
  const fixed: JsonObject = { ...next };
  for (const field of ['activeDeadlineSeconds', 'tolerations', 'schedulingGates'] as const) {
    fixed[field] = before[field];
  }
  for (const list of ['containers', 'initContainers'] as const) {
    if (!isSet(next, list)) continue;
    const images = objectsIn(before, list).map(({ image }) => image);
    fixed[list] = objectsIn(next, list).map((container, index) =>
      Object.assign({}, container, { image: images[index] }),
    );
  }
  if (objectsIn(before, 'schedulingGates').length > 0) {
    fixed['nodeSelector'] = before['nodeSelector'];
    const { nodeAffinity: _, ...others } = objectIn(next, 'affinity') ?? {};
    const formerAffinity = objectIn(before, 'affinity');
    const nodeAffinity = formerAffinity?.['nodeAffinity'];
    const affinity = nodeAffinity === undefined ? others : { ...others, nodeAffinity };
    const isNone = !formerAffinity && Object.keys(affinity).length === 0;
    fixed['affinity'] = isNone ? undefined : affinity;
  }
  const was = numberIn(before, 'terminationGracePeriodSeconds') ?? 0;
  if (was < 0 && numberIn(next, 'terminationGracePeriodSeconds') === 1) {
    fixed['terminationGracePeriodSeconds'] = was;
  }
  return fixed;
}
