/** A core/v1 Event with all fields that a recorder sets. `EventApi` converts it to another API. */
export interface RecordedEvent {
  readonly apiVersion: 'v1';
  readonly kind: 'Event';
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly annotations?: Record<string, string>;
  };
  readonly involvedObject: InvolvedObject;
  readonly type: 'Normal' | 'Warning';
  /** CamelCase and stable, because programs match it. */
  readonly reason: string;
  /** Human-readable. */
  readonly message: string;
  /** What the component did or failed to do: `Scaling`. */
  readonly action?: string;
  /** Another object that the event concerns. */
  readonly related?: InvolvedObject;
  /** Number of occurrences from `firstTimestamp` to `lastTimestamp`. */
  readonly count: number;
  /** RFC 3339: whole seconds, or microseconds for events.k8s.io. */
  readonly firstTimestamp: string;
  readonly lastTimestamp: string;
  readonly source: EventSource;
  readonly reportingComponent: string;
  readonly reportingInstance: string;
}

/** Annotation that identifies the last occurrence of an event. */
export const OCCURRENCE = 'crd-controller.example.io/occurrence';

/** The object that an event refers to. */
export interface InvolvedObject {
  readonly apiVersion: string;
  readonly kind: string;
  /** Absent for cluster-scoped kinds. */
  readonly namespace?: string;
  readonly name: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  /** Part of the object: `spec.containers{web}`. */
  readonly fieldPath?: string;
}

/** The component that emits the event. */
export interface EventSource {
  readonly component: string;
  readonly host?: string;
}

/** Returns a key that is equal for events of one source about one object, identified by uid. */
export function objectIdentity({ source, involvedObject }: RecordedEvent): string {
  const { apiVersion, kind, namespace, name, uid } = involvedObject;
  return joinKey([source.component, source.host, kind, namespace, name, uid, apiVersion]);
}

/** Joins strings to a key without collisions. */
export function joinKey(parts: readonly (string | undefined)[]): string {
  return JSON.stringify(parts);
}
