import type { ResourceDefinition } from '../../objects/resource-definition.ts';
import { AGE_COLUMN, column, numeric } from '../../table/column.ts';
import { subresourceKind } from '../shared/subresource-kind.ts';

/** The kind that `/scale` represents every scalable kind as. */
export const SCALE: ResourceDefinition = subresourceKind('autoscaling', 'v1', 'Scale', [
  column('Name', 'Name of the scaled object.', ({ metadata }) => metadata.name),
  numeric('Desired', 'spec.replicas'),
  numeric('Available', 'status.replicas'),
  AGE_COLUMN,
]);
