import { timestamp } from '../api/conditions.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { truncate, truncateBytes } from '../util/truncate.ts';
import { eventName } from './event-name.ts';
import { OCCURRENCE } from './recorded-event.ts';
import type { EventSource, InvolvedObject, RecordedEvent } from './recorded-event.ts';

/** The fields of an object that an event refers to; every object has them. */
export interface EventSubject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string | undefined;
    readonly uid?: string | undefined;
    readonly resourceVersion?: string | undefined;
  };
}

/** Options of a recorded event. */
export interface EventOptions {
  /** Machine-readable data. */
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  /** Part of the object that the event refers to: `spec.containers{web}`. */
  readonly fieldPath?: string | undefined;
  /**
   * What the component did or failed to do, in CamelCase: `Scaling`.
   * @default none; in events.k8s.io the reason
   */
  readonly action?: string | undefined;
  /**
   * Another object that the event concerns, such as the created one.
   * @default none
   */
  readonly related?: EventSubject | undefined;
  /**
   * Identifies the occurrence, so that another process that records it again, after this one has ended, does not count
   * it twice.
   * @default the resourceVersion of the object
   */
  readonly occurrence?: string | undefined;
}

/**
 * Records Events about objects, which `kubectl describe` shows. Recording does not throw and does not block.
 * Equal events become one event with a count.
 */
export interface EventRecorder {
  /**
   * Records an event of type Normal.
   *
   * @param reason CamelCase and stable, because programs match it; truncated to 128 bytes, as `action` is
   * @param message human-readable; truncated to 1,024 characters
   */
  normal(
    subject: EventSubject,
    reason: string,
    message: string,
    options?: EventOptions,
  ): RecordResult;

  /** Records an event of type Warning. */
  warning(
    subject: EventSubject,
    reason: string,
    message: string,
    options?: EventOptions,
  ): RecordResult;
}

/** A recorded event. Most callers ignore it. */
export interface RecordResult {
  /**
   * Resolves after the first attempt to write the event, or when no attempt will be made soon, or when `signal`
   * aborts. Never rejects. Await it before a write after which the event would not be repeated if the
   * process crashed. The broadcaster must be running.
   */
  attempted(signal?: AbortSignal): Promise<void>;
}

/** Receives the events of recorders. */
export type EventSink = (event: RecordedEvent) => RecordResult;

/** Dependencies of `eventRecorder`. */
export interface EventRecorderDeps {
  readonly source: EventSource;
  readonly sink: EventSink;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * Formats a time in milliseconds.
   * @default whole seconds
   */
  readonly timeOf?: ((ms: number) => string) | undefined;
}

/** Result for an event that is not sent. */
export const NOT_SENT: RecordResult = { attempted: () => Promise.resolve() };

/** Namespace of events about cluster-scoped objects. */
const DEFAULT_NAMESPACE = 'default';

/** The limits of events.k8s.io. They also limit how much a hostile object can write to etcd. */
const LONGEST_MESSAGE = 1024;
const LONGEST_FIELD_BYTES = 128;

/** Returns a recorder for `source`. */
export function eventRecorder(deps: EventRecorderDeps): EventRecorder {
  const record =
    (type: RecordedEvent['type']): EventRecorder['normal'] =>
    (subject, reason, message, options = {}) => {
      try {
        return deps.sink(eventOf(deps, subject, type, reason, message, options));
      } catch (error) {
        // Events are best effort: an invalid event must not fail the sync.
        deps.log.error(error, 'Could not record event', { type, reason, message });
        return NOT_SENT;
      }
    };
  return { normal: record('Normal'), warning: record('Warning') };
}

function eventOf(
  { source, clock, timeOf = timestamp }: EventRecorderDeps,
  subject: EventSubject,
  type: RecordedEvent['type'],
  reason: string,
  message: string,
  options: EventOptions,
): RecordedEvent {
  const { annotations: given, fieldPath, action, related, occurrence } = options;
  const annotations = occurrence === undefined ? given : { ...given, [OCCURRENCE]: occurrence };
  const involvedObject = referenceTo(subject, fieldPath);
  const now = timeOf(clock.now());
  const content = {
    apiVersion: 'v1',
    kind: 'Event',
    involvedObject,
    type,
    reason: truncateBytes(reason, LONGEST_FIELD_BYTES),
    message: truncate(message, LONGEST_MESSAGE),
    ...(action && { action: truncateBytes(action, LONGEST_FIELD_BYTES) }),
    ...(related && { related: referenceTo(related, undefined) }),
    count: 1,
    firstTimestamp: now,
    lastTimestamp: now,
    source,
    reportingComponent: source.component,
    reportingInstance: source.host ?? '',
  } as const;
  return {
    ...content,
    metadata: {
      name: eventName(content),
      namespace: involvedObject.namespace ?? DEFAULT_NAMESPACE,
      ...(annotations && { annotations: wellFormed(annotations) }),
    },
  };
}

function wellFormed(annotations: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(annotations).map(([key, value]) => [key, value.toWellFormed()]),
  );
}

/** @throws {TypeError} if `subject` has no apiVersion, kind or name */
function referenceTo(subject: EventSubject, fieldPath: string | undefined): InvolvedObject {
  const { apiVersion, kind, metadata } = subject;
  const { name, namespace, uid, resourceVersion } = metadata;
  if (!apiVersion || !kind || !name) {
    throw new TypeError(`Not an object: apiVersion ${apiVersion}, kind ${kind}, name ${name}`);
  }
  return {
    apiVersion,
    kind,
    ...(namespace && { namespace }),
    name,
    ...(uid && { uid }),
    ...(resourceVersion && { resourceVersion }),
    ...(fieldPath && { fieldPath }),
  };
}
