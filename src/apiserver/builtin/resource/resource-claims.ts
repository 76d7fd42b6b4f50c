import { listIn, objectIn } from '../../../util/json-value.ts';
import { column, columns } from '../../table/column.ts';
import { authorizeAdminAccess, authorizeClaimStatus } from './device-claims.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { STATUS_ONLY } from '../shared/builtin-kind.ts';

export const RESOURCE_CLAIM: BuiltinKind = {
  resource: 'resource.k8s.io/resourceclaims',
  ...STATUS_ONLY,
  returnsDeleted: true,
  immutable: ['spec'],
  defaults: deviceRequests('spec.devices.requests[]'),
  hooks: {
    authorize: (claim, previous, context) =>
      previous && context.subresource === 'status'
        ? authorizeClaimStatus(claim, previous, context)
        : authorizeAdminAccess(claim, previous, context),
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
  returnsDeleted: true,
  immutable: ['spec'],
  defaults: deviceRequests('spec.spec.devices.requests[]'),
  hooks: { authorize: authorizeAdminAccess },
  columns: columns(),
};

function deviceRequests(path: string): Record<string, unknown> {
  return {
    [`${path}.exactly.allocationMode`]: 'ExactCount',
    [`${path}.exactly.count`]: 1,
    [`${path}.firstAvailable[].allocationMode`]: 'ExactCount',
    [`${path}.firstAvailable[].count`]: 1,
  };
}
