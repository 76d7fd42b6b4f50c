import { timestamp } from '../../api/conditions.ts';
import { isRecord } from '../../util/values.ts';
import { withPodCondition } from '../builtin/pods/pod-conditions.ts';
import { subresourceKind } from '../builtin/shared/subresource-kind.ts';
import { withValueAt } from '../objects/field-path.ts';
import type { StoredObject } from '../objects/resource-definition.ts';
import { shallowCopy } from '../objects/resource-definition.ts';
import { badRequest } from '../objects/status-error.ts';
import { deleteOptionsOf } from '../request/delete-options.ts';
import { decodeAs } from '../request/object-decoder.ts';
import { readObject } from '../request/request-body.ts';
import type { Answer, Call } from './call.ts';
import { SUCCESS } from './call.ts';
import { deleteObject, requirePreconditions } from './deletion.ts';
import { chargeBudget } from './disruption-budgets.ts';
import { existing } from './read.ts';

const EVICTION = subresourceKind('policy', 'v1', 'Eviction');

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
  await deleteObject(call, marked, checked);
  return SUCCESS;
}

function markEvicted({ backend, definition }: Call, pod: StoredObject): StoredObject {
  const condition = {
    type: 'DisruptionTarget',
    status: 'True',
    lastTransitionTime: timestamp(backend.clock.now()),
    reason: 'EvictionByEvictionAPI',
    message: 'Eviction API: evicting',
  };
  const conditions = withPodCondition(pod, condition);
  const marked = withValueAt(shallowCopy(pod), ['status', 'conditions'], conditions);
  const written = backend.store.collection(definition).put(marked);
  backend.observer.written(definition, written);
  return written;
}
