import { timestamp } from '../../api/conditions.ts';
import { fieldError, formatFieldError } from '../../api/field-error.ts';
import { nameProblems } from '../../api/object-names.ts';
import { topologyLabels } from '../builtin/pods/pod-admission.ts';
import { withPodCondition } from '../builtin/pods/pod-conditions.ts';
import { subresourceKind } from '../builtin/shared/subresource-kind.ts';
import { valueAtPath, withValueAt } from '../objects/field-path.ts';
import type { ApiObject } from '../objects/resource-definition.ts';
import { shallowCopy } from '../objects/resource-definition.ts';
import { StatusError, badRequest, conflict } from '../objects/status-error.ts';
import { decodeAs } from '../request/object-decoder.ts';
import { isDryRun } from '../request/request-info.ts';
import type { Answer, Call } from './call.ts';
import { SUCCESS } from './call.ts';
import { existing } from './read.ts';

const BINDING = subresourceKind('', 'v1', 'Binding');

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
  const conditions = withPodCondition(pod, {
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
  if (isDryRun(call)) return SUCCESS;
  backend.observer.written(definition, backend.store.collection(definition).put(bound));
  return SUCCESS;
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
