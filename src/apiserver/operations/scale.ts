import { shallowCopy } from '../objects/resource-definition.ts';
import type { ScaleFieldPaths } from '../objects/subresources.ts';
import { formatLabelSelector } from '../../api/label-selector.ts';
import type { ManagedFieldsEntry } from '../../api/object.ts';
import type { Answer, Call } from './call.ts';
import { fieldPath, valueAtPath, withValueAt } from '../objects/field-path.ts';
import { apiVersionIn, toRequestedVersion } from '../request/negotiation.ts';
import { decodeAs } from '../request/object-decoder.ts';
import { duplicatesOf, reportStrictErrors } from '../request/strict-errors.ts';
import { unprocessablePatch } from '../request/decoding-errors.ts';
import { requireGoTypes } from '../request/go-types.ts';
import {
  contentType,
  isApplyPatch,
  readApplyPatch,
  readJsonPatch,
} from '../request/request-body.ts';
import { isTrue } from '../request/request-info.ts';
import { applyPatch } from '../managedfields/apply.ts';
import type { FieldSetPath } from '../managedfields/field-set.ts';
import { FieldSet, fieldElement } from '../managedfields/field-set.ts';
import type { FieldManager } from '../managedfields/managed-fields.ts';
import { Managers, withManagers } from '../managedfields/managed-fields.ts';
import { trackUpdateOfVersion } from '../managedfields/track-update.ts';
import { writeContext } from '../managedfields/field-manager.ts';
import type { JsonObject } from '../../util/json-value.ts';
import type {
  ApiObject,
  ResourceDefinition,
  StoredObject,
} from '../objects/resource-definition.ts';
import { fieldError } from '../../api/field-error.ts';
import { isRecord } from '../../util/values.ts';
import {
  badRequest,
  conflict,
  internalError,
  invalidError,
  methodNotAllowed,
} from '../objects/status-error.ts';
import { SCALE } from '../builtin/autoscaling/scale.ts';
import { appliedFields, appliedObject } from './apply.ts';
import {
  STRATEGIC_PATCH,
  decodePatched,
  patchedBody,
  patching,
  requireApiVersion,
} from './patch.ts';
import { attributesOf } from '../admission/admit.ts';
import { existing } from './read.ts';
import { requireIdentity, requireSameObject } from './identity.ts';
import { guaranteedUpdate, storeUpdate } from './guaranteed-update.ts';
import { withDefaults } from '../strategy/defaults.ts';

export async function getScale(call: Call): Promise<Answer> {
  const stored = existing(call);
  await call.backend.converter.prepare([stored], call.definition);
  const object = toRequestedVersion(stored, call.definition);
  const { specReplicasPath } = pathsOf(call.definition);
  // A write may set replicas that are absent.
  if (valueAtPath(object, fieldPath(specReplicasPath)) === undefined) {
    throw internalError(
      `the spec replicas field ${JSON.stringify(specReplicasPath)} does not exist`,
    );
  }
  return answer(scaleOf(object, call));
}

export async function updateScale(call: Call): Promise<Answer> {
  const scale = await decodeAs(SCALE, call);
  requireIdentity(call, scale);
  return guaranteedUpdate(call, async (stored) => {
    requireSameObject(call, scale, stored.metadata);
    const present = presentScale(call, toRequestedVersion(stored, call.definition));
    return answer(await storeScale(call, stored, trackedScale(call, present, scale)));
  });
}

export async function patchScale(call: Call): Promise<Answer> {
  const isApply = isApplyPatch(contentType(call.request));
  const sent = isApply ? readApplyPatch(call.request) : readJsonPatch(call.request, true);
  return guaranteedUpdate(call, async (stored) => {
    const present = presentScale(call, toRequestedVersion(stored, call.definition));
    const next = isApply
      ? decodeScale(call, await applyScale(call, sent, present))
      : trackedScale(call, present, decodeScale(call, await patchedBody(call, sent, present)));
    return answer(await storeScale(call, stored, next));
  });
}

/** As upstream, marks replicas that a custom resource does not have while its Scale is written. */
const NO_REPLICAS = -(2 ** 31);

const REPLICAS: FieldSetPath = ['f:spec', 'f:replicas'];

/** Returns the Scale of an object. Its managers are the owners of the replicas. */
function presentScale(call: Call, live: StoredObject): StoredObject {
  const { specReplicasPath } = pathsOf(call.definition);
  const isPresent = valueAtPath(live, fieldPath(specReplicasPath)) !== undefined;
  const scale = scaleOf(live, call);
  const shown =
    isPresent || !call.definition.custom ? scale : { ...scale, spec: { replicas: NO_REPLICAS } };
  const fields = FieldSet.ofPaths([REPLICAS]);
  const { apiVersion } = scale;
  const managers = [...managersOf(live)]
    .filter((manager) => ownedReplicas(call, manager) !== undefined)
    .reduce((all, owner) => all.with({ ...owner, apiVersion, fields }), Managers.NONE);
  return withManagers(shown, managers) as ApiObject;
}

/** Returns a Scale with its managers after a write other than apply. */
function trackedScale(call: Call, before: StoredObject, after: ApiObject): ApiObject {
  const context = writeContext({ ...call, definition: SCALE });
  return trackUpdateOfVersion({ ...context, before, after }) as ApiObject;
}

async function applyScale(call: Call, sent: unknown, live: StoredObject): Promise<JsonObject> {
  const result = await patching(() =>
    applyPatch({
      ...writeContext({ ...call, definition: SCALE }),
      live,
      applied: appliedFields(sent, SCALE),
      force: isTrue(call.info.query.get('force')),
    }),
  );
  return appliedObject(result);
}

function managersOf(object: StoredObject): Managers {
  return Managers.of(object) ?? Managers.NONE;
}

/** Returns the field of the replicas if the manager owns it in its version. */
function ownedReplicas(
  { definition: { group, plural }, backend }: Call,
  { apiVersion, fields }: FieldManager,
): FieldSet | undefined {
  const version = apiVersion.slice(apiVersion.indexOf('/') + 1);
  const { scale } = backend.registry.find(group, version, plural)?.subresources ?? {};
  const path = scale && fieldPath(scale.specReplicasPath).map(fieldElement);
  return path && fields.has(path) ? FieldSet.ofPaths([path]) : undefined;
}

/**
 * Returns the managed fields of an object after a write of its Scale. As upstream, an owner by an update loses the
 * replicas to another entry of its name, without time, even if the Scale does not change.
 */
function managedFieldsAfter(
  call: Call,
  live: StoredObject,
  scale: StoredObject,
): ManagedFieldsEntry[] {
  const before = managersOf(live);
  const after = managersOf(scale);
  const isKept = (manager: Omit<FieldManager, 'fields'>) => {
    const owner = manager.operation === 'Apply' ? before.find(manager) : undefined;
    return owner !== undefined && ownedReplicas(call, owner) && after.find(owner) !== undefined;
  };
  const kept = before.map((manager) => {
    const replicas = ownedReplicas(call, manager);
    return replicas && !isKept(manager) ? manager.fields.difference(replicas) : manager.fields;
  });
  const { apiVersion } = writeContext(call);
  const path = fieldPath(pathsOf(call.definition).specReplicasPath).map(fieldElement);
  const fields = FieldSet.ofPaths([path]);
  const owners = [...after]
    .filter((manager) => manager.fields.has(REPLICAS) && !isKept(manager))
    .map(({ name, operation, subresource }) => ({
      name,
      operation,
      subresource,
      apiVersion,
      fields,
    }));
  return kept.toEntries(owners);
}

function decodeScale(call: Call, patched: unknown): ApiObject {
  const ofScale = { ...call, definition: SCALE };
  const type = contentType(call.request);
  // As upstream, a strategic merge patch does not change the kind.
  const { kind } = SCALE;
  const isStrategic = type === STRATEGIC_PATCH && isRecord(patched);
  const scale = isStrategic ? { ...patched, apiVersion: apiVersionIn(SCALE), kind } : patched;
  const { object, strictErrors } = decodePatched(ofScale, scale);
  // The scheme of custom resources has no internal types.
  if (type !== STRATEGIC_PATCH && !call.definition.custom)
    requireApiVersion(ofScale, patched, (why) => unprocessablePatch(SCALE, patched, why));
  requireGoTypes(ofScale, object);
  reportStrictErrors(call, duplicatesOf(call), strictErrors, (why) =>
    unprocessablePatch(SCALE, patched, why),
  );
  requireIdentity(call, object);
  return object;
}

/** Writes the desired number of replicas to the scaled object, and nothing else. */
async function storeScale(
  call: Call,
  stored: StoredObject,
  draft: ApiObject,
): Promise<StoredObject> {
  const { admission } = call.backend;
  if (!admission.mutates(call.definition) && !admission.validates(call.definition))
    return writeScale(call, stored, draft);
  const objects = {
    oldObject: scaleOf(toRequestedVersion(stored, call.definition), call),
    kind: SCALE,
  };
  const attributes = attributesOf(call, 'UPDATE', { ...objects, object: draft });
  const object = (await admission.mutate(attributes)) ?? draft;
  await admission.validate({ ...attributes, object });
  return writeScale({ ...call, admitted: true }, stored, object);
}

async function writeScale(
  call: Call,
  stored: StoredObject,
  scale: StoredObject,
): Promise<StoredObject> {
  const { definition } = call;
  const { resourceVersion, uid } = scale.metadata;
  const replicas = valueAtPath(scale, ['spec', 'replicas']) ?? 0;
  // Custom kinds have their own validation.
  if (Number(replicas) < 0 && !definition.custom) {
    throw invalidError(SCALE, stored.metadata.name, [
      fieldError.invalid('spec.replicas', replicas, 'must be greater than or equal to 0'),
    ]);
  }
  // As upstream, which checks that of a custom resource in a PUT only.
  if (uid && uid !== stored.metadata.uid && !definition.custom) {
    throw conflict(
      { ...definition, plural: `${definition.plural}/scale` },
      stored.metadata.name,
      `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${stored.metadata.uid}`,
    );
  }
  const { specReplicasPath } = pathsOf(definition);
  if (replicas === NO_REPLICAS) {
    throw badRequest(`the spec replicas field ${JSON.stringify(specReplicasPath)} cannot be empty`);
  }
  const live = toRequestedVersion(stored, definition);
  const next = withValueAt(shallowCopy(live), fieldPath(specReplicasPath), replicas);
  if (resourceVersion) next.metadata.resourceVersion = resourceVersion;
  const managedFields = managedFieldsAfter(call, live, scale);
  if (managedFields.length > 0) next.metadata.managedFields = managedFields;
  else delete next.metadata.managedFields;
  const object = await storeUpdate(call, stored, () => ({
    object: withDefaults(next, definition, 'keepNulls'),
  }));
  await call.backend.converter.prepare([object], definition);
  return scaleOf(toRequestedVersion(object, definition), call);
}

function scaleOf(object: StoredObject, { definition }: Pick<Call, 'definition'>): StoredObject {
  const { specReplicasPath, statusReplicasPath, labelSelectorPath } = pathsOf(definition);
  const replicas = valueAtPath(object, fieldPath(specReplicasPath));
  const selector =
    labelSelectorPath &&
    selectorText(valueAtPath(object, fieldPath(labelSelectorPath)), definition);
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
      replicas: valueAtPath(object, fieldPath(statusReplicasPath)) ?? 0,
      ...(selector && { selector }),
    },
  };
}

/** Built-in kinds have a selector object, a ReplicationController has labels, and custom kinds have a string. */
function selectorText(selector: unknown, { custom }: ResourceDefinition): string {
  if (typeof selector === 'string') return selector;
  if (custom || !isRecord(selector)) return '';
  const { matchLabels, matchExpressions } = selector;
  const isOfLabels = !isRecord(matchLabels) && !Array.isArray(matchExpressions);
  return formatLabelSelector(isOfLabels ? { matchLabels: selector } : selector);
}

function pathsOf({ subresources }: ResourceDefinition): ScaleFieldPaths {
  if (!subresources.scale) throw methodNotAllowed();
  return subresources.scale;
}

function answer(object: StoredObject): Answer {
  return { kind: 'object', code: 200, object, definition: SCALE };
}
