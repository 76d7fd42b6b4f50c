import { timestamp } from '../api/conditions.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { eventName } from './event-name.ts';
import type { EventSource, InvolvedObject, RecordedEvent } from './recorded-event.ts';

/** As much of an object as an event about it needs; whole objects will do. */
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

export interface EventOptions {
  /** Data for programs, beside the message for people. */
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  /** Which part of the object it is about: `spec.containers{web}`. */
  readonly fieldPath?: string | undefined;
}

/**
 * Tells the users of an object what happened to it: `kubectl describe` shows it. Recording never
 * throws and never waits; equal events become one with a count.
 */
export interface EventRecorder {
  /**
   * @param reason CamelCase and stable; programs match it
   * @param message for people; cut off beyond 1024 characters
   */
  normal(subject: EventSubject, reason: string, message: string, options?: EventOptions): Recorded;

  /** As `normal`, for what someone should look at. */
  warning(subject: EventSubject, reason: string, message: string, options?: EventOptions): Recorded;
}

/** An event that was recorded. Most callers need nothing of it. */
export interface Recorded {
  /**
   * Resolves, and never rejects, as soon as waiting is of no more use: the server was sent the event
   * once, successfully or not, or it will be later than soon, or not at all; and when `signal`
   * aborts. It is for code whose next write makes the event unrepeatable after a crash. The
   * broadcaster must be running.
   */
  attempted(signal?: AbortSignal): Promise<void>;
}

/** Where recorders put their events. */
export type EventSink = (event: RecordedEvent) => Recorded;

export interface EventRecorderDeps {
  readonly source: EventSource;
  readonly sink: EventSink;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What became of an event that is not sent. */
export const NOT_SENT: Recorded = { attempted: () => Promise.resolve() };

/** Events of cluster-scoped objects live here. */
const DEFAULT_NAMESPACE = 'default';

/** What events.k8s.io allows; it keeps a hostile object from filling etcd with its words. */
const LONGEST_MESSAGE = 1024;

/** A recorder of events of `source`. */
export function eventRecorder(deps: EventRecorderDeps): EventRecorder {
  const record =
    (type: RecordedEvent['type']): EventRecorder['normal'] =>
    (subject, reason, message, options = {}) => {
      try {
        return deps.sink(eventOf(deps, subject, type, reason, message, options));
      } catch (error) {
        // An event is a courtesy: whatever is wrong with it must not stop the sync it tells of.
        deps.log.error(error, 'Could not record event', { type, reason, message });
        return NOT_SENT;
      }
    };
  return { normal: record('Normal'), warning: record('Warning') };
}

function eventOf(
  { source, clock }: EventRecorderDeps,
  subject: EventSubject,
  type: RecordedEvent['type'],
  reason: string,
  message: string,
  { annotations, fieldPath }: EventOptions,
): RecordedEvent {
  const involvedObject = referenceTo(subject, fieldPath);
  const now = timestamp(clock.now());
  const said = {
    apiVersion: 'v1',
    kind: 'Event',
    involvedObject,
    type,
    reason,
    message: cutOff(message),
    count: 1,
    firstTimestamp: now,
    lastTimestamp: now,
    source,
    reportingComponent: source.component,
    reportingInstance: source.host ?? '',
  } as const;
  return {
    ...said,
    metadata: {
      name: eventName(said),
      namespace: involvedObject.namespace ?? DEFAULT_NAMESPACE,
      ...(annotations && { annotations: { ...annotations } }),
    },
  };
}

/** @throws {TypeError} if it is nothing one can refer to */
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

function cutOff(message: string): string {
  if (message.length <= LONGEST_MESSAGE) return message;
  // Half a surrogate pair at the end would not be a character.
  return `${message.slice(0, LONGEST_MESSAGE - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
}
