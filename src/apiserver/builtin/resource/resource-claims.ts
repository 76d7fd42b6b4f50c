import type { JsonObject } from '../../../util/json-value.ts';
import { listIn, objectIn, objectsIn, setDefault } from '../../../util/json-value.ts';
import { column, columns } from '../../table/column.ts';
import { dropDeallocatedDevices, validateClaimStatus } from './claim-status-validation.ts';
import { validateDeviceClaim } from './device-claim-validation.ts';
import { authorizeAdminAccess, authorizeClaimStatus } from './device-claims.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { validateClaimMetadata } from '../pods/template-metadata.ts';
import { STATUS_ONLY } from '../shared/builtin-kind.ts';

/** The paths of a field of all requests of a claim. */
function requestFields(spec: string, field: string): string[] {
  return ['exactly', 'firstAvailable[]'].map(
    (place) => `${spec}.devices.requests[].${place}.${field}`,
  );
}

export const RESOURCE_CLAIM: BuiltinKind = {
  resource: 'resource.k8s.io/resourceclaims',
  revalidatesName: 'object',
  ...STATUS_ONLY,
  returnsDeleted: true,
  disabledFields: [
    ...requestFields('spec', 'derivedAttributes'),
    'status.allocation.devices.results[].skipNodeOperations',
  ],
  immutable: ['spec'],
  hidesImmutable: true,
  hooks: {
    applyDefaults: (claim) => applyRequestDefaults(objectIn(claim, 'spec')),
    prepareForUpdate: dropDeallocatedDevices,
    authorize: (claim, previous, context) =>
      previous && context.subresource === 'status'
        ? authorizeClaimStatus(claim, previous, context)
        : authorizeAdminAccess(claim, previous, context),
  },
  validate: (claim, previous) => {
    if (!previous) validateDeviceClaim(claim.in('spec').in('devices'));
  },
  validateUpdate: (claim, previous, subresource) => {
    if (subresource === 'status') validateClaimStatus(claim, previous);
  },
  columns: columns(
    column('State', 'State of the claim.', (claim) => {
      const status = objectIn(claim, 'status');
      const isDeleted = claim.metadata.deletionTimestamp !== undefined;
      const isAllocated = objectIn(status, 'allocation') !== undefined;
      const isReserved = listIn(status, 'reservedFor').length > 0;
      return [
        ...(isDeleted ? ['deleted'] : isAllocated ? [] : ['pending']),
        ...(isAllocated ? ['allocated', ...(isReserved ? ['reserved'] : [])] : []),
      ].join(',');
    }),
  ),
};

export const RESOURCE_CLAIM_TEMPLATE: BuiltinKind = {
  resource: 'resource.k8s.io/resourceclaimtemplates',
  revalidatesName: 'object',
  returnsDeleted: true,
  disabledFields: requestFields('spec.spec', 'derivedAttributes'),
  immutable: ['spec'],
  hooks: {
    applyDefaults: (template) => applyRequestDefaults(objectIn(objectIn(template, 'spec'), 'spec')),
    authorize: authorizeAdminAccess,
  },
  validate: (template) => {
    const spec = template.in('spec');
    validateClaimMetadata(spec);
    validateDeviceClaim(spec.in('spec').in('devices'));
  },
  columns: columns(),
};

/** A request is for one device, unless it is for all. */
function applyRequestDefaults(spec: JsonObject | undefined): void {
  for (const request of objectsIn(objectIn(spec, 'devices'), 'requests')) {
    const exactly = objectIn(request, 'exactly');
    for (const each of [...(exactly ? [exactly] : []), ...objectsIn(request, 'firstAvailable')]) {
      setDefault(each, 'allocationMode', 'ExactCount');
      const isCounted = each['allocationMode'] === 'ExactCount';
      if (isCounted && !each['count']) each['count'] = 1;
    }
  }
}
