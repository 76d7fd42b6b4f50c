/** A core/v1 Event as we send it: the fields that a recorder fills in, all of them there. */
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
  /** CamelCase, stable: programs match it. */
  readonly reason: string;
  /** For people. */
  readonly message: string;
  /** How often it happened from `firstTimestamp` to `lastTimestamp`. */
  readonly count: number;
  /** RFC 3339, whole seconds. */
  readonly firstTimestamp: string;
  readonly lastTimestamp: string;
  readonly source: EventSource;
  readonly reportingComponent: string;
  readonly reportingInstance: string;
}

/** What an event is about. */
export interface InvolvedObject {
  readonly apiVersion: string;
  readonly kind: string;
  /** Absent for cluster-scoped kinds. */
  readonly namespace?: string;
  readonly name: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  /** A part of the object: `spec.containers{web}`. */
  readonly fieldPath?: string;
}

/** Who says it. */
export interface EventSource {
  readonly component: string;
  readonly host?: string;
}

/** Equal for events of one source about one object: this very one, by uid, whatever its state. */
export function objectIdentity({ source, involvedObject }: RecordedEvent): string {
  const { apiVersion, kind, namespace, name, uid } = involvedObject;
  return joinKey([source.component, source.host, kind, namespace, name, uid, apiVersion]);
}

/** A text for a tuple, such that different tuples have different ones whatever is in them. */
export function joinKey(parts: readonly (string | undefined)[]): string {
  return JSON.stringify(parts);
}
