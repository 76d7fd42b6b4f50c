import { timestamp } from '../../api/conditions.ts';
import type { Answer, Call } from '../call.ts';
import { isDryRun } from '../call.ts';
import { deleteOptionsOf } from '../delete-options.ts';
import { valueAt, withValueAt } from '../field-path.ts';
import { readObject } from '../request-body.ts';
import { fieldError } from '../schema/field-error.ts';
import { isObject } from '../schema/json-value.ts';
import { badRequest, conflict, invalid } from '../status-error.ts';
import { deleteObject } from './delete.ts';
import { existing } from './read.ts';
import { mutable } from './successor.ts';

const DONE: Answer = {
  kind: 'json',
  code: 201,
  value: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 },
};

const SCHEDULED = 'PodScheduled';
const BINDING = { group: '', version: 'v1', kind: 'Binding' };
const EVICTION = { group: 'policy', version: 'v1', kind: 'Eviction' };

/** `POST /binding`: a scheduler has found a node. A pod is bound once. */
export function bind(call: Call): Answer {
  const { backend, definition } = call;
  const pod = existing(call);
  const { name } = pod.metadata;
  const node = valueAt(readObject(call.request, BINDING), ['target', 'name']);
  if (typeof node !== 'string' || node === '') {
    throw invalid(BINDING, name, [fieldError.required('target.name')]);
  }
  if (pod.metadata.deletionTimestamp !== undefined) {
    throw conflict(definition, name, `pod ${name} is being deleted, cannot be assigned to a host`);
  }
  const assigned = valueAt(pod, ['spec', 'nodeName']);
  if (assigned) {
    throw conflict(
      definition,
      name,
      `pod ${name} is already assigned to node ${JSON.stringify(assigned)}`,
    );
  }
  const others = valueAt(pod, ['status', 'conditions']);
  const conditions = [
    ...(Array.isArray(others)
      ? others.filter((each) => valueAt(each, ['type']) !== SCHEDULED)
      : []),
    {
      type: SCHEDULED,
      status: 'True',
      lastTransitionTime: timestamp(backend.clock.now()),
    },
  ];
  const bound = withValueAt(
    withValueAt(mutable(pod), ['spec', 'nodeName'], node),
    ['status', 'conditions'],
    conditions,
  );
  if (isDryRun(call)) return DONE;
  backend.observer.written(definition, backend.store.collection(definition).put(bound));
  return DONE;
}

/** `POST /eviction`: a deletion that budgets may refuse; this server has no budgets. */
export function evict(call: Call): Answer {
  const pod = existing(call);
  const eviction = readObject(call.request, EVICTION);
  const name = valueAt(eviction, ['metadata', 'name']);
  if (name !== undefined && name !== pod.metadata.name) {
    throw badRequest('name in URL does not match name in Eviction object');
  }
  const options = eviction['deleteOptions'];
  deleteObject(call, pod, deleteOptionsOf(call, isObject(options) ? options : {}));
  return DONE;
}
