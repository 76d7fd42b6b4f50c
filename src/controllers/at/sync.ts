import { ApiError, isApiError, isNamespaceTerminating } from '../../api/api-error.ts';
import { PODS } from '../../api/builtin.ts';
import type { Pod } from '../../api/builtin.ts';
import { ATS } from '../../api/generated/at.ts';
import type { At, AtSpec } from '../../api/generated/at.ts';
import { keyOf, objectKey } from '../../api/object-key.ts';
import type { ObjectKey, ObjectName } from '../../api/object-key.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { controllerOf, isControlledBy } from '../../api/metadata.ts';
import type { Lister } from '../../cache/lister.ts';
import type { SyncContext, SyncHandler } from '../../manager/controller.ts';
import type { StatusWriter } from '../../manager/status-writer.ts';
import type { EventRecorder, RecordResult } from '../../record/event-recorder.ts';
import type { Clock } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import { messageOf } from '../../util/values.ts';
import { done, requeueAfter, TerminalError } from '../../workqueue/outcome.ts';
import type { Outcome } from '../../workqueue/outcome.ts';
import { shown, specProblem } from '../spec-problem.ts';
import type { SpecRules } from '../spec-problem.ts';
import { parseCommand } from './command.ts';
import { buildPod, COMPONENT, exitOf, FINALIZER, LONGEST_POD_NAME, podName } from './pod.ts';
import type { Punctuality } from './punctuality.ts';
import { parseSchedule } from './schedule.ts';
import { buildStatus } from './status.ts';
import type { AtState } from './status.ts';

/** Dependencies of `AtSync`. */
export interface AtSyncDeps {
  readonly ats: Lister<At>;
  readonly pods: Pick<Lister<Pod>, 'get' | 'byIndex'>;
  readonly recorder: EventRecorder;
  readonly statuses: StatusWriter<At>;
  readonly punctuality: Punctuality;
  readonly clock: Clock;
}

/** Name of the index that finds the Pods which wait for their At to know their uid, by its key. */
export const UNRECORDED_INDEX = 'unrecorded';

const RULES: SpecRules<AtSpec> = { schedule: { type: 'string' }, command: { type: 'string' } };

/**
 * Runs the command of one At: once, not before its time, and never again.
 *
 * The Pod is created with a finalizer, so that it cannot vanish before its uid is in the status of
 * the At. Live reads of both precede its creation, and with a uid on record nothing is ever created.
 * So there is one Pod for each At (by uid), whatever crashes, lags, or is deleted in between.
 */
export function atSync(deps: AtSyncDeps): SyncHandler {
  return async (key, context) => {
    const at = deps.ats.get(key);
    await letGo(deps, key, at, context);
    if (!at || at.metadata.deletionTimestamp !== undefined || at.status?.phase === 'DONE') {
      deps.punctuality.forget(key);
      return done();
    }
    return new AtSync(deps, context, at).run();
  };
}

/** Lets go of the Pods that have no need to be kept: recorded, or of an At that is gone. */
async function letGo(
  { pods }: AtSyncDeps,
  key: ObjectKey,
  at: DeepReadonly<At> | undefined,
  context: SyncContext,
): Promise<void> {
  const { client, signal } = context;
  for (const pod of pods.byIndex(UNRECORDED_INDEX, key)) {
    const { uid, resourceVersion } = pod.metadata;
    if (await isAwaited(pod, at, context)) continue;
    const metadata = { uid, resourceVersion, '$deleteFromPrimitiveList/finalizers': [FINALIZER] };
    try {
      const patch = { type: 'strategic', body: { metadata } } as const;
      await client.patch(PODS, pod.metadata, patch, { fieldManager: COMPONENT, signal });
    } catch (error) {
      // Changed, replaced or gone: its event is on the way, and wakes the key.
      if (!isApiError(error, 'notFound', 'conflict')) throw error;
    }
  }
}

/**
 * True if the At of the Pod is there, and does not know its uid yet. Where the cache has another At,
 * or none, it may be the cache that is behind.
 */
async function isAwaited(
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
      : await unlessGone(client.get(ATS, { namespace, name: owner.name }, { signal }));
  if (at?.metadata.uid !== owner.uid || at.metadata.deletionTimestamp !== undefined) return false;
  return at.status?.podUID !== pod.metadata.uid;
}

/** One run for one At that is not done. */
class AtSync {
  readonly #deps: AtSyncDeps;
  readonly #context: SyncContext;
  readonly #at: DeepReadonly<At>;
  readonly #key: ObjectKey;
  readonly #podAt: ObjectName;

  constructor(deps: AtSyncDeps, context: SyncContext, at: DeepReadonly<At>) {
    this.#deps = deps;
    this.#context = context;
    this.#at = at;
    this.#key = keyOf(at);
    this.#podAt = { namespace: at.metadata.namespace, name: podName(at) };
  }

  async run(): Promise<Outcome> {
    const { podUID } = this.#at.status ?? {};
    if (podUID !== undefined) {
      this.#deps.punctuality.forget(this.#key);
      return this.#follow(podUID);
    }
    const problem = specProblem<AtSpec>(this.#at.spec, RULES);
    if (problem !== undefined) return this.#refuse('InvalidSpec', problem);
    const { schedule, command } = this.#at.spec;
    const dueMs = parseSchedule(schedule);
    if (dueMs === undefined) {
      const message = `spec.schedule ${shown(schedule)} is no instant of RFC 3339`;
      return this.#refuse('InvalidSpec', message);
    }
    const parsed = parseCommand(command);
    if (parsed.kind === 'malformed') {
      return this.#refuse(
        'InvalidSpec',
        `spec.command ${shown(command)} cannot be split into words: ${parsed.problem}`,
      );
    }
    if (this.#podAt.name.length > LONGEST_POD_NAME) {
      return this.#refuse(
        'InvalidSpec',
        `The Pod's name would have ${this.#podAt.name.length} characters, ${LONGEST_POD_NAME} are allowed; use an At with a shorter name`,
      );
    }
    const leftMs = dueMs - this.#deps.clock.now();
    if (leftMs > 0) {
      this.#deps.punctuality.forget(this.#key);
      await this.#tell({ kind: 'pending', reason: 'Scheduled', message: `Runs at ${schedule}` });
      return requeueAfter(leftMs, 'its schedule is due');
    }
    return this.#start(parsed.words, dueMs);
  }

  /**
   * The At is at fault: nothing happens until it is changed. That is said once.
   *
   * @param cause the server's answer, if it is the server that rejects it; then it is retried
   */
  async #refuse(reason: string, message: string, cause?: unknown): Promise<Outcome> {
    const isNews = await this.#tell({ kind: 'stalled', reason, message });
    if (cause !== undefined) throw new Error(message, { cause });
    if (isNews) throw new TerminalError(message);
    return done();
  }

  async #start(words: readonly string[], dueMs: number): Promise<Outcome> {
    const { log } = this.#context;
    const { punctuality, clock } = this.#deps;
    // Nobody is late for a time that had passed when the At was created: it means now.
    const couldMs = Math.max(dueMs, Date.parse(this.#at.metadata.creationTimestamp));
    punctuality.due(this.#key, this.#at.metadata.uid, clock.now() - couldMs);
    let present = await this.#livePod();
    if (!present) {
      await this.#requireCurrent();
      // Reads take time, and in it the clock may have been set back.
      const leftMs = dueMs - clock.now();
      if (leftMs > 0) return requeueAfter(leftMs, 'its schedule is due');
      try {
        present = await this.#create(words);
      } catch (cause) {
        if (!isApiError(cause, 'invalid')) throw cause;
        return this.#refuse('FailedCreate', `Error creating: ${cause.message}`, cause);
      }
    }
    if (!present) return done();
    if (!isControlledBy(present, this.#at)) return this.#wait(present);
    const createdMs = Date.parse(present.metadata.creationTimestamp);
    punctuality.started(this.#key, createdMs - couldMs);
    const lateMs = createdMs - dueMs;
    const late = lateMs >= 1000 ? `, ${formatDuration(Math.floor(lateMs / 1000) * 1000)} late` : '';
    const message = `Started in Pod ${this.#podAt.name}${late}`;
    log.v(2).info('Command started', { pod: objectKey(this.#podAt.namespace, this.#podAt.name) });
    await this.#tell({ kind: 'running', podUID: present.metadata.uid, message });
    return done();
  }

  /**
   * Its Pod may have come and gone, and its uid been recorded, since the cache saw the At.
   *
   * @throws {ApiError} `conflict`, if the At is no longer what the cache has
   */
  async #requireCurrent(): Promise<void> {
    const { client, signal } = this.#context;
    const { metadata } = this.#at;
    const live = await unlessGone(client.get(ATS, metadata, { signal }));
    if (live?.metadata.resourceVersion === metadata.resourceVersion) return;
    const message = `At "${metadata.name}" has changed since the cache saw it`;
    throw new ApiError({ kind: 'conflict', message });
  }

  /** Undefined if there can be none, as in a namespace that goes away. */
  async #create(words: readonly string[]): Promise<Pod | undefined> {
    const { client, signal } = this.#context;
    try {
      return await client.create(PODS, buildPod(this.#at, words), {
        fieldManager: COMPONENT,
        signal,
      });
    } catch (cause) {
      if (isApiError(cause, 'alreadyExists')) return this.#livePod();
      if (isNamespaceTerminating(cause)) return undefined;
      if (signal.aborted || isApiError(cause, 'invalid')) throw cause;
      const message = `Error creating: ${messageOf(cause)}`;
      this.#deps.recorder.warning(this.#at, 'FailedCreate', message);
      await this.#tell({ kind: 'pending', reason: 'FailedCreate', message });
      throw cause;
    }
  }

  /** Another has the name. The Pod of an At that had this name before is about to be collected. */
  async #wait(present: DeepReadonly<Pod>): Promise<Outcome> {
    const { name } = this.#podAt;
    const controller = controllerOf(present);
    if (controller?.kind === ATS.kind && controller.name === this.#at.metadata.name) {
      const message = `Pod "${name}" of a former At of this name is going away`;
      await this.#tell({ kind: 'pending', reason: 'PodLeaving', message });
      return done();
    }
    const message = `Resource "${name}" already exists and is not managed by At`;
    await this.#tell({ kind: 'stalled', reason: 'ErrResourceExists', message });
    throw new Error(message);
  }

  /** The command runs, or has run, in the Pod of this uid. */
  async #follow(podUID: string): Promise<Outcome> {
    const cached = this.#deps.pods.get(objectKey(this.#podAt.namespace, this.#podAt.name));
    const pod = cached?.metadata.uid === podUID ? cached : await this.#livePod();
    if (pod?.metadata.uid !== podUID) {
      const message = `Pod "${this.#podAt.name}" is gone, and how the command ended is not known`;
      await this.#tell({ kind: 'failed', reason: 'PodLost', message });
    } else if (pod.status?.phase === 'Succeeded') {
      await this.#tell({ kind: 'succeeded' });
    } else if (pod.status?.phase === 'Failed') {
      const message = `The command failed: ${exitOf(pod)}`;
      await this.#tell({ kind: 'failed', reason: 'CommandFailed', message });
    }
    return done();
  }

  #livePod(): Promise<Pod | undefined> {
    const { client, signal } = this.#context;
    return unlessGone(client.get(PODS, this.#podAt, { signal }));
  }

  /**
   * Writes the status, unless the At says so already; events go before it, so that a crash in between
   * repeats them rather than losing them.
   *
   * @returns false if the At says so already
   */
  async #tell(state: AtState): Promise<boolean> {
    const { statuses, clock, recorder } = this.#deps;
    const status = buildStatus(this.#at, state, clock.now());
    if (!statuses.differs(this.#at, status)) return false;
    if (!statuses.hasFailed(this.#at, status)) {
      await recordState(recorder, this.#at, state)?.attempted(this.#context.signal);
    }
    await statuses.write(this.#context, this.#at, status);
    return true;
  }
}

/** The event that goes with a state, if one does. */
function recordState(
  recorder: EventRecorder,
  at: DeepReadonly<At>,
  state: AtState,
): RecordResult | undefined {
  switch (state.kind) {
    case 'pending':
      return undefined;
    case 'stalled':
      return recorder.warning(at, state.reason, state.message);
    case 'running':
      return recorder.normal(at, 'Started', state.message);
    case 'succeeded':
      return recorder.normal(at, 'Completed', 'The command ended well');
    case 'failed':
      return recorder.warning(at, 'Failed', state.message);
  }
}

async function unlessGone<T>(read: Promise<T>): Promise<T | undefined> {
  try {
    return await read;
  } catch (error) {
    if (isApiError(error, 'notFound')) return undefined;
    throw error;
  }
}
