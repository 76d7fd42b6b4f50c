import { formatLabelSelector } from '../../api/label-selector.ts';
import type { MaybePromise } from '../../util/maybe-promise.ts';
import { whenReady } from '../../util/maybe-promise.ts';
import type { Answer, Call } from '../call.ts';
import { fieldPath, valueAt, withValueAt } from '../field-path.ts';
import { inVersion } from '../negotiation.ts';
import { decodeObject } from '../object-decoder.ts';
import { contentType, readObject } from '../request-body.ts';
import type { ResourceDefinition, ScalePaths, StoredObject } from '../resource-definition.ts';
import { fieldError } from '../schema/field-error.ts';
import { isRecord } from '../../util/values.ts';
import { badRequest, conflict, internalError, invalid, methodNotAllowed } from '../status-error.ts';
import { SCALE_COLUMNS } from '../table/builtin-columns.ts';
import { patchedBody } from './patch.ts';
import { attributesOf } from './admit.ts';
import { existing } from './read.ts';
import { mutable } from './successor.ts';
import { storeChange } from './write.ts';

/** The kind that `/scale` represents every scalable kind as. */
const SCALE: ResourceDefinition = {
  group: 'autoscaling',
  version: 'v1',
  plural: 'scales',
  singular: 'scale',
  kind: 'Scale',
  listKind: 'ScaleList',
  shortNames: [],
  categories: [],
  namespaced: true,
  subresources: {},
  columns: SCALE_COLUMNS,
};

export function getScale(call: Call): Answer {
  return answer(scaleOf(inVersion(existing(call), call.definition), call));
}

export function updateScale(call: Call): MaybePromise<Answer> {
  return whenReady(storeScale(call, existing(call), readObject(call.request, SCALE)), answer);
}

export function patchScale(call: Call): MaybePromise<Answer> {
  const stored = existing(call);
  const scale = scaleOf(inVersion(stored, call.definition), call);
  const patched = patchedBody(call, contentType(call.request), scale);
  return whenReady(storeScale(call, stored, patched), answer);
}

/** Writes the desired number of replicas to the scaled object, and nothing else. */
function storeScale(call: Call, stored: StoredObject, body: unknown): MaybePromise<StoredObject> {
  if (!isRecord(body)) throw badRequest('the scale is not an object');
  const { object: draft } = decodeObject(body, SCALE);
  const { admission } = call.backend;
  if (!admission.mutates(call.definition) && !admission.validates)
    return writeScale(call, stored, draft);
  const objects = { oldObject: scaleOf(inVersion(stored, call.definition), call), kind: SCALE };
  const attributes = attributesOf(call, 'UPDATE', { ...objects, object: draft });
  return whenReady(admission.mutate(attributes), (object = draft) =>
    whenReady(admission.validate({ ...attributes, object }), () =>
      writeScale({ ...call, admitted: true }, stored, object),
    ),
  );
}

function writeScale(
  call: Call,
  stored: StoredObject,
  scale: StoredObject,
): MaybePromise<StoredObject> {
  const { definition } = call;
  const { name, resourceVersion, uid } = scale.metadata;
  if (name && name !== stored.metadata.name) {
    throw badRequest(
      `the name of the object (${name}) does not match the name on the URL (${stored.metadata.name})`,
    );
  }
  if (uid && uid !== stored.metadata.uid) {
    throw conflict(
      definition,
      stored.metadata.name,
      `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${stored.metadata.uid}`,
    );
  }
  const replicas = valueAt(scale, ['spec', 'replicas']) ?? 0;
  if (!Number.isSafeInteger(replicas)) {
    throw badRequest(
      'Scale in version "v1" cannot be handled as a Scale: spec.replicas must be an integer',
    );
  }
  // Custom kinds have their own validation.
  if (Number(replicas) < 0 && !definition.custom) {
    throw invalid(SCALE, stored.metadata.name, [
      fieldError.invalid('spec.replicas', replicas, 'must be greater than or equal to 0'),
    ]);
  }
  const { specReplicasPath } = pathsOf(definition);
  const next = withValueAt(
    mutable(inVersion(stored, definition)),
    fieldPath(specReplicasPath),
    replicas,
  );
  if (resourceVersion) next.metadata.resourceVersion = resourceVersion;
  return whenReady(storeChange(call, stored, next), (object) =>
    whenReady(call.backend.converter.prepare([object], definition), () =>
      scaleOf(inVersion(object, definition), call),
    ),
  );
}

function scaleOf(object: StoredObject, { definition }: Pick<Call, 'definition'>): StoredObject {
  const { specReplicasPath, statusReplicasPath, labelSelectorPath } = pathsOf(definition);
  const replicas = valueAt(object, fieldPath(specReplicasPath));
  if (replicas === undefined) {
    throw internalError(
      `the spec replicas field ${JSON.stringify(specReplicasPath)} does not exist`,
    );
  }
  const selector =
    labelSelectorPath && selectorText(valueAt(object, fieldPath(labelSelectorPath)), definition);
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      uid,
      resourceVersion,
      creationTimestamp,
    },
    spec: { replicas },
    status: {
      replicas: valueAt(object, fieldPath(statusReplicasPath)) ?? 0,
      ...(selector && { selector }),
    },
  };
}

/** Built-in kinds have a selector object, custom kinds a string. */
function selectorText(selector: unknown, { custom }: ResourceDefinition): string {
  if (typeof selector === 'string') return selector;
  return !custom && isRecord(selector) ? formatLabelSelector(selector) : '';
}

function pathsOf({ subresources }: ResourceDefinition): ScalePaths {
  if (!subresources.scale) throw methodNotAllowed();
  return subresources.scale;
}

function answer(object: StoredObject): Answer {
  return { kind: 'object', code: 200, object, definition: SCALE };
}
