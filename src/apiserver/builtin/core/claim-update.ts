import { equalJson } from '../../../api/equal.ts';
import { compareQuantities, quantityNanos } from '../../../api/quantity.ts';
import type { JsonObject } from '../../../util/json-value.ts';
import { isSet, objectIn, textIn } from '../../../util/json-value.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';
import { structDiff, structText } from '../shared/internal-structs.ts';
import { CLASS_ANNOTATION } from './volume-columns.ts';

type Fields = Readonly<JsonObject>;

/** A claim may be bound once; a bound claim may grow. */
export function validateClaimUpdate(next: CheckedObject, previous: StoredObject): void {
  const annotation = (object: StoredObject | CheckedObject['value']) =>
    objectIn(objectIn(object, 'metadata'), 'annotations')?.[CLASS_ANNOTATION];
  const [is, former] = [annotation(next.value), annotation(previous)];
  const spec = next.in('spec');
  const before = objectIn(previous, 'spec') ?? {};
  const [after, was] = [{ ...spec.value }, { ...before }];
  if (textIn(before, 'volumeName') === '') was['volumeName'] = after['volumeName'];
  // A class may be set later, and the field may replace the annotation.
  const isNamed = isSet(after, 'storageClassName') && !isSet(before, 'storageClassName');
  const isReplaced = isNamed && former !== undefined && after['storageClassName'] === former;
  if (isNamed && (former === undefined || isReplaced)) delete after['storageClassName'];
  if (!(isReplaced && is === undefined) && is !== former) {
    // The path of upstream.
    const field = `metadata.annotations.${CLASS_ANNOTATION}`;
    next.invalid(field, 'field is immutable', is ?? '');
  }
  const size = (of: Fields) => textIn(objectIn(objectIn(of, 'resources'), 'requests'), 'storage');
  if (next.in('status').text('phase') === 'Bound') {
    const resources = objectIn(after, 'resources');
    const requests = objectIn(resources, 'requests');
    if (requests) {
      after['resources'] = { ...resources, requests: { ...requests, storage: size(before) } };
    }
    after['volumeAttributesClassName'] = before['volumeAttributesClassName'];
  }
  if (comparable(after) !== comparable(was)) {
    next.forbidden('spec', `${IMMUTABLE}\n${structDiff(SPEC, was, after)}`);
  }
  if (!equalJson(spec.value['volumeMode'], before['volumeMode'])) {
    next.invalid('volumeMode', 'field is immutable', spec.value['volumeMode'] ?? null);
  }
  const capacity = textIn(objectIn(objectIn(previous, 'status'), 'capacity'), 'storage') || '0';
  const wanted = size(spec.value) || '0';
  const isLess = compareQuantities(wanted, size(before) || '0') < 0;
  if (isLess && compareQuantities(wanted, capacity) <= 0) {
    spec.forbidden('resources.requests.storage', 'field can not be less than status.capacity');
  }
  validateAttributesClass(spec, previous);
}

const IMMUTABLE =
  'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims';

const SPEC = 'core.v1.PersistentVolumeClaimSpec';

/** Returns the text of a spec in which equal amounts are equal texts. */
function comparable(spec: Fields): string {
  const resources = objectIn(spec, 'resources');
  const amounts = (field: string) =>
    Object.fromEntries(
      Object.entries(objectIn(resources, field) ?? {}).map(([name, amount]) => [
        name,
        String(quantityNanos(String(amount))),
      ]),
    );
  const ofSpec = { limits: amounts('limits'), requests: amounts('requests') };
  return structText(SPEC, { ...spec, resources: ofSpec });
}

/** A volume has a class of attributes as soon as one is applied to it. */
function validateAttributesClass(spec: CheckedObject, previous: StoredObject): void {
  if (!isSet(objectIn(previous, 'status'), 'currentVolumeAttributesClassName')) return;
  const field = 'volumeAttributesClassName';
  if (equalJson(spec.value[field], objectIn(previous, 'spec')?.[field])) return;
  const change = spec.has(field) ? 'empty string' : 'nil';
  if (spec.text(field) !== '') return;
  spec.forbidden(
    field,
    `update to ${change} is forbidden when status.currentVolumeAttributesClassName is not nil`,
  );
}
