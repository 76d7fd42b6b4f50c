import { nameProblems } from '../../../api/object-names.ts';
import { goQuote } from '../../../util/go-quote.ts';
import { goJson } from '../../../util/go-format.ts';
import type { JsonObject } from '../../../util/json-value.ts';
import { isSet, numberIn, objectIn, objectsIn, setOwn, textIn } from '../../../util/json-value.ts';
import { equalJson } from '../../../api/equal.ts';
import { copyJson } from '../../json/copy-json.ts';
import type { ApiObject, HookContext } from '../../objects/resource-definition.ts';
import { StatusError, forbiddenError } from '../../objects/status-error.ts';

const PODS = { group: '', plural: 'pods' };

/**
 * Sets what a new Pod gets from its PriorityClass and its RuntimeClass, as the admission plugins Priority and
 * RuntimeClass do.
 *
 * @throws {StatusError} 403 if a class does not exist or the Pod contradicts it
 */
export function admitClasses(pod: ApiObject, spec: JsonObject, context: HookContext): void {
  const toError = (why: string) => forbiddenError(PODS, pod.metadata.name, why);
  admitPriority(spec, context, toError);
  admitRuntime(spec, context, toError);
}

type ToError = (why: string) => Error;

function admitPriority(spec: JsonObject, { list }: HookContext, toError: ToError): void {
  const classes = list({ group: 'scheduling.k8s.io', plural: 'priorityclasses' });
  const name = textIn(spec, 'priorityClassName');
  const chosen =
    name === ''
      ? // Two defaults are possible. As upstream, the lower one counts.
        classes
          .filter((each) => each['globalDefault'] === true)
          .reduce<(typeof classes)[number] | undefined>(
            (lowest, each) => (lowest && valueOf(lowest) <= valueOf(each) ? lowest : each),
            undefined,
          )
      : classes.find(({ metadata }) => metadata.name === name);
  if (!chosen && name !== '') throw toError(`no PriorityClass with name ${name} was found`);
  const priority = chosen ? valueOf(chosen) : 0;
  const given = numberIn(spec, 'priority');
  if (given !== undefined && given !== priority) {
    throw toError(
      `the integer value of priority (${given}) must not be provided in pod spec; priority admission controller computed ${priority} from the given PriorityClass name`,
    );
  }
  spec['priority'] = priority;
  if (!chosen) return;
  spec['priorityClassName'] = chosen.metadata.name;
  const policy = textIn(chosen, 'preemptionPolicy');
  const wanted = textIn(spec, 'preemptionPolicy');
  if (policy !== '' && wanted !== '' && wanted !== policy) {
    throw toError(
      `the string value of PreemptionPolicy (${wanted}) must not be provided in pod spec; priority admission controller computed ${policy} from the given PriorityClass name`,
    );
  }
  if (policy !== '') spec['preemptionPolicy'] = policy;
}

function valueOf(priorityClass: Readonly<Record<string, unknown>>): number {
  return numberIn(priorityClass, 'value') ?? 0;
}

function admitRuntime(spec: JsonObject, { list }: HookContext, toError: ToError): void {
  const name = textIn(spec, 'runtimeClassName');
  const chosen =
    name === ''
      ? undefined
      : list({ group: 'node.k8s.io', plural: 'runtimeclasses' }).find(
          ({ metadata }) => metadata.name === name,
        );
  const problems = nameProblems(name, 'pathSegment');
  if (problems.length > 0) {
    // As upstream, whose client does not send a request with such a name.
    const message = `invalid resource name ${goQuote(name)}: [${problems.join(' ')}]`;
    throw StatusError.failure({ code: 500, message });
  }
  if (name !== '' && !chosen) throw toError(`pod rejected: RuntimeClass "${name}" not found`);
  const overhead = objectIn(objectIn(chosen, 'overhead'), 'podFixed');
  if (isSet(spec, 'overhead') && !overhead) {
    throw toError(
      'pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead',
    );
  }
  if (overhead) {
    if (isSet(spec, 'overhead') && !equalJson(spec['overhead'], overhead)) {
      throw toError("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
    }
    spec['overhead'] = copyJson(overhead);
  }
  const scheduling = objectIn(chosen, 'scheduling');
  const selector = objectIn(spec, 'nodeSelector') ?? {};
  const added = objectIn(scheduling, 'nodeSelector') ?? {};
  for (const [key, value] of Object.entries(added)) {
    if (Object.hasOwn(selector, key) && selector[key] !== value) {
      throw toError(
        `conflict: runtimeClass.scheduling.nodeSelector[${key}] = ${String(value)}; pod.spec.nodeSelector[${key}] = ${String(selector[key])}`,
      );
    }
    setOwn(selector, key, value);
  }
  if (Object.keys(added).length > 0) spec['nodeSelector'] = selector;
  const tolerations = objectsIn(spec, 'tolerations');
  const present = new Set(tolerations.map(goJson));
  const more = objectsIn(scheduling, 'tolerations').filter(
    (toleration) => !present.has(goJson(toleration)),
  );
  if (more.length > 0)
    spec['tolerations'] = [...tolerations, ...more.map((each) => copyJson(each))];
}
