import { nameProblems } from '../../../api/object-names.ts';
import { goQuote } from '../../../util/go-quote.ts';
import type { JsonObject } from '../../../util/json-value.ts';
import { isSet, numberIn, objectIn, objectsIn, setOwn, textIn } from '../../../util/json-value.ts';
import { equalJson } from '../../../api/equal.ts';
import { copyJson } from '../../json/copy-json.ts';
import type { AdmissionHookContext, StoredObject } from '../../objects/resource-definition.ts';
import { StatusError } from '../../objects/status-error.ts';
import { mergeTolerations } from './tolerations.ts';

/**
 * Sets the priority of a new Pod and its preemption policy from its PriorityClass (admission plugin Priority).
 *
 * @throws {StatusError} 403 if the class does not exist or the Pod contradicts it
 */
export function admitPriority(spec: JsonObject, { list, forbidden }: AdmissionHookContext): void {
  const classes = list({ group: 'scheduling.k8s.io', plural: 'priorityclasses' });
  const name = textIn(spec, 'priorityClassName');
  const chosen =
    name === '' ? defaultClass(classes) : classes.find(({ metadata }) => metadata.name === name);
  if (!chosen && name !== '') throw forbidden(`no PriorityClass with name ${name} was found`);
  const priority = chosen ? valueOf(chosen) : 0;
  const given = numberIn(spec, 'priority');
  if (given !== undefined && given !== priority) {
    throw forbidden(
      `the integer value of priority (${given}) must not be provided in pod spec; priority admission controller computed ${priority} from the given PriorityClass name`,
    );
  }
  spec['priority'] = priority;
  if (chosen) spec['priorityClassName'] = chosen.metadata.name;
  const policy = chosen ? textIn(chosen, 'preemptionPolicy') : 'PreemptLowerPriority';
  const wanted = spec['preemptionPolicy'];
  if (policy !== '' && typeof wanted === 'string' && wanted !== policy) {
    throw forbidden(
      `the string value of PreemptionPolicy (${wanted}) must not be provided in pod spec; priority admission controller computed ${policy} from the given PriorityClass name`,
    );
  }
  if (policy !== '') spec['preemptionPolicy'] = policy;
}

/** Two defaults are possible. As upstream, the lower one counts. */
function defaultClass(classes: readonly StoredObject[]): StoredObject | undefined {
  return classes
    .filter((each) => each['globalDefault'] === true)
    .reduce<StoredObject | undefined>(
      (lowest, each) => (lowest && valueOf(lowest) <= valueOf(each) ? lowest : each),
      undefined,
    );
}

function valueOf(priorityClass: Readonly<Record<string, unknown>>): number {
  return numberIn(priorityClass, 'value') ?? 0;
}

const OTHER_OVERHEAD = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

/**
 * Requires that a valid new Pod has the overhead of its RuntimeClass, also after webhooks have changed it.
 *
 * @throws {StatusError} 403
 */
export function requireOverhead(
  pod: StoredObject,
  previous: StoredObject | undefined,
  context: AdmissionHookContext,
): void {
  if (previous) return;
  const spec = objectIn(pod, 'spec') ?? {};
  const overhead = overheadOf(runtimeClassOf(spec, context));
  if (equalJson(spec['overhead'], overhead)) return;
  throw context.forbidden(
    overhead
      ? OTHER_OVERHEAD
      : 'pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead',
  );
}

function overheadOf(runtimeClass: StoredObject | undefined): JsonObject | undefined {
  return objectIn(objectIn(runtimeClass, 'overhead'), 'podFixed');
}

/** @throws {StatusError} if it does not exist */
function runtimeClassOf(
  spec: JsonObject,
  { list, forbidden }: AdmissionHookContext,
): StoredObject | undefined {
  const name = spec['runtimeClassName'];
  if (typeof name !== 'string') return undefined;
  // As upstream, whose client does not send a request with such a name.
  const problems = nameProblems(name, 'pathSegment');
  const message =
    name === ''
      ? 'resource name may not be empty'
      : problems.length > 0 && `invalid resource name ${goQuote(name)}: [${problems.join(' ')}]`;
  if (message) throw StatusError.failure({ code: 500, message });
  const found = list({ group: 'node.k8s.io', plural: 'runtimeclasses' }).find(
    ({ metadata }) => metadata.name === name,
  );
  if (!found) throw forbidden(`pod rejected: RuntimeClass "${name}" not found`);
  return found;
}

/**
 * Sets the overhead, node selector and tolerations of a new Pod from its RuntimeClass (admission plugin RuntimeClass).
 *
 * @throws {StatusError} 403 if the class does not exist or the Pod contradicts it
 */
export function admitRuntime(spec: JsonObject, { list, forbidden }: AdmissionHookContext): void {
  const chosen = runtimeClassOf(spec, { list, forbidden });
  const overhead = overheadOf(chosen);
  if (overhead) {
    if (isSet(spec, 'overhead') && !equalJson(spec['overhead'], overhead)) {
      throw forbidden(OTHER_OVERHEAD);
    }
    spec['overhead'] = copyJson(overhead);
  }
  const scheduling = objectIn(chosen, 'scheduling');
  const selector = objectIn(spec, 'nodeSelector') ?? {};
  const added = objectIn(scheduling, 'nodeSelector') ?? {};
  for (const [key, value] of Object.entries(added)) {
    if (Object.hasOwn(selector, key) && selector[key] !== value) {
      throw forbidden(
        `conflict: runtimeClass.scheduling.nodeSelector[${key}] = ${String(value)}; pod.spec.nodeSelector[${key}] = ${String(selector[key])}`,
      );
    }
    setOwn(selector, key, value);
  }
  if (Object.keys(added).length > 0) spec['nodeSelector'] = selector;
  const tolerations = objectsIn(scheduling, 'tolerations').map((each) => copyJson(each));
  if (tolerations.length > 0) {
    spec['tolerations'] = mergeTolerations([...objectsIn(spec, 'tolerations'), ...tolerations]);
  }
}
