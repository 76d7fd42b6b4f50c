import { formatLabelSelector } from '../../api/label-selector.ts';
import type { MaybePromise } from '../../util/maybe-promise.ts';
import { whenReady } from '../../util/maybe-promise.ts';
import type { Answer, Call } from '../call.ts';
import { fieldPath, valueAt, withValueAt } from '../field-path.ts';
import { inVersion } from '../negotiation.ts';
import {
  decodeBody,
  duplicatesOf,
  refusePatch,
  reportOddities,
  requireGoTypes,
} from '../object-decoder.ts';
import { contentType, isApplyPatch } from '../request-body.ts';
import { isTrue } from '../request-info.ts';
import { applyPatch } from '../patch/apply.ts';
import { FieldSet, fieldElement } from '../patch/field-set.ts';
import { Managers, withManagers } from '../patch/managed-fields.ts';
import { managerOf } from '../patch/track-update.ts';
import { linkedSchema } from '../builtin/schemas.ts';
import { writeContext } from '../field-manager.ts';
import type { JsonObject } from '../schema/json-value.ts';
import type {
  ApiObject,
  ResourceDefinition,
  ScalePaths,
  StoredObject,
} from '../resource-definition.ts';
import { fieldError } from '../../api/field-error.ts';
import { isRecord } from '../../util/values.ts';
import { badRequest, conflict, internalError, invalid, methodNotAllowed } from '../status-error.ts';
import { SCALE_COLUMNS } from '../table/workload-columns.ts';
import {
  STRATEGIC_PATCH,
  appliedFields,
  appliedObject,
  decodePatched,
  patchedBody,
  patching,
  requireApiVersion,
} from './patch.ts';
import { attributesOf } from './admit.ts';
import { existing } from './read.ts';
import { mutable } from './successor.ts';
import { requireName } from './update.ts';
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
  get schema() {
    return linkedSchema('io.k8s.api.autoscaling.v1.Scale');
  },
};

export function getScale(call: Call): Answer {
  const object = inVersion(existing(call), call.definition);
  const { specReplicasPath } = pathsOf(call.definition);
  // A write may set replicas that are absent.
  if (valueAt(object, fieldPath(specReplicasPath)) === undefined) {
    throw internalError(
      `the spec replicas field ${JSON.stringify(specReplicasPath)} does not exist`,
    );
  }
  return answer(scaleOf(object, call));
}

export function updateScale(call: Call): MaybePromise<Answer> {
  const scale = decodeBody({ ...call, definition: SCALE });
  requireGoTypes({ ...call, definition: SCALE }, scale);
  requireName(scale, call.info.name ?? '');
  return whenReady(storeScale(call, existing(call), scale), answer);
}

export function patchScale(call: Call): MaybePromise<Answer> {
  const stored = existing(call);
  const live = inVersion(stored, call.definition);
  const scale = patchable(scaleOf(live, call), live, call);
  if (isApplyPatch(contentType(call.request))) {
    const applied = applyScale(call, live, scale);
    return whenReady(
      storeScale(call, stored, decodeScale(call, applied.scale), applied.managers),
      answer,
    );
  }
  const patched = patchedBody(call, contentType(call.request), scale);
  return whenReady(storeScale(call, stored, decodeScale(call, patched)), answer);
}

/** As upstream, marks replicas that a custom resource does not have while its Scale is patched. */
const NO_REPLICAS = -(2 ** 31);

function patchable(scale: StoredObject, live: StoredObject, { definition }: Call): StoredObject {
  const { specReplicasPath } = pathsOf(definition);
  const isPresent = valueAt(live, fieldPath(specReplicasPath)) !== undefined;
  return isPresent || !definition.custom ? scale : { ...scale, spec: { replicas: NO_REPLICAS } };
}

/** The owner of the number of replicas of a Scale. */
const REPLICAS = FieldSet.ofPaths([['f:spec', 'f:replicas']]);

/** Applies a Scale. Owners of its replicas are the owners of the replicas of the scaled object. */
function applyScale(
  call: Call,
  live: StoredObject,
  scale: StoredObject,
): { readonly scale: JsonObject; readonly managers: Managers } {
  const { definition } = call;
  const path = FieldSet.ofPaths([
    fieldPath(pathsOf(definition).specReplicasPath).map(fieldElement),
  ]);
  const managers = Managers.of(live) ?? Managers.NONE;
  const owners = [...managers].filter(({ fields }) => !fields.intersection(path).isEmpty);
  const ofScale = owners.map((owner) => ({
    ...owner,
    apiVersion: 'autoscaling/v1',
    fields: REPLICAS,
  }));
  const result = patching(() =>
    applyPatch({
      ...writeContext({ ...call, definition: SCALE }),
      schema: linkedSchema('io.k8s.api.autoscaling.v1.Scale'),
      live: withManagers(
        scale,
        ofScale.reduce((all, owner) => all.with(owner), Managers.NONE),
      ),
      applied: appliedFields(call, SCALE),
      force: isTrue(call.info.query.get('force')),
    }),
  );
  const applied = appliedObject(result);
  const left = Managers.of(applied) ?? Managers.NONE;
  const kept = managers.map((manager) =>
    owners.includes(manager) && !left.find({ ...manager, apiVersion: 'autoscaling/v1' })
      ? manager.fields.difference(path)
      : manager.fields,
  );
  const self = managerOf(writeContext(call), 'Apply');
  const owns = left.find(self) !== undefined && !kept.find(self);
  return { scale: applied, managers: owns ? kept.with({ ...self, fields: path }) : kept };
}

function decodeScale(call: Call, patched: unknown): ApiObject {
  const ofScale = { ...call, definition: SCALE };
  const { object, oddities } = decodePatched(ofScale, patched);
  const type = contentType(call.request);
  if (type !== STRATEGIC_PATCH)
    requireApiVersion(ofScale, patched, (why) => refusePatch(patched, why));
  requireGoTypes(ofScale, object);
  reportOddities(call, duplicatesOf(call), oddities, (why) => refusePatch(patched, why));
  requireName(object, call.info.name ?? '');
  return object;
}

/** Writes the desired number of replicas to the scaled object, and nothing else. */
function storeScale(
  call: Call,
  stored: StoredObject,
  draft: ApiObject,
  managers?: Managers,
): MaybePromise<StoredObject> {
  const { admission } = call.backend;
  if (!admission.mutates(call.definition) && !admission.validates)
    return writeScale(call, stored, draft, managers);
  const objects = { oldObject: scaleOf(inVersion(stored, call.definition), call), kind: SCALE };
  const attributes = attributesOf(call, 'UPDATE', { ...objects, object: draft });
  return whenReady(admission.mutate(attributes), (object = draft) =>
    whenReady(admission.validate({ ...attributes, object }), () =>
      writeScale({ ...call, admitted: true }, stored, object, managers),
    ),
  );
}

function writeScale(
  call: Call,
  stored: StoredObject,
  scale: StoredObject,
  managers: Managers | undefined,
): MaybePromise<StoredObject> {
  const { definition } = call;
  const { resourceVersion, uid } = scale.metadata;
  if (uid && uid !== stored.metadata.uid) {
    throw conflict(
      definition,
      stored.metadata.name,
      `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${stored.metadata.uid}`,
    );
  }
  const replicas = valueAt(scale, ['spec', 'replicas']) ?? 0;
  // Custom kinds have their own validation.
  if (Number(replicas) < 0 && !definition.custom) {
    throw invalid(SCALE, stored.metadata.name, [
      fieldError.invalid('spec.replicas', replicas, 'must be greater than or equal to 0'),
    ]);
  }
  const { specReplicasPath } = pathsOf(definition);
  if (replicas === NO_REPLICAS) {
    throw badRequest(`the spec replicas field ${JSON.stringify(specReplicasPath)} cannot be empty`);
  }
  const next = withValueAt(
    mutable(inVersion(stored, definition)),
    fieldPath(specReplicasPath),
    replicas,
  );
  if (resourceVersion) next.metadata.resourceVersion = resourceVersion;
  const owned = managers ? (withManagers(next, managers) as ApiObject) : next;
  return whenReady(storeChange(call, stored, owned, managers && 'applied'), (object) =>
    whenReady(call.backend.converter.prepare([object], definition), () =>
      scaleOf(inVersion(object, definition), call),
    ),
  );
}

function scaleOf(object: StoredObject, { definition }: Pick<Call, 'definition'>): StoredObject {
  const { specReplicasPath, statusReplicasPath, labelSelectorPath } = pathsOf(definition);
  const replicas = valueAt(object, fieldPath(specReplicasPath));
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
    // As upstream, a Scale omits 0 replicas.
    spec: replicas ? { replicas } : {},
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
