import { DEPLOYMENTS, EVENTS, NODES, PODS, SERVICES } from '../../api/builtin.ts';
import type { Deployment, Event, Node, Pod, Service } from '../../api/builtin.ts';
import type { Condition } from '../../api/conditions.ts';
import { ATS } from '../../api/generated/at.ts';
import type { At } from '../../api/generated/at.ts';
import { COUNTS } from '../../api/generated/count.ts';
import type { Count } from '../../api/generated/count.ts';
import { FOOS } from '../../api/generated/foo.ts';
import type { Foo } from '../../api/generated/foo.ts';
import { WEB_APPS } from '../../api/generated/web-app.ts';
import type { WebApp } from '../../api/generated/web-app.ts';
import type { KubernetesObject } from '../../api/object.ts';
import type { Resource } from '../../api/resource.ts';
import { LABEL } from '../../controllers/pod-count/controller.ts';
import { isReady } from './view.ts';

/** Kind whose objects the demo prints. */
export interface ObservedKind<T extends KubernetesObject = KubernetesObject> {
  readonly resource: Resource<T>;
  /**
   * Describes the state of an object. A change that does not change the text is not printed. Undefined: the
   * object is not printed.
   */
  line(object: T): string | undefined;
}

/** Kinds that every server has. */
const BUILTIN: readonly ObservedKind[] = [
  observed(PODS, podState),
  observed(DEPLOYMENTS, deploymentState),
  observed(SERVICES, serviceState),
  observed(NODES, nodeState),
  { resource: EVENTS, line: eventLine },
];

/** Kinds that are installed as CRDs. */
const CUSTOM: readonly ObservedKind[] = [
  observed(COUNTS, countState),
  observed(WEB_APPS, webAppState),
  observed(ATS, atState),
  observed(FOOS, fooState),
];

/** Returns the observed kinds if these kinds are installed. */
export function observedKinds(installed: readonly Resource[]): readonly ObservedKind[] {
  return [...BUILTIN, ...CUSTOM.filter(({ resource }) => installed.includes(resource))];
}

/** Returns the line of an object: `pod/web-0  Running`. */
export function objectLine({ kind, metadata }: KubernetesObject, state: string): string {
  return `${kind.toLowerCase()}/${metadata.name}  ${state}`;
}

function observed<T extends KubernetesObject>(
  resource: Resource<T>,
  stateOf: (object: T) => string | undefined,
): ObservedKind<T> {
  return {
    resource,
    line: (object) => {
      const state = stateOf(object);
      return state === undefined ? undefined : objectLine(object, state);
    },
  };
}

function podState(pod: Pod): string {
  if (pod.metadata.deletionTimestamp !== undefined) return 'Terminating';
  return `${pod.status?.phase ?? 'Pending'}${isReady(pod) ? ', ready' : ''}`;
}

function deploymentState({ spec, status }: Deployment): string {
  return `${status?.availableReplicas ?? 0}/${spec?.replicas ?? 1} available`;
}

function serviceState({ spec }: Service): string {
  const ports = (spec?.ports ?? []).map(({ port }) => port);
  return `${spec?.clusterIP ?? ''} port ${ports.join(', ')}`;
}

function nodeState({ metadata }: Node): string | undefined {
  const count = metadata.labels?.[LABEL];
  return count === undefined ? undefined : `${LABEL}=${count}`;
}

/** The events of pod-count on each Pod are too many to print. */
function eventLine({ type, reason, message, involvedObject }: Event): string | undefined {
  const { kind = '', name = '' } = involvedObject;
  if (reason === 'SuccessCalculatePod' && kind === PODS.kind) return undefined;
  return `event ${type ?? ''} ${reason ?? ''}  ${kind.toLowerCase()}/${name}: ${message ?? ''}`;
}

function countState({ spec, status }: Count): string {
  const { readyReplicas = 0, healthy = false } = status ?? {};
  return `${readyReplicas}/${spec.count} ready, ${healthy ? 'healthy' : 'not healthy'}`;
}

function webAppState({ status }: WebApp): string {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  return ready ? `${ready.phase ?? ''}: ${ready.message}` : 'new';
}

function atState({ status }: At): string {
  const phase = status?.phase;
  return phase === undefined ? 'new' : `${phase}: ${messageOf(status?.conditions, 'Succeeded')}`;
}

function fooState({ status }: Foo): string {
  return messageOf(status?.conditions, 'Ready') ?? 'new';
}

function messageOf(conditions: readonly Condition[] = [], type: string): string | undefined {
  return conditions.find((condition) => condition.type === type)?.message;
}
