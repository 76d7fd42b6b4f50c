import { objectIn, textIn } from '../../util/json-value.ts';
import { utf8Length } from '../../util/bytes.ts';
import { equalJson } from '../../api/equal.ts';
import { fieldsAt } from '../objects/field-path.ts';
import { qualifiedNameProblems } from '../../api/object-names.ts';
import type { StoredObject } from '../objects/resource-definition.ts';
import { checked, CheckedObject } from '../objects/checked-object.ts';
import type { KindTraits } from './definition.ts';

/** Fields of the reference to the object of an event. */
const REFERENCE = 'kind namespace name uid apiVersion resourceVersion fieldPath'.split(' ');

export const EVENT: KindTraits = {
  createOnUpdate: true,
  nameFormat: 'pathSegment',
  selectableFields: {
    ...fieldsAt(...REFERENCE.map((field) => `involvedObject.${field}`)),
    ...fieldsAt('reason', 'reportingComponent', 'type'),
    source: (event) =>
      textIn(objectIn(event, 'source'), 'component') || textIn(event, 'reportingComponent'),
  },
  hooks: {
    validate: checked((event) => validateAny(event, 'reportingComponent')),
  },
};

/** Fields of events.k8s.io and of the stored event with other names. */
const RENAMED = [
  ['note', 'message'],
  ['regarding', 'involvedObject'],
  ['reportingController', 'reportingComponent'],
  ['deprecatedSource', 'source'],
  ['deprecatedFirstTimestamp', 'firstTimestamp'],
  ['deprecatedLastTimestamp', 'lastTimestamp'],
  ['deprecatedCount', 'count'],
] as const;

/** Events of events.k8s.io are another representation of the events of the core group. */
export const EVENTS_EVENT: KindTraits = {
  createOnUpdate: true,
  selectableFields: {
    ...Object.fromEntries(
      REFERENCE.map((field) => [
        `regarding.${field}`,
        (event) => textIn(objectIn(event, 'involvedObject'), field),
      ]),
    ),
    ...fieldsAt('reason', 'type'),
    reportingController: (event) => textIn(event, 'reportingComponent'),
  },
  hooks: {
    validate: checked((event, previous) => {
      const stored = toStored(event.value);
      validateAny(new CheckedObject(stored, '', event.errors), 'reportingController');
      if (!previous) {
        const metadata = event.in('metadata');
        metadata.requireFormat('name', 'dns1123Subdomain');
      }
      if (!equalJson(event.value['series'], previous?.['series'])) validateSeries(event);
      if (previous) requireImmutable(event, previous);
      else validateNew(event);
    }),
  },
  storedAs: { kind: 'v1/events', toStored, fromStored },
};

const UNSET = RENAMED.filter(([own]) => own.startsWith('deprecated'));

function validateNew(event: CheckedObject): void {
  if (!event.has('eventTime')) event.required('eventTime');
  const type = event.text('type');
  if (type !== 'Normal' && type !== 'Warning') {
    event.invalid('type', `has invalid value: ${type}`, '');
  }
  for (const [own, stored] of UNSET) {
    // The default of the source is an empty one.
    const isUnset = !event.has(own) || equalJson(event.value[own], {});
    if (!isUnset) event.invalid(stored, 'needs to be unset', '');
  }
}

const IMMUTABLE = ['reason', 'type', 'eventTime', 'action', 'related', 'reportingInstance'];

/** Only the series and the metadata of an event can change. */
function requireImmutable(event: CheckedObject, previous: StoredObject): void {
  for (const [own, stored] of [...RENAMED, ...IMMUTABLE.map((field) => [field, field] as const)]) {
    const value = event.value[own];
    if (!equalJson(value, previous[own])) event.invalid(stored, 'field is immutable', value ?? '');
  }
}

function validateSeries(event: CheckedObject): void {
  const series = event.get('series');
  if (!series) return;
  if ((series.number('count') ?? 0) < 2) series.invalid('count', 'should be at least 2', '');
  if (!series.has('lastObservedTime')) series.required('lastObservedTime');
}

function toStored<T extends StoredObject>(event: T): T {
  return renamed(event, 'v1', RENAMED);
}

function fromStored(event: StoredObject): StoredObject {
  const back = RENAMED.map(([own, stored]) => [stored, own] as const);
  return renamed(event, 'events.k8s.io/v1', back);
}

function renamed<T extends StoredObject>(
  event: T,
  apiVersion: string,
  names: readonly (readonly [from: string, to: string])[],
): T {
  const to = new Map(names);
  const fields = Object.entries(event).map(([name, value]) => [to.get(name) ?? name, value]);
  return { ...(Object.fromEntries(fields) as T), apiVersion };
}

/**
 * Validates an event of any version. One with `eventTime` follows the newer rules; one without, those of before.
 *
 * @param controller name of the field of the controller in the version
 */
function validateAny(event: CheckedObject<StoredObject>, controller: string): void {
  const isNew = event.has('eventTime');
  validateNamespace(event, isNew);
  if (isNew) validateReport(event, controller);
}

/** An event lives beside its object; where that has no namespace, in a well-known one. */
function validateNamespace(event: CheckedObject<StoredObject>, isNew: boolean): void {
  const own = event.value.metadata.namespace ?? '';
  const involved = event.in('involvedObject');
  const theirs = involved.text('namespace');
  const fits =
    theirs === '' ? own === 'default' || (isNew && own === 'kube-system') : isNew || theirs === own;
  if (!fits) involved.invalid('namespace', 'does not match event.namespace', theirs);
}

const REQUIRED = ['reportingComponent', 'reportingInstance', 'action', 'reason'] as const;
const MAX_BYTES = { reportingInstance: 128, action: 128, reason: 128, message: 1024 } as const;

function validateReport(event: CheckedObject, controller: string): void {
  for (const field of REQUIRED) {
    const value = event.text(field);
    const isController = field === 'reportingComponent';
    if (value === '') event.required(isController ? controller : field);
    if (isController) event.problems(controller, qualifiedNameProblems(value), value);
  }
  for (const [field, limit] of Object.entries(MAX_BYTES)) {
    if (utf8Length(event.text(field)) <= limit) continue;
    event.invalid(field, `can have at most ${limit} characters`, '');
  }
}
