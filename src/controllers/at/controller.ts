import { ApiError, isApiError, isNamespaceTerminating } from '../../api/api-error.ts';
import { PODS } from '../../api/builtin.ts';
import type { Pod } from '../../api/builtin.ts';
import { ATS } from '../../api/generated/at.ts';
import type { At } from '../../api/generated/at.ts';
import { controllerOf, hasFinalizer, isControlledBy } from '../../api/metadata.ts';
import { keyOf, objectKey } from '../../api/object-key.ts';
import type { ObjectKey } from '../../api/object-key.ts';
import type { DeepReadonly } from '../../api/object.ts';
import type { Lister } from '../../cache/lister.ts';
import { admissionChange, isReplaced, nameCollision } from '../../manager/owned-object.ts';
import { Controller } from '../../manager/controller.ts';
import type { SyncContext, SyncHandler } from '../../manager/controller-options.ts';
import { allKeys, mapByName, mapToOwner } from '../../manager/enqueue.ts';
import type { ControllerKit } from '../../manager/run-controllers.ts';
import { StatusWriter } from '../../manager/status-writer.ts';
import type { StatusEvent } from '../../manager/status-writer.ts';
import type { EventRecorder } from '../../record/event-recorder.ts';
import type { Clock } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import { messageOf } from '../../util/values.ts';
import { done, requeueAt, TerminalError } from '../../workqueue/outcome.ts';
import type { Outcome } from '../../workqueue/outcome.ts';
import { buildAtPod, AT_COMPONENT, exitOf, AT_FINALIZER, podName } from './pod.ts';
import { Punctuality } from './punctuality.ts';
import { parseSpec } from './spec.ts';
import { buildAtStatus, SUCCEEDED } from './status.ts';
import type { AtState } from './status.ts';
import { forEachObject } from '../../manager/rejections.ts';

/** Runs the command of every At once, at its time. */
export function atController(kit: ControllerKit): Controller {
  const { clock } = kit;
  const ats = kit.informers.for(ATS);
  const pods = kit.informers.for(PODS);
  const toAt = mapToOwner(ATS);
  pods.addIndexers({
    [UNRECORDED_INDEX]: (pod: DeepReadonly<Pod>) =>
      hasFinalizer(pod, AT_FINALIZER) ? allKeys(toAt, pod) : [],
  });
  const sync = atSync({
    ats: ats.lister,
    pods: pods.lister,
    recorder: kit.events.recorder(AT_COMPONENT),
    punctuality: new Punctuality(kit.metrics?.at),
    clock,
  });
  return new Controller(kit, { name: 'at', kind: ATS.kind, sync })
    .for(ats)
    .owns(pods, ATS, { orNamed: mapByName(ats, 'pod', podName) });
}

/** Dependencies of `atSync`. */
export interface AtSyncDeps {
  readonly ats: Lister<At>;
  /** Has the index `UNRECORDED_INDEX`. */
  readonly pods: Pick<Lister<Pod>, 'get' | 'byIndex'>;
  readonly recorder: EventRecorder;
  readonly punctuality: Punctuality;
  readonly clock: Clock;
}

/** Name of the index of Pods with our finalizer by the key of their At. */
const UNRECORDED_INDEX = 'unrecorded';

/**
 * Runs the command of one At: once, not before its time, and never again.
 *
 * The Pod is created with a finalizer, so that it exists until its uid is in the status of the At. Live
 * reads of both precede its creation, and no Pod is created for an At with a uid in its status. So each
 * At has at most one Pod, after any crash, with any stale cache, and if the Pod is deleted.
 */
export function atSync(deps: AtSyncDeps): SyncHandler {
  const statuses = new StatusWriter(ATS, AT_COMPONENT, {
    events: { recorder: () => deps.recorder },
  });
  return async (key, context) => {
    const at = deps.ats.get(key);
    const rejection = await removeFinalizers(deps.pods.byIndex(UNRECORDED_INDEX, key), at, context);
    let outcome: Outcome = done();
    if (!at || at.metadata.deletionTimestamp !== undefined || at.status?.phase === 'DONE') {
      deps.punctuality.forget(key);
    } else {
      outcome = await new AtSync({ ...deps, statuses }, context, at).run();
    }
    if (!rejection) return outcome;
    const message = `Error removing the finalizer: ${rejection.message}`;
    if (at) deps.recorder.warning(at, 'FailedPatch', message);
    throw rejection;
  };
}

/**
 * Removes the finalizer from Pods whose uid is in the status of their At, or whose At is gone.
 *
 * @returns the error if admission or authorization rejects it
 */
async function removeFinalizers(
  pods: readonly DeepReadonly<Pod>[],
  at: DeepReadonly<At> | undefined,
  context: SyncContext,
): Promise<ApiError | undefined> {
  const { client, signal } = context;
  const removal = forEachObject(pods, async (pod) => {
    const { uid, resourceVersion } = pod.metadata;
    if (await isUnrecorded(pod, at, context)) return;
    const metadata = {
      uid,
      resourceVersion,
      '$deleteFromPrimitiveList/finalizers': [AT_FINALIZER],
    };
    try {
      const patch = { type: 'strategic', body: { metadata } } as const;
      await client.patch(PODS, pod.metadata, patch, { fieldManager: AT_COMPONENT, signal });
    } catch (error) {
      if (!isReplaced(error)) throw error;
    }
  });
  try {
    await removal;
  } catch (error) {
    if (isApiError(error, 'invalid', 'forbidden')) return error;
    throw error;
  }
  return undefined;
}

/**
 * Returns whether the Pod must keep its finalizer: its At exists, is not being deleted, and does not have the Pod's uid in
 * its status. Reads the At from the server if the cache has another object or none: the cache may be stale, or it does not
 * contain the Ats of another installation, whose Pods are not touched unless they are being deleted.
 */
async function isUnrecorded(
  pod: DeepReadonly<Pod>,
  cached: DeepReadonly<At> | undefined,
  { client, signal }: SyncContext,
): Promise<boolean> {
  const owner = controllerOf(pod);
  if (!owner) return false;
  const { namespace } = pod.metadata;
  const at =
    cached?.metadata.uid === owner.uid
      ? cached
      : await unlessNotFound(client.get(ATS, { namespace, name: owner.name }, { signal }));
  if (at?.metadata.uid !== owner.uid || at.metadata.deletionTimestamp !== undefined) return false;
  const isRecorded = at.status?.podUID === pod.metadata.uid;
  if (cached) return !isRecorded;
  // No installation may select the At any more: its Pod must not block a deletion.
  return !isRecorded || pod.metadata.deletionTimestamp === undefined;
}

/** One sync of an At that is not done. */
class AtSync {
  readonly #deps: AtSyncDeps & { readonly statuses: StatusWriter<At> };
  readonly #context: SyncContext;
  readonly #at: DeepReadonly<At>;
  readonly #key: ObjectKey;
  readonly #pod: { readonly namespace: string | undefined; readonly name: string };

  constructor(
    deps: AtSyncDeps & { readonly statuses: StatusWriter<At> },
    context: SyncContext,
    at: DeepReadonly<At>,
  ) {
    this.#deps = deps;
    this.#context = context;
    this.#at = at;
    this.#key = keyOf(at);
    this.#pod = { namespace: at.metadata.namespace, name: podName(at) };
  }

  async run(): Promise<Outcome> {
    const { punctuality, clock } = this.#deps;
    const { podUID } = this.#at.status ?? {};
    if (podUID !== undefined) {
      punctuality.forget(this.#key);
      return this.#followPod(podUID);
    }
    const spec = parseSpec(this.#at);
    if (spec.kind === 'invalid') {
      return this.#reportStalled('InvalidSpec', new TerminalError(spec.problem));
    }
    if (spec.dueMs > clock.now()) {
      punctuality.forget(this.#key);
      const message = `Runs at ${this.#at.spec.schedule}`;
      await this.#report({ kind: 'pending', reason: 'Scheduled', message });
      return requeueAt(spec.dueMs, 'its schedule is due');
    }
    return this.#start(spec.words, spec.dueMs);
  }

  async #start(words: readonly string[], dueMs: number): Promise<Outcome> {
    const { punctuality, clock } = this.#deps;
    // An At that was created after its schedule is due when it is created.
    const couldMs = Math.max(dueMs, Date.parse(this.#at.metadata.creationTimestamp));
    punctuality.due(this.#key, this.#at.metadata.uid, clock.now() - couldMs);
    let present = await this.#livePod();
    if (!present) {
      await this.#requireCurrent();
      // The clock may have been set back during the reads.
      if (dueMs > clock.now()) return requeueAt(dueMs, 'its schedule is due');
      try {
        present = await this.#create(words);
      } catch (cause) {
        if (!isApiError(cause, 'invalid')) throw cause;
        const error = new Error(`Error creating: ${cause.message}`, { cause });
        return this.#reportStalled('FailedCreate', error);
      }
    }
    if (!present) return done();
    if (!isControlledBy(present, this.#at)) return this.#reportCollision(present);
    const createdMs = Date.parse(present.metadata.creationTimestamp);
    punctuality.started(this.#key, createdMs - couldMs);
    const lateMs = createdMs - dueMs;
    const late = lateMs >= 1000 ? `, ${formatDuration(Math.floor(lateMs / 1000) * 1000)} late` : '';
    const started = `Started in Pod ${this.#pod.name}${late}`;
    const pod = objectKey(this.#pod.namespace, this.#pod.name);
    this.#context.log.v(2).info('Started command', { pod });
    // Another policy runs the command again.
    const change = admissionChange(buildAtPod(this.#at, words), present, ['restartPolicy']);
    const message = change ? `${started}. ${change.message}` : started;
    const event = change && ({ type: 'Warning', reason: change.reason, message } as const);
    const state = { kind: 'running', podUID: present.metadata.uid, message } as const;
    await this.#report(state, event && { event });
    return done();
  }

  /**
   * Since the cache received the At, its Pod may have been created and deleted, and its uid recorded.
   *
   * @throws {ApiError} `conflict` if the At has changed since
   */
  async #requireCurrent(): Promise<void> {
    const { client, signal } = this.#context;
    const { metadata } = this.#at;
    const live = await unlessNotFound(client.get(ATS, metadata, { signal }));
    if (live?.metadata.resourceVersion === metadata.resourceVersion) return;
    const message = `At "${metadata.name}" has changed since the cache saw it`;
    throw new ApiError({ kind: 'conflict', message });
  }

  /** Returns the created Pod, or the object with its name; undefined in a terminating namespace. */
  async #create(words: readonly string[]): Promise<Pod | undefined> {
    const { client, signal } = this.#context;
    try {
      const pod = buildAtPod(this.#at, words);
      return await client.create(PODS, pod, { fieldManager: AT_COMPONENT, signal });
    } catch (cause) {
      if (isApiError(cause, 'alreadyExists')) return this.#livePod();
      if (isNamespaceTerminating(cause)) return undefined;
      if (!signal.aborted && !isApiError(cause, 'invalid')) {
        const reason = 'FailedCreate';
        const message = `Error creating: ${messageOf(cause)}`;
        const event = { type: 'Warning', reason, message, repeats: true } as const;
        await this.#report({ kind: 'pending', reason, message }, { event });
      }
      throw cause;
    }
  }

  /** Reports an object that has the name of the Pod, and is not controlled by this At. */
  async #reportCollision(present: DeepReadonly<Pod>): Promise<Outcome> {
    const { name } = this.#pod;
    const controller = controllerOf(present);
    if (controller?.kind === ATS.kind && controller.name === this.#at.metadata.name) {
      const message = `Pod "${name}" of a previous At of the same name is being deleted`;
      await this.#report({ kind: 'pending', reason: 'PodTerminating', message });
      return done();
    }
    const { reason, message } = nameCollision(ATS, name);
    return this.#reportStalled(reason, new Error(message));
  }

  /** Reports the state of the Pod that runs or ran the command. */
  async #followPod(podUID: string): Promise<Outcome> {
    const cached = this.#deps.pods.get(objectKey(this.#pod.namespace, this.#pod.name));
    const pod = cached?.metadata.uid === podUID ? cached : await this.#livePod();
    if (pod?.metadata.uid !== podUID) {
      const message = `Pod "${this.#pod.name}" was deleted before the result of the command was known`;
      await this.#report({ kind: 'failed', reason: 'PodLost', message });
    } else if (pod.status?.phase === 'Succeeded') {
      await this.#report({ kind: 'succeeded' });
    } else if (pod.status?.phase === 'Failed') {
      const message = `The command failed: ${exitOf(pod)}`;
      await this.#report({ kind: 'failed', reason: 'CommandFailed', message });
    }
    return done();
  }

  #livePod(): Promise<Pod | undefined> {
    const { client, signal } = this.#context;
    return unlessNotFound(client.get(PODS, this.#pod, { signal }));
  }

  async #reportStalled(reason: string, error: Error): Promise<Outcome> {
    await this.#report({ kind: 'stalled', reason, message: error.message }, { error });
    return done();
  }

  async #report(
    state: AtState,
    rest: { readonly event?: StatusEvent; readonly error?: Error } = {},
  ): Promise<void> {
    const { statuses, clock } = this.#deps;
    const status = buildAtStatus(this.#at, state, clock.now());
    const event = eventOf(state);
    await statuses.report(this.#context, { object: this.#at, status, event, ...rest });
  }
}

function eventOf(state: AtState): StatusEvent | undefined {
  switch (state.kind) {
    case 'pending':
      return undefined;
    case 'stalled':
      return { type: 'Warning', reason: state.reason, message: state.message };
    case 'running':
      return { type: 'Normal', reason: 'Started', message: state.message };
    case 'succeeded':
      return { type: 'Normal', reason: 'Completed', message: SUCCEEDED };
    case 'failed':
      return { type: 'Warning', reason: 'Failed', message: state.message };
  }
}

async function unlessNotFound<T>(read: Promise<T>): Promise<T | undefined> {
  try {
    return await read;
  } catch (error) {
    if (isApiError(error, 'notFound')) return undefined;
    throw error;
  }
}
