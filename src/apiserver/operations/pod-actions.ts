import { nameProblems } from '../../api/object-names.ts';
import { isDryRun } from '../request/request-info.ts';
import { shallowCopy } from '../objects/resource-definition.ts';
import { timestamp } from '../../api/conditions.ts';
import type { Answer, Call } from './call.ts';
import { deleteOptionsOf } from '../request/delete-options.ts';
import { valueAtPath, withValueAt } from '../objects/field-path.ts';
import { subresourceKind } from '../builtin/shared/subresource-kind.ts';
import { decodeAs } from '../request/object-decoder.ts';
import { readObject } from '../request/request-body.ts';
import { fieldError, formatFieldError } from '../../api/field-error.ts';
import { isRecord } from '../../util/values.ts';
import { StatusError, badRequest, conflict } from '../objects/status-error.ts';
import type { ApiObject, StoredObject } from '../objects/resource-definition.ts';
import { topologyLabels } from '../builtin/pods/pod-admission.ts';
import { deleteObject, removeMarked, requirePreconditions } from './delete.ts';
import { chargeBudget } from './disruption-budgets.ts';
import { existing } from './read.ts';

const DONE: Answer = {
  kind: 'json',
  code: 201,
  value: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 },
};

const BINDING = subresourceKind('', 'v1', 'Binding');
const EVICTION = subresourceKind('policy', 'v1', 'Eviction');

/** `POST /bindings`: the name of the Pod is in the body. */
export async function bindNamed(call: Call): Promise<Answer> {
  const pods = call.backend.registry.find('', 'v1', 'pods');
  const binding = await decodeAs(BINDING, call);
  const { name } = binding.metadata;
  if (!pods || name === '') throw badRequest('name is required');
  return bindTo(binding, { ...call, definition: pods, info: { ...call.info, name } });
}

/** `POST /binding`: sets the node of a Pod, once. */
export async function bind(call: Call): Promise<Answer> {
  return bindTo(await decodeAs(BINDING, call), call);
}

function bindTo(binding: ApiObject, call: Call): Answer {
  const { backend, definition } = call;
  const node = targetOf(binding);
  const pod = existing(call);
  const { name } = pod.metadata;
  if (pod.metadata.deletionTimestamp !== undefined) {
    throw conflict(definition, name, `pod ${name} is being deleted, cannot be assigned to a host`);
  }
  const assigned = valueAtPath(pod, ['spec', 'nodeName']);
  if (assigned) {
    throw conflict(
      { group: '', plural: 'pods/binding' },
      name,
      `pod ${name} is already assigned to node ${JSON.stringify(assigned)}`,
    );
  }
  const conditions = withCondition(pod, {
    type: 'PodScheduled',
    status: 'True',
    lastTransitionTime: timestamp(backend.clock.now()),
  });
  const { labels, annotations } = binding.metadata;
  const nodes = backend.store.collection({ group: '', plural: 'nodes' }).list();
  const next = shallowCopy(pod);
  addTo(next, 'labels', { ...labels, ...topologyLabels(nodes, node) });
  addTo(next, 'annotations', annotations);
  const bound = withValueAt(
    withValueAt(next, ['spec', 'nodeName'], node),
    ['status', 'conditions'],
    conditions,
  );
  if (isDryRun(call)) return DONE;
  backend.observer.written(definition, backend.store.collection(definition).put(bound));
  return DONE;
}

function addTo(
  { metadata }: ApiObject,
  field: 'labels' | 'annotations',
  added: Readonly<Record<string, string>> = {},
): void {
  if (Object.keys(added).length > 0) metadata[field] = { ...metadata[field], ...added };
}

/** @throws {StatusError} 500, as kube-apiserver does, if it has no node */
function targetOf(binding: ApiObject): string {
  const kind = valueAtPath(binding, ['target', 'kind']);
  const name = valueAtPath(binding, ['target', 'name']);
  const errors = [
    ...(kind === undefined || kind === '' || kind === 'Node'
      ? []
      : [fieldError.notSupported('target.kind', kind, ['Node', '<empty>'])]),
    ...(typeof name === 'string' && name !== ''
      ? nameProblems(name, 'dns1123Subdomain').map((problem) =>
          fieldError.invalid('target.name', name, problem),
        )
      : [fieldError.required('target.name')]),
  ].map(formatFieldError);
  if (errors.length === 0) return String(name);
  throw StatusError.failure({
    code: 500,
    message: errors.length === 1 ? String(errors[0]) : `[${errors.join(', ')}]`,
  });
}

/** `POST /eviction`: a deletion that a PodDisruptionBudget may reject. */
export async function evict(call: Call): Promise<Answer> {
  const { apiVersion } = readObject(call.request, EVICTION);
  const isOld = apiVersion === 'policy/v1beta1';
  const eviction = await decodeAs(isOld ? { ...EVICTION, version: 'v1beta1' } : EVICTION, call);
  if (eviction.metadata.name !== call.info.name) {
    throw badRequest('name in URL does not match name in Eviction object');
  }
  const pod = existing(call);
  const given = eviction['deleteOptions'];
  const options = deleteOptionsOf(call, isRecord(given) ? given : {});
  chargeBudget(call.backend, pod, options);
  requirePreconditions(call.definition, pod, options);
  // The precondition has been checked, and the new condition changes the resourceVersion.
  const checked = { ...options, resourceVersion: undefined };
  const marked = options.dryRun ? pod : markEvicted(call, pod);
  const { object, isMarked } = deleteObject(call, marked, checked);
  if (isMarked) await removeMarked(call, object);
  return DONE;
}

function markEvicted({ backend, definition }: Call, pod: StoredObject): StoredObject {
  const condition = {
    type: 'DisruptionTarget',
    status: 'True',
    lastTransitionTime: timestamp(backend.clock.now()),
    reason: 'EvictionByEvictionAPI',
    message: 'Eviction API: evicting',
  };
  const conditions = withCondition(pod, condition);
  const marked = withValueAt(shallowCopy(pod), ['status', 'conditions'], conditions);
  const written = backend.store.collection(definition).put(marked);
  backend.observer.written(definition, written);
  return written;
}

interface PodCondition {
  readonly type: string;
  readonly status: string;
  readonly lastTransitionTime: string;
  readonly reason?: string;
  readonly message?: string;
}

/** Returns the conditions of the Pod with `condition` in place of the one of its type. */
function withCondition(pod: StoredObject, condition: PodCondition): unknown[] {
  const current = valueAtPath(pod, ['status', 'conditions']);
  const others = Array.isArray(current)
    ? current.filter((each) => valueAtPath(each, ['type']) !== condition.type)
    : [];
  return [...others, { lastProbeTime: null, ...condition }];
}
