import { ApiError, isApiError } from '../api/api-error.ts';
import { setCondition } from '../api/conditions.ts';
import type { Condition } from '../api/conditions.ts';
import { equalJson } from '../api/equal.ts';
import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import type { ObjectName } from '../api/object-key.ts';
import { READINESS_CONDITIONS, withReadiness } from '../api/readiness.ts';
import type { Readiness } from '../api/readiness.ts';
import { groupResourceOf } from '../api/resource.ts';
import type { Resource } from '../api/resource.ts';
import type { Client } from '../client/client.ts';
import type { EventBroadcaster } from '../record/event-broadcaster.ts';
import type { EventRecorder, RecordResult } from '../record/event-recorder.ts';
import { isRecord } from '../util/values.ts';
import { systemClock } from '../util/clock.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { LruMap } from '../util/lru-map.ts';
import { TerminalError } from '../workqueue/outcome.ts';

/** The part of a sync's context that a `StatusWriter` uses. */
export interface StatusContext {
  readonly client: Pick<Client, 'get' | 'patch'>;
  readonly signal: AbortSignal;
  readonly log: Logger;
  /**
   * Returns what the sync has changed in a hot loop.
   * @default a ready object is reported as it is
   */
  readonly hotLoop?: (() => string | undefined) | undefined;
}

/** An object with a status. */
export type ObjectWithStatus = KubernetesObject & { status?: object };

/** An event about the object of a status. */
export interface StatusEvent {
  readonly type: 'Normal' | 'Warning';
  /** CamelCase and stable: `Synced`. */
  readonly reason: string;
  readonly message: string;
  /**
   * Whether the event is also recorded if the status is unchanged: for failures that are retried.
   * @default false
   */
  readonly repeats?: boolean | undefined;
}

/** An event with the type, reason and message of a readiness, unless it has its own. */
export type ReadinessEvent = Partial<StatusEvent>;

/**
 * The result of a sync: a complete status; or a readiness, if the status of the kind has the fields `conditions`
 * and `observedGeneration`.
 */
export type StatusReport<T extends ObjectWithStatus> =
  | CompleteReport<T>
  | (keyof StatusWithReadiness extends keyof NonNullable<T['status']> ? ReadinessReport<T> : never);

interface ReportOf<T extends ObjectWithStatus> {
  readonly object: DeepReadonly<T>;
  /**
   * Thrown after the status is written; a `TerminalError` only if the status changed.
   * @default undefined: the sync succeeded
   */
  readonly error?: Error | undefined;
}

interface CompleteReport<T extends ObjectWithStatus> extends ReportOf<T> {
  readonly readiness?: undefined;
  readonly status: NonNullable<T['status']>;
  /**
   * Recorded before the status is written, so that a crash in between repeats the event and does not
   * lose it. A repeated event of one change of the status counts once, in this process and in the next one.
   * @default none
   */
  readonly event?: StatusEvent | undefined;
}

/** The part of a report about an object whose status has the fields `conditions` and `observedGeneration`. */
export interface ReadinessReport<T extends ObjectWithStatus> extends ReportOf<T> {
  /** Sets the conditions, as `withReadiness`, and `observedGeneration`. */
  readonly readiness: Readiness;
  /**
   * Recorded before the status is written, if the status differs. Its type is by default Warning if the readiness is
   * stalled or there is an error, and Normal otherwise.
   * @default an event when the status or reason of Ready changes, if the writer has a recorder
   */
  readonly event?: ReadinessEvent | undefined;
  /**
   * Other fields to set; undefined removes a field. Fields that are not given are unchanged.
   * @default none
   */
  readonly status?: Readonly<OtherFields<T>> | undefined;
  /**
   * Conditions of the kind besides those of the readiness. Conditions that are not given are unchanged.
   * @default none
   */
  readonly conditions?: readonly OwnCondition[] | undefined;
}

/** The fields of a status that a readiness does not set. */
export type OtherFields<T extends ObjectWithStatus> = {
  [K in Exclude<keyof NonNullable<T['status']>, keyof StatusWithReadiness>]?:
    NonNullable<T['status']>[K] | undefined;
};

/** A condition without its generation and time, which the writer sets. */
export type OwnCondition = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>;

/** The fields of a status that a readiness sets. */
export interface StatusWithReadiness {
  readonly observedGeneration?: number;
  readonly conditions?: readonly Condition[];
}

/** Dependencies of {@link StatusWriter}: a `ControllerKit`. */
export interface StatusWriterDeps {
  /**
   * Returns the recorder of the events of `report`.
   * @default none: `report` records no event, and throws if it gets one
   */
  readonly events?: Pick<EventBroadcaster, 'recorder'> | undefined;
  /**
   * Provides the transition times of conditions.
   * @default systemClock
   */
  readonly clock?: Pick<Clock, 'now'> | undefined;
}

/** Number of failed reports that are remembered; the events of older ones may be recorded again. */
const MAX_FAILURES = 1000;

/**
 * Writes the status of the objects of one resource through the status subresource, only if it
 * differs. A write names the uid and resourceVersion that the status was computed from: it is a
 * `conflict` if the object has changed since.
 *
 * An older CustomResourceDefinition may prune fields of the status. The writer learns them from the
 * server's responses and does not compare them, or each sync would write them again. If a resource has
 * no status subresource, that is logged once and no status is written: an update of the whole object
 * would increment its generation.
 */
export class StatusWriter<T extends ObjectWithStatus> {
  readonly #resource: Resource<T>;
  readonly #fieldManager: string;
  readonly #recorder: EventRecorder | undefined;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #pruned = new Set<string>();
  /** The last event whose status was not written, by uid of the object: it is that of the next status with the same event. */
  readonly #unwritten = new LruMap<string, string>(MAX_FAILURES);
  #hasSubresource = true;

  /**
   * @param fieldManager name of the writer in managedFields, and component of its events
   * @param deps the kit of the controller
   */
  constructor(
    resource: Resource<T>,
    fieldManager: string,
    { events, clock = systemClock }: StatusWriterDeps = {},
  ) {
    this.#resource = resource;
    this.#fieldManager = fieldManager;
    this.#recorder = events?.recorder(fieldManager);
    this.#clock = clock;
  }

  /** False after the server answered that the resource has no status subresource. */
  get hasSubresource(): boolean {
    return this.#hasSubresource;
  }

  /** Returns whether `status` differs from the object's, in fields that the server keeps. */
  differs(object: DeepReadonly<T>, status: NonNullable<T['status']>): boolean {
    return !equalJson(this.#kept(object.status ?? {}), this.#kept(status));
  }

  /**
   * Records the event and writes the status, if the status differs from the object's. A ready object that the sync has just
   * changed in a hot loop is reported as reconciling, with the reason `HotLoop` and without an event: its state does not last.
   *
   * @returns whether the status differed
   * @throws {Error} `report.error`, after the write
   * @throws {ApiError} `conflict` if the object was changed, replaced or deleted meanwhile
   */
  async report(context: StatusContext, report: StatusReport<T>): Promise<boolean> {
    const { object, status, event, error } = this.#unsettled(
      this.#complete(report),
      context.hotLoop?.(),
    );
    const isNew = this.differs(object, status);
    const { uid } = object.metadata;
    const recorded = event && `${object.metadata.generation} ${event.reason} ${event.message}`;
    if (event && (event.repeats || (isNew && this.#unwritten.get(uid) !== recorded))) {
      await this.#record(object, event).attempted(context.signal);
    }
    try {
      if (isNew) await this.write(context, object, status);
      this.#unwritten.delete(uid);
    } catch (failure) {
      if (recorded !== undefined) this.#unwritten.set(uid, recorded);
      throw failure;
    }
    if (error && (isNew || !(error instanceof TerminalError))) throw error;
    return isNew;
  }

  #complete(report: CompleteReport<T> | ReadinessReport<T>): CompleteReport<T> {
    if (!report.readiness) return report;
    const { object, readiness, conditions: given = [], status, error, event } = report;
    const present: DeepReadonly<StatusWithReadiness> = object.status ?? {};
    const { generation: observedGeneration = 0 } = object.metadata;
    const now = this.#clock.now();
    const ofReadiness = given.find(({ type }) => READINESS_CONDITIONS.has(type));
    if (ofReadiness) {
      throw new TypeError(`conditions must not contain ${ofReadiness.type}: the readiness sets it`);
    }
    const own = given.reduce<readonly Condition[]>(
      (all, condition) => setCondition(all, { ...condition, observedGeneration }, now),
      present.conditions ?? [],
    );
    const conditions = withReadiness(own, readiness, observedGeneration, now);
    const { kind, reason, message } = readiness;
    const type = kind === 'stalled' || error ? 'Warning' : 'Normal';
    const isChange = this.#recorder && stateOf(present.conditions) !== stateOf(conditions);
    return {
      object,
      status: { ...present, ...status, observedGeneration, conditions },
      event: event || isChange ? { type, reason, message, ...event } : undefined,
      error,
    };
  }

  /** Returns the report of an object that is ready only until the next change of its hot loop. */
  #unsettled(report: CompleteReport<T>, hotLoop: string | undefined): CompleteReport<T> {
    if (hotLoop === undefined) return report;
    const { object, status } = report;
    const { conditions = [] }: DeepReadonly<StatusWithReadiness> = status;
    if (!conditions.some(({ type, status: is }) => type === 'Ready' && is === 'True'))
      return report;
    const { conditions: before = [] }: DeepReadonly<StatusWithReadiness> = object.status ?? {};
    const isOfReadiness = ({ type }: DeepReadonly<Condition>) => READINESS_CONDITIONS.has(type);
    // The transition times of the present conditions of the readiness stay.
    const kept = [
      ...before.filter(isOfReadiness),
      ...conditions.filter((each) => !isOfReadiness(each)),
    ];
    const readiness = { kind: 'reconciling', reason: 'HotLoop', message: hotLoop } as const;
    const { generation = 0 } = object.metadata;
    const unsettled = withReadiness(kept, readiness, generation, this.#clock.now());
    return { ...report, status: { ...status, conditions: unsettled }, event: undefined };
  }

  #record(object: DeepReadonly<T>, event: StatusEvent): RecordResult {
    const { type, reason, message, repeats } = event;
    if (!this.#recorder) {
      throw new TypeError(
        `StatusWriter has no recorder for the event ${reason}: pass the kit to new StatusWriter()`,
      );
    }
    // Each retry of a failure is an occurrence.
    const options = repeats ? {} : { occurrence: occurrenceOf(object) };
    return type === 'Normal'
      ? this.#recorder.normal(object, reason, message, options)
      : this.#recorder.warning(object, reason, message, options);
  }

  /**
   * Replaces the status of the object. Call `differs` before, or use `report`. A status that the server
   * rejects is retried like any failure, because an admission policy may be the reason.
   *
   * @throws {ApiError} `conflict` if the object was changed, replaced or deleted meanwhile
   */
  async write(
    { client, signal, log }: StatusContext,
    object: DeepReadonly<T>,
    status: NonNullable<T['status']>,
  ): Promise<void> {
    const { name, namespace, uid, resourceVersion } = object.metadata;
    const body = { metadata: { uid, resourceVersion }, status: replacing(object.status, status) };
    try {
      const answer = await client.patch<ObjectWithStatus>(
        this.#resource,
        { namespace, name },
        { type: 'merge', body },
        { subresource: 'status', fieldManager: this.#fieldManager, signal },
      );
      this.#hasSubresource = true;
      this.#learn(status, answer.status ?? {});
    } catch (error) {
      if (isApiError(error, 'invalid')) throw rejected(error);
      if (!isApiError(error, 'notFound')) throw error;
      // The server returns the same error for a deleted object and for a missing subresource.
      const live = await this.#find({ client, signal }, { namespace, name });
      if (live?.metadata.uid !== uid) throw deleted(error);
      this.#logMissing(log);
    }
  }

  async #find(
    { client, signal }: Pick<StatusContext, 'client' | 'signal'>,
    at: ObjectName,
  ): Promise<T | undefined> {
    try {
      return await client.get(this.#resource, at, { signal });
    } catch (error) {
      if (isApiError(error, 'notFound')) return undefined;
      throw error;
    }
  }

  #logMissing(log: Logger): void {
    if (this.#hasSubresource) {
      log.error(undefined, 'The status cannot be written: its resource has no status subresource', {
        resource: groupResourceOf(this.#resource),
        fix: 'install the CustomResourceDefinition that comes with this program: kubectl apply -f FOLDER',
      });
    }
    this.#hasSubresource = false;
  }

  #learn(sent: object, stored: object): void {
    for (const [field, value] of Object.entries(sent)) {
      if (Object.hasOwn(stored, field) || value === undefined) this.#pruned.delete(field);
      else this.#pruned.add(field);
    }
  }

  #kept(status: object): object {
    if (this.#pruned.size === 0) return status;
    return Object.fromEntries(Object.entries(status).filter(([field]) => !this.#pruned.has(field)));
  }
}

/**
 * Identifies the change of the status that an event is about, by what it changes: the generation and the previous Ready, or
 * all conditions of a kind without it. Other writers may change the object before the status is written.
 */
function occurrenceOf({ metadata, status }: DeepReadonly<ObjectWithStatus>): string {
  const { generation = 0, resourceVersion } = metadata;
  const { conditions }: DeepReadonly<StatusWithReadiness> = status ?? {};
  if (status && !conditions) return resourceVersion;
  const ready = conditions?.filter(({ type }) => type === 'Ready') ?? [];
  const changed = ready.length > 0 ? ready : (conditions ?? []);
  return [
    generation,
    ...changed.map(({ type, status: is, reason, lastTransitionTime }) =>
      [type, is, reason, lastTransitionTime].join('/'),
    ),
  ].join(' ');
}

/** Returns the status and reason of Ready. */
function stateOf(conditions: DeepReadonly<Condition[]> = []): string {
  const ready = conditions.find(({ type }) => type === 'Ready');
  return `${ready?.status} ${ready?.reason}`;
}

/** Returns the merge patch that makes `before` equal to `after`: null removes a field that is absent. */
function replacing(before: object | undefined, after: object): object {
  const removed = Object.keys(before ?? {}).map((field) => [field, null]);
  const present = Object.entries(after)
    .filter(([, value]) => value !== undefined)
    .map(([field, value]: [string, unknown]) => {
      const current: unknown = before && Object.getOwnPropertyDescriptor(before, field)?.value;
      return [field, isRecord(value) && isRecord(current) ? replacing(current, value) : value];
    });
  return Object.fromEntries([...removed, ...present]) as object;
}

/** A deleted object is a conflict: another client was faster. */
function deleted(cause: ApiError): ApiError {
  const message = `${cause.message}: it was deleted meanwhile`;
  return new ApiError({ kind: 'conflict', message, code: cause.code, cause });
}

function rejected(cause: ApiError): Error {
  return new Error(
    `The server rejected the status: ${cause.message}. Correct the object if its CustomResourceDefinition has become stricter, install the one of this release (kubectl apply -f FOLDER), or change the admission policy`,
    { cause },
  );
}
