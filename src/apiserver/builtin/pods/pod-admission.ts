import type { JsonObject } from '../../../util/json-value.ts';
import { isSet, objectIn, objectsIn, textIn } from '../../../util/json-value.ts';
import type {
  AdmissionHookContext,
  ApiObject,
  StoredObject,
} from '../../objects/resource-definition.ts';
import { admitPriority, admitRuntime } from './pod-classes.ts';

/**
 * The admission plugins Priority, DefaultTolerationSeconds, RuntimeClass and PodTopologyLabels.
 *
 * @throws {StatusError} 403 if a class does not exist or the Pod contradicts it
 */
export function admitPod(
  pod: ApiObject,
  previous: StoredObject | undefined,
  context: AdmissionHookContext,
): void {
  const spec = objectIn(pod, 'spec');
  if (!spec) return;
  if (previous) keepPriority(spec, objectIn(previous, 'spec') ?? {});
  else admitPriority(spec, context);
  addDefaultTolerations(spec);
  if (previous) return;
  admitRuntime(spec, context);
  const node = textIn(spec, 'nodeName');
  const labels = topologyLabels(node === '' ? [] : context.list(NODES), node);
  if (Object.keys(labels).length === 0) return;
  pod.metadata.labels = { ...pod.metadata.labels, ...labels };
}

const NODES = { group: '', plural: 'nodes' };

const TOPOLOGY = ['topology.kubernetes.io/zone', 'topology.kubernetes.io/region'];

/** Returns the labels that a Pod gets from its Node (admission plugin PodTopologyLabels). */
export function topologyLabels(
  nodes: readonly StoredObject[],
  name: string,
): Record<string, string> {
  const { labels = {} } = nodes.find(({ metadata }) => metadata.name === name)?.metadata ?? {};
  return Object.fromEntries(
    TOPOLOGY.flatMap((key) => {
      const value = labels[key];
      return value === undefined ? [] : [[key, value]];
    }),
  );
}

/** A client can send a Pod without the fields that admission has set. */
function keepPriority(spec: JsonObject, before: Readonly<JsonObject>): void {
  for (const field of ['priority', 'preemptionPolicy'] as const) {
    if (isSet(before, field)) spec[field] ??= before[field];
  }
}

/** Adds tolerations of 300 s for a node that is not ready or unreachable. */
function addDefaultTolerations(spec: JsonObject): void {
  const tolerations = objectsIn(spec, 'tolerations');
  const added = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']
    .filter((key) => !tolerations.some((toleration) => tolerates(toleration, key)))
    .map((key) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 }));
  if (added.length > 0) spec['tolerations'] = [...tolerations, ...added];
}

function tolerates(toleration: JsonObject, key: string): boolean {
  return (
    ['', key].includes(textIn(toleration, 'key')) &&
    ['', 'NoExecute'].includes(textIn(toleration, 'effect'))
  );
}
