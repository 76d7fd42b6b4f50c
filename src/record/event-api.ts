import { EVENTS, EVENTS_V1_EVENTS } from '../api/builtin.ts';
import type { Event, EventsV1Event } from '../api/builtin.ts';
import { microTimestamp, timestamp } from '../api/conditions.ts';
import type { Draft, KubernetesObject, StrategicMergePatch } from '../api/object.ts';
import type { Resource } from '../api/resource.ts';
import { truncateBytes } from '../util/truncate.ts';
import { OCCURRENCE } from './recorded-event.ts';
import type { RecordedEvent } from './recorded-event.ts';

/** API in which events are written. The server stores and serves the same objects in both. */
export type EventApiVersion = 'v1' | 'events.k8s.io/v1';

/** How one API represents events. */
export interface EventApi<T extends KubernetesObject> {
  readonly resource: Resource<T>;
  /** Formats a time in milliseconds. */
  readonly timeOf: (ms: number) => string;
  /** Whether repetitions are a series, most of which are only counted. */
  readonly hasSeries: boolean;
  /** Returns the event to create. */
  draft(event: RecordedEvent): Draft<T>;
  /**
   * Returns the patch of a repeated event with its total count.
   *
   * @param resourceVersion of the event on the server; the patch fails if it has changed
   */
  repetition(
    event: RecordedEvent,
    count: number,
    resourceVersion: string | undefined,
  ): StrategicMergePatch<T>;
  /** A patch without changes. */
  readonly emptyPatch: StrategicMergePatch<T>;
  /** Returns the number of occurrences of an event on the server. */
  countOf(stored: T): number;
  /** Returns the resourceVersion of the object at the last occurrence that the server knows. */
  subjectVersionOf(stored: T): string | undefined;
}

/** Events of the core group, with a count. */
export const CORE_EVENTS: EventApi<Event> = {
  resource: EVENTS,
  timeOf: timestamp,
  hasSeries: false,
  draft: (event) => event,
  repetition: (event, count, resourceVersion) => {
    const { lastTimestamp, message, involvedObject } = event;
    const { resourceVersion: version } = involvedObject;
    return {
      ...metadataOf(event, resourceVersion),
      ...(version && { involvedObject: { resourceVersion: version } }),
      count,
      lastTimestamp,
      message,
    };
  },
  emptyPatch: {},
  countOf: ({ count = 1 }) => count,
  subjectVersionOf: ({ involvedObject }) => involvedObject.resourceVersion,
};

/** Returns the metadata of a repetition, with its occurrence. */
function metadataOf({ metadata }: RecordedEvent, resourceVersion: string | undefined) {
  const occurrence = metadata.annotations?.[OCCURRENCE];
  const annotations = occurrence === undefined ? undefined : { [OCCURRENCE]: occurrence };
  if (!resourceVersion && !annotations) return {};
  return {
    metadata: { ...(resourceVersion && { resourceVersion }), ...(annotations && { annotations }) },
  };
}

/** Limits of the server, in bytes, and for a name in characters. */
const MAX_NOTE_BYTES = 1024;
const MAX_INSTANCE_BYTES = 128;
const MAX_NAME_LENGTH = 63;

/** Value of a required field that is empty. */
const UNKNOWN = 'Unknown';

/**
 * Events of events.k8s.io, whose repetitions are a series. The server rejects changes of all fields but the series and
 * the metadata.
 */
export const SERIES_EVENTS: EventApi<EventsV1Event> = {
  resource: EVENTS_V1_EVENTS,
  timeOf: microTimestamp,
  hasSeries: true,
  draft: (event) => {
    const { metadata, type, reason, involvedObject, related, firstTimestamp, source } = event;
    const { component, host } = source;
    const controller = qualifiedName(component);
    return {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata,
      eventTime: firstTimestamp,
      type,
      reason: reason || UNKNOWN,
      action: event.action || reason || UNKNOWN,
      note: truncateBytes(event.message, MAX_NOTE_BYTES),
      regarding: involvedObject,
      ...(related && { related }),
      reportingController: controller,
      // As client-go: unique among the replicas.
      reportingInstance: truncateBytes(
        host ? `${component}-${host}` : component || controller,
        MAX_INSTANCE_BYTES,
      ),
      ...series(event, event.count),
    };
  },
  repetition: (event, count, resourceVersion) => ({
    ...metadataOf(event, resourceVersion),
    ...series(event, count),
  }),
  emptyPatch: {},
  countOf: ({ series, deprecatedCount = 1 }) => series?.count ?? deprecatedCount,
  subjectVersionOf: ({ regarding }) => regarding?.resourceVersion,
};

function series({ lastTimestamp }: RecordedEvent, count: number): Pick<EventsV1Event, 'series'> {
  return count < 2 ? {} : { series: { count, lastObservedTime: lastTimestamp } };
}

const SUBDOMAIN = /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const NAME = /^[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?$/;

/**
 * Returns `component` if it is a qualified name: a name, optionally with a DNS subdomain and a slash before it. Otherwise
 * returns a name with hyphens for other characters.
 */
function qualifiedName(component: string): string {
  const slash = component.indexOf('/');
  const isPrefixed = slash < 0 || SUBDOMAIN.test(component.slice(0, slash));
  if (isPrefixed && NAME.test(component.slice(slash + 1))) return component;
  const name = component.replaceAll(/[^-\w.]+/g, '-').replace(/^[-_.]+/, '');
  return name.slice(0, MAX_NAME_LENGTH).replace(/[-_.]+$/, '') || UNKNOWN;
}
