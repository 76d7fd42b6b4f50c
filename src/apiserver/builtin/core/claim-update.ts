import { equalJson } from '../../../api/equal.ts';
import { compareQuantities, quantityNanos } from '../../../api/quantity.ts';
import { escapeHtml, withSortedKeys } from '../../../util/go-format.ts';
import type { JsonObject } from '../../../util/json-value.ts';
import { isSet, objectIn, textIn } from '../../../util/json-value.ts';
import { unifiedDiff } from '../../../util/unified-diff.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';
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
  if (specText(after, inNanos) !== specText(was, inNanos)) {
    const diff = unifiedDiff(specText(was), specText(after));
    next.forbidden('spec', `${IMMUTABLE}\n${diff}`);
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

const inNanos = (amount: unknown) => String(quantityNanos(String(amount)));

/**
 * Returns a spec as Go encodes its internal type, which upstream compares in a message.
 *
 * @param toAmount form of the amounts of resources
 */
function specText(
  spec: Fields,
  toAmount: (amount: unknown) => unknown = (amount) => amount,
): string {
  const resources = objectIn(spec, 'resources');
  const amounts = (field: string) => {
    const list = objectIn(resources, field) ?? {};
    const names = Object.keys(list).sort();
    if (names.length === 0) return null;
    return Object.fromEntries(names.map((name) => [name, toAmount(list[name])]));
  };
  const modes = spec['accessModes'];
  const text = JSON.stringify(
    {
      AccessModes: modes ?? null,
      Selector: selectorOf(objectIn(spec, 'selector')),
      Resources: { Limits: amounts('limits'), Requests: amounts('requests') },
      VolumeName: textIn(spec, 'volumeName'),
      StorageClassName: spec['storageClassName'] ?? null,
      VolumeMode: spec['volumeMode'] ?? null,
      DataSource: sourceOf(objectIn(spec, 'dataSource')),
      DataSourceRef: referenceOf(objectIn(spec, 'dataSourceRef')),
      VolumeAttributesClassName: spec['volumeAttributesClassName'] ?? null,
    },
    undefined,
    1,
  );
  return escapeHtml(text);
}

/** A selector has the names of its fields in JSON, which Go writes in the order of its type. */
function selectorOf(selector: JsonObject | undefined): unknown {
  if (!selector) return null;
  const { matchLabels, matchExpressions } = selector;
  const expressions = Array.isArray(matchExpressions) ? (matchExpressions as JsonObject[]) : [];
  return {
    ...(matchLabels !== undefined && { matchLabels: withSortedKeys(matchLabels) }),
    ...(expressions.length > 0 && {
      matchExpressions: expressions.map(({ key, operator, values }) => ({ key, operator, values })),
    }),
  };
}

function sourceOf(source: JsonObject | undefined): JsonObject | null {
  if (!source) return null;
  const { apiGroup = null, kind, name } = source;
  return { APIGroup: apiGroup, Kind: kind, Name: name };
}

function referenceOf(reference: JsonObject | undefined): JsonObject | null {
  const source = sourceOf(reference);
  return source && { ...source, Namespace: reference?.['namespace'] ?? null };
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
