import { utf8Length } from '../../../util/bytes.ts';
import { objectIn, textIn } from '../../../util/json-value.ts';
import type { Event as MutableEvent } from '../../../api/builtin.ts';
import { qualifiedNameProblems } from '../../../api/object-names.ts';
import type { DeepReadonly } from '../../../api/object.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { fieldsAt } from '../../objects/field-path.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';
import { WIDE, ageOf, column, field, wide } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

const eventColumn = column<MutableEvent>;

const wideEventColumn = wide<MutableEvent>;

export const EVENT_COLUMNS = [
  eventColumn('Last Seen', 'Time since the last occurrence.', lastSeen),
  field('Type', 'type'),
  field('Reason', 'reason'),
  eventColumn('Object', 'Kind and name of the involved object.', involvedObject),
  field('Subobject', 'involvedObject.fieldPath', '', WIDE),
  wideEventColumn('Source', 'Component that reported the event.', eventSource),
  eventColumn('Message', 'Description of the event.', ({ message }) => (message ?? '').trim()),
  wideEventColumn('First Seen', 'Time since the first occurrence.', firstSeen),
  wideEventColumn('Count', 'Number of occurrences.', ({ series, count }) =>
    series ? (series.count ?? 0) : count || 1,
  ),
  wideEventColumn('Name', 'Name of the event.', ({ metadata }) => metadata.name, {
    format: 'name',
  }),
];

/** Fields of the reference to the object of an event. */
export const REFERENCE_FIELDS =
  'kind namespace name uid apiVersion resourceVersion fieldPath'.split(' ');

export const EVENT: BuiltinKind = {
  resource: 'events',
  createOnUpdate: true,
  ownsNothing: true,
  nameFormat: 'pathSegment',
  selectableFields: {
    ...fieldsAt(...REFERENCE_FIELDS.map((field) => `involvedObject.${field}`)),
    ...fieldsAt('reason', 'reportingComponent', 'type'),
    source: (event) =>
      textIn(objectIn(event, 'source'), 'component') || textIn(event, 'reportingComponent'),
  },
  validate: (event) => validateEvent(event, 'reportingComponent'),
  columns: EVENT_COLUMNS,
};

/**
 * Validates an event of any version. One with `eventTime` follows the newer rules; one without, those of before.
 *
 * @param controller name of the field of the controller in the version
 */
export function validateEvent(event: CheckedObject<StoredObject>, controller: string): void {
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

type Event = DeepReadonly<MutableEvent>;

function firstSeen({ firstTimestamp, eventTime }: Event, nowMs: number): string {
  return ageOf(firstTimestamp || eventTime, nowMs);
}

function lastSeen(object: Event, nowMs: number): string {
  const { series, lastTimestamp } = object;
  if (series) return ageOf(series.lastObservedTime, nowMs);
  return lastTimestamp ? ageOf(lastTimestamp, nowMs) : firstSeen(object, nowMs);
}

function involvedObject({ involvedObject: { kind = '', name } }: Event): string {
  return name ? `${kind.toLowerCase()}/${name}` : kind.toLowerCase();
}

function eventSource({ source, reportingComponent, reportingInstance }: Event): string {
  const component = source?.component || reportingComponent || '';
  const instance = source?.host || reportingInstance || '';
  return instance ? `${component}, ${instance}` : component;
}
