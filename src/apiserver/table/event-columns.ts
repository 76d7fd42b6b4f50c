import type { Event as MutableEvent } from '../../api/builtin.ts';
import type { DeepReadonly } from '../../api/object.ts';
import type { TableColumn } from '../resource-definition.ts';
import { columnsFor } from './column.ts';
import { ageOf } from './human-duration.ts';

type Event = DeepReadonly<MutableEvent>;

const { column, wide } = columnsFor<MutableEvent>();

export const EVENT_COLUMNS: readonly TableColumn[] = [
  column('Last Seen', 'Time since it happened last.', lastSeen),
  column('Type', 'Normal or Warning.', ({ type = '' }) => type),
  column('Reason', 'Why it happened, in a word.', ({ reason = '' }) => reason),
  column('Object', 'Kind and name of what it happened to.', involvedObject),
  wide(
    'Subobject',
    'Part of the object that it is about.',
    (event) => event.involvedObject.fieldPath ?? '',
  ),
  wide('Source', 'Who reported it.', source),
  column('Message', 'What happened.', ({ message }) => (message ?? '').trim()),
  wide('First Seen', 'Time since it happened first.', firstSeen),
  wide('Count', 'How often it happened.', ({ series, count }) =>
    series ? (series.count ?? 0) : count || 1,
  ),
  wide('Name', 'Unique within the namespace.', ({ metadata }) => metadata.name, { format: 'name' }),
];

function firstSeen({ firstTimestamp, eventTime }: Event, nowMs: number): string {
  return ageOf(firstTimestamp || eventTime, nowMs);
}

function lastSeen(event: Event, nowMs: number): string {
  const { series, lastTimestamp } = event;
  if (series) return ageOf(series.lastObservedTime, nowMs);
  return lastTimestamp ? ageOf(lastTimestamp, nowMs) : firstSeen(event, nowMs);
}

function involvedObject({ involvedObject: { kind = '', name } }: Event): string {
  return name ? `${kind.toLowerCase()}/${name}` : kind.toLowerCase();
}

function source(event: Event): string {
  const component = event.source?.component || event.reportingComponent || '';
  const instance = event.source?.host || event.reportingInstance || '';
  return instance ? `${component}, ${instance}` : component;
}
