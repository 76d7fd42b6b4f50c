import { Verbatim } from '../../../api/field-error.ts';
import { objectIn, textIn } from '../../../util/json-value.ts';
import { equalJson } from '../../../api/equal.ts';
import { namePrefixProblems } from '../../../api/object-names.ts';
import { CheckedObject } from '../../objects/checked-object.ts';
import { validateFinalizers, validateKubeFinalizers } from '../../objects/finalizers.ts';
import { checkAttached } from '../../objects/object-metadata.ts';
import { fieldsAt } from '../../objects/field-path.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';
import { shallowCopy } from '../../objects/resource-definition.ts';
import { EVENT_COLUMNS, REFERENCE_FIELDS, validateEvent } from '../core/event.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { structText } from '../shared/internal-structs.ts';

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
export const EVENTS_EVENT: BuiltinKind = {
  resource: 'events.k8s.io/events',
  createOnUpdate: true,
  ownsNothing: true,
  selectableFields: {
    ...Object.fromEntries(
      REFERENCE_FIELDS.map((field) => [
        `regarding.${field}`,
        (event) => textIn(objectIn(event, 'involvedObject'), field),
      ]),
    ),
    ...fieldsAt('reason', 'type'),
    reportingController: (event) => textIn(event, 'reportingComponent'),
  },
  validate: (event, previous) => {
    const stored = toStored(event.value);
    validateEvent(new CheckedObject(stored, '', event.errors), 'reportingController');
    if (!previous) {
      const metadata = event.in('metadata');
      const { generateName } = stored.metadata;
      if (generateName) {
        const format = 'dns1123Subdomain';
        metadata.problems('generateName', namePrefixProblems(generateName, format));
      }
      metadata.requireFormat('name', 'dns1123Subdomain');
    }
    checkAttached(event.in('metadata'), stored.metadata);
    validateFinalizers(event.in('metadata'), stored.metadata.finalizers);
    const own = { group: 'events.k8s.io', kind: 'Event' };
    for (const error of validateKubeFinalizers(stored.metadata, own)) event.errors.push(error);
    if (!equalJson(event.value['series'], previous?.['series'])) validateSeries(event);
    if (previous) requireImmutable(event, previous);
    else validateNew(event);
  },
  storedAs: { kind: 'v1/events', toStored, fromStored },
  columns: EVENT_COLUMNS,
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
    const field = own === 'reportingController' ? own : stored;
    if (equalJson(value, previous[own])) continue;
    event.invalid(field, 'field is immutable', shownValue(own, value));
  }
}

/** Messages whose internal types upstream shows for these fields. */
const STRUCTS: ReadonlyMap<string, string> = new Map([
  ['regarding', 'core.v1.ObjectReference'],
  ['related', 'core.v1.ObjectReference'],
  ['deprecatedSource', 'core.v1.EventSource'],
]);

/** Returns a value as upstream shows it. */
function shownValue(field: string, value: unknown): unknown {
  // The only one that is a pointer.
  if (field === 'related' && !value) return null;
  const struct = STRUCTS.get(field);
  if (struct !== undefined) return new Verbatim(structText(struct, value));
  return value ?? (field === 'deprecatedCount' ? 0 : /time/i.test(field) ? null : '');
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
  const converted = shallowCopy(renamed(event, 'events.k8s.io/v1', back));
  // Go always writes the count in this kind only, and these texts in the stored kind only.
  const series = objectIn(event, 'series');
  for (const field of ['reportingController', 'reportingInstance']) {
    if (converted[field] === '') delete converted[field];
  }
  if (series) converted['series'] = { count: 0, ...series };
  return converted;
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
