import { equalJson } from '../../api/equal.ts';
import { timestamp } from '../../api/conditions.ts';
import type { ApiObject, StoredObject } from '../resource-definition.ts';
import type { FieldError } from '../../api/field-error.ts';
import type { JsonObject } from '../schema/json-value.ts';
import type { KindTraits } from './definition.ts';
import { isSet, listIn, objectIn, textIn } from './fields.ts';
import { Findings } from './findings.ts';
import { canonicalizeQuantities } from './pod-defaults.ts';
import { compareQuantities } from '../../api/quantity.ts';

const ACCESS_MODES = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod'];

export const VOLUME_CLAIM: KindTraits = {
  returnsDeleted: true,
  defaults: { 'spec.volumeMode': 'Filesystem', 'status.phase': 'Pending' },
  hooks: {
    applyDefaults: applyClaimDefaults,
    prepareForUpdate: alignDataSources,
    validate: (claim) => {
      const findings = new Findings();
      validateClaimSpec(objectIn(claim, 'spec') ?? {}, 'spec', findings);
      return findings.errors;
    },
    validateUpdate: validateClaimUpdate,
  },
};

/** Defaults of a claim that a StatefulSet's template does not have. */
function applyClaimDefaults(claim: ApiObject): void {
  canonicalizeQuantities(objectIn(claim, 'status') ?? {}, 'capacity');
  applyClaimSpecDefaults(claim);
}

/** Defaults of the spec of a claim and of a template of claims. */
export function applyClaimSpecDefaults(claim: JsonObject): void {
  const resources = objectIn(objectIn(claim, 'spec'), 'resources');
  if (!resources) return;
  canonicalizeQuantities(resources, 'requests');
  canonicalizeQuantities(resources, 'limits');
}

/** The older name of the data source follows the newer one, and the other way round. */
function alignDataSources(claim: ApiObject): void {
  const spec = objectIn(claim, 'spec');
  if (!spec) return;
  const { dataSource, dataSourceRef } = spec;
  if (dataSource !== undefined && dataSourceRef === undefined) spec['dataSourceRef'] = dataSource;
}

/** Reports what is wrong with the spec of a claim. */
export function validateClaimSpec(spec: JsonObject, path: string, findings: Findings): void {
  validateAccessModes(spec, path, findings, 'at least 1 access mode is required');
  const size = objectIn(objectIn(spec, 'resources'), 'requests')?.['storage'];
  if (size === undefined) findings.required(`${path}.resources[storage]`);
  else if (typeof size === 'string' && compareQuantities(size, '0') <= 0) {
    findings.invalid(`${path}.resources[storage]`, size, 'must be greater than zero');
  }
  findings.requireOneOf(spec, 'volumeMode', ['Block', 'Filesystem'], path);
}

function validateAccessModes(
  spec: JsonObject,
  path: string,
  findings: Findings,
  absent?: string,
): void {
  const modes = listIn(spec, 'accessModes');
  if (modes.length === 0) findings.required(`${path}.accessModes`, absent);
  for (const mode of modes) {
    if (typeof mode === 'string' && ACCESS_MODES.includes(mode)) continue;
    findings.notSupported(`${path}.accessModes`, mode, ACCESS_MODES);
  }
  if (modes.includes('ReadWriteOncePod') && modes.some((mode) => mode !== 'ReadWriteOncePod')) {
    findings.forbidden(
      `${path}.accessModes`,
      'may not use ReadWriteOncePod with other access modes',
    );
  }
}

/** A claim may be bound once; a bound claim may grow. */
function validateClaimUpdate(next: StoredObject, previous: StoredObject): readonly FieldError[] {
  const findings = new Findings();
  const isBound = textIn(objectIn(next, 'status'), 'phase') === 'Bound';
  const before = objectIn(previous, 'spec') ?? {};
  const after = { ...objectIn(next, 'spec') };
  if (!isSet(before, 'volumeName')) delete after['volumeName'];
  const was = { ...before };
  if (isBound) {
    for (const spec of [was, after]) {
      delete spec['resources'];
      delete spec['volumeAttributesClassName'];
    }
  }
  if (!equalJson(after, was)) {
    findings.forbidden(
      'spec',
      'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims',
    );
  }
  return findings.errors;
}

/** Fields of the spec of a volume that are no volume sources. */
const NO_SOURCE: ReadonlySet<string> = new Set([
  'accessModes',
  'capacity',
  'claimRef',
  'mountOptions',
  'nodeAffinity',
  'persistentVolumeReclaimPolicy',
  'storageClassName',
  'volumeAttributesClassName',
  'volumeMode',
]);

export const PERSISTENT_VOLUME: KindTraits = {
  returnsDeleted: true,
  defaults: {
    'spec.persistentVolumeReclaimPolicy': 'Retain',
    'spec.volumeMode': 'Filesystem',
    'status.phase': 'Pending',
  },
  hooks: {
    applyDefaults: (volume) => {
      const spec = objectIn(volume, 'spec');
      if (!spec) return;
      canonicalizeQuantities(spec, 'capacity');
      const hostPath = objectIn(spec, 'hostPath');
      if (hostPath && !isSet(hostPath, 'type')) hostPath['type'] = '';
    },
    prepareForCreate: (volume, { now }) => markPhase(volume, undefined, now),
    prepareForUpdate: (volume, previous, { now }) => markPhase(volume, previous, now),
    validate: validateVolume,
  },
};

/** Records when the phase changed. */
function markPhase(volume: ApiObject, previous: StoredObject | undefined, now: number): void {
  const status = objectIn(volume, 'status');
  const before = objectIn(previous, 'status');
  if (!status || textIn(status, 'phase') === textIn(before, 'phase')) return;
  volume['status'] = { ...status, lastPhaseTransitionTime: timestamp(now) };
}

function validateVolume(volume: StoredObject): readonly FieldError[] {
  const findings = new Findings();
  const spec = objectIn(volume, 'spec') ?? {};
  validateAccessModes(spec, 'spec', findings);
  const capacity = objectIn(spec, 'capacity') ?? {};
  if (Object.keys(capacity).length === 0) findings.required('spec.capacity');
  if (Object.keys(capacity).join() !== 'storage') {
    findings.notSupported('spec.capacity', capacity, ['storage']);
  }
  const storage = textIn(capacity, 'storage');
  if (storage !== '' && compareQuantities(storage, '0') <= 0) {
    findings.invalid('spec.capacity[storage]', storage, 'must be greater than zero');
  }
  const hostPath = objectIn(spec, 'hostPath');
  if (hostPath) {
    findings.requireText(hostPath, 'path', 'spec.hostPath');
    const place = textIn(hostPath, 'path');
    if (place.split('/').includes('..')) {
      findings.invalid('spec.hostPath.path', place, "must not contain '..'");
    }
  }
  const policies = ['Delete', 'Recycle', 'Retain'];
  findings.requireOneOf(spec, 'persistentVolumeReclaimPolicy', policies, 'spec');
  const [, ...more] = Object.keys(spec).filter((field) => !NO_SOURCE.has(field));
  for (const field of more) {
    findings.forbidden(`spec.${field}`, 'may not specify more than 1 volume type');
  }
  if (Object.keys(spec).every((field) => NO_SOURCE.has(field))) {
    findings.required('spec', 'must specify a volume type');
  }
  findings.requireOneOf(spec, 'volumeMode', ['Block', 'Filesystem'], 'spec');
  return findings.errors;
}
