import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import { redactText } from '../util/redact.ts';
import { truncate } from '../util/truncate.ts';
import { isRecord } from '../util/values.ts';

/** What the conditions of an object report; `unknown` without a condition Ready or Available. */
export interface ObjectCondition {
  readonly state: 'ready' | 'notReady' | 'stalled' | 'unknown';
  /** Why the object is not ready; empty for `unknown`. */
  readonly message: string;
  /** Since when, RFC 3339; absent if the object does not say so. */
  readonly since?: string | undefined;
}

/** Maximum length of a message. */
const MAX_MESSAGE = 500;

/** Reading a status parses it. Cached objects are immutable, so each one is read once. */
const known = new WeakMap<object, ObjectCondition>();

/**
 * Returns the condition of an object, as kstatus does: stalled if Stalled is true; otherwise by Ready, or by Available. An
 * object is not ready while it is being deleted, or if its conditions describe an earlier generation. Credentials in messages are
 * masked.
 */
export function objectCondition(object: DeepReadonly<KubernetesObject>): ObjectCondition {
  const found = known.get(object) ?? readCondition(object);
  known.set(object, found);
  return found;
}

/** Conditions that report a problem while they are true. */
const NEGATIVE = /Failed|Failure|Pressure|Unavailable|Stalled|Degraded|Reconciling|Disrupted|Error/;

/** Returns whether a condition reports a problem. */
export function isProblem({
  type,
  status,
}: {
  readonly type?: unknown;
  readonly status?: unknown;
}) {
  return status !== 'Unknown' && (status === 'True') === NEGATIVE.test(String(type));
}

/** Reasons of containers that wait although nothing is wrong. */
const STARTING: ReadonlySet<unknown> = new Set(['ContainerCreating', 'PodInitializing']);

/** Returns the problem that an object reports: of a container of a Pod, or of its conditions. */
export function objectProblem(object: DeepReadonly<KubernetesObject>): string | undefined {
  const { state, message } = objectCondition(object);
  if (state === 'ready') return undefined;
  const status: unknown = Reflect.get(object, 'status');
  const { conditions, initContainerStatuses, containerStatuses } = isRecord(status) ? status : {};
  for (const container of [initContainerStatuses, containerStatuses].flat().filter(isRecord)) {
    const waiting = isRecord(container['state']) ? container['state']['waiting'] : undefined;
    if (!isRecord(waiting) || STARTING.has(waiting['reason'])) continue;
    return shortened(
      `container ${textOf(container['name'], waiting['reason'], waiting['message'])}`,
    );
  }
  const problems = [conditions]
    .flat()
    .filter(isRecord)
    .filter((one) => isProblem(one) && one['message']);
  // A condition such as ReplicaFailure says why the object is not ready.
  const failure = problems.find(
    ({ type }) => NEGATIVE.test(String(type)) && type !== 'Reconciling',
  );
  if (!failure && state !== 'unknown') return message;
  const shown = failure ?? problems[0];
  return (
    shown &&
    shortened(textOf(`${textOf(shown['type'])} is ${textOf(shown['status'])}`, shown['message']))
  );
}

function textOf(...parts: readonly unknown[]): string {
  return parts.filter((part) => typeof part === 'string' && part !== '').join(': ');
}

function shortened(text: string): string {
  return truncate(redactText(text), MAX_MESSAGE);
}

function readCondition(object: DeepReadonly<KubernetesObject>): ObjectCondition {
  const { deletionTimestamp, finalizers = [], generation = 0 } = object.metadata;
  if (deletionTimestamp !== undefined) {
    const waits = finalizers.length > 0 ? `; waits for ${finalizers.join(', ')}` : '';
    return condition('notReady', `Is being deleted${waits}`, deletionTimestamp);
  }
  const status: unknown = Reflect.get(object, 'status');
  const conditions = isRecord(status) ? status['conditions'] : undefined;
  const all = Array.isArray(conditions) ? conditions.filter(isRecord) : [];
  const ofType = (type: string) => all.find((one) => one['type'] === type);
  const stalled = ofType('Stalled');
  if (stalled?.['status'] === 'True') return reported('stalled', stalled);
  const ready = ofType('Ready') ?? ofType('Available');
  if (!ready) return { state: 'unknown', message: '' };
  const observed =
    ready['observedGeneration'] ?? (isRecord(status) && status['observedGeneration']);
  if (typeof observed === 'number' && observed < generation) {
    return condition('notReady', `Its status describes generation ${observed} of ${generation}`);
  }
  // A Pod that has run to its end is not ready, and nothing is wrong with it.
  const isReady = ready['status'] === 'True' || ready['reason'] === 'PodCompleted';
  return reported(isReady ? 'ready' : 'notReady', ready);
}

function reported(
  state: ObjectCondition['state'],
  { reason, message, lastTransitionTime }: Readonly<Record<string, unknown>>,
): ObjectCondition {
  const text = [message, reason].find((one) => typeof one === 'string' && one !== '');
  return condition(state, text ?? 'The condition has no message', lastTransitionTime);
}

function condition(
  state: ObjectCondition['state'],
  message: unknown,
  since?: unknown,
): ObjectCondition {
  return {
    state,
    message: shortened(String(message)),
    ...(typeof since === 'string' && { since }),
  };
}
