import { timestamp } from '../../../api/conditions.ts';
import type { JsonObject } from '../../../util/json-value.ts';
import { objectIn, objectsIn, textIn } from '../../../util/json-value.ts';
import type { ApiObject, StoredObject } from '../../objects/resource-definition.ts';

/** Sets the time of the taints of a slice that have none. */
export function timeSliceTaints(slice: ApiObject, nowMs: number): void {
  const spec = objectIn(slice, 'spec');
  const devices = objectsIn(spec, 'devices');
  if (!devices.some((device) => objectsIn(device, 'taints').some(isUntimed))) return;
  const timed = devices.map((device) => {
    const taints = objectsIn(device, 'taints');
    return taints.some(isUntimed)
      ? Object.assign({}, device, { taints: taints.map((taint) => timedTaint(taint, nowMs)) })
      : device;
  });
  slice['spec'] = { ...spec, devices: timed };
}

/** Sets the time of the taint of a rule if it has none, or if only its effect has changed. */
export function timeRuleTaint(
  rule: ApiObject,
  previous: StoredObject | undefined,
  nowMs: number,
): void {
  const spec = objectIn(rule, 'spec');
  const taint = objectIn(spec, 'taint');
  if (!taint) return;
  const before = objectIn(objectIn(previous, 'spec'), 'taint');
  const isOld =
    before !== undefined &&
    textIn(before, 'effect') !== textIn(taint, 'effect') &&
    before['timeAdded'] === taint['timeAdded'];
  const { timeAdded: _, ...untimed } = taint;
  rule['spec'] = { ...spec, taint: timedTaint(isOld ? untimed : taint, nowMs) };
}

function isUntimed(taint: JsonObject): boolean {
  return taint['timeAdded'] === undefined;
}

function timedTaint(taint: JsonObject, nowMs: number): JsonObject {
  return isUntimed(taint) ? { ...taint, timeAdded: timestamp(nowMs) } : taint;
}
