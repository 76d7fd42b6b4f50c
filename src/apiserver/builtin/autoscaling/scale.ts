import type { ResourceDefinition } from '../../objects/resource-definition.ts';
import { linkedSchema } from '../../schema/builtin-schemas.ts';
import { AGE_COLUMN, column, numeric } from '../../table/column.ts';

/** The kind that `/scale` represents every scalable kind as. */
export const SCALE: ResourceDefinition = {
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
  columns: [
    column('Name', 'Name of the scaled object.', ({ metadata }) => metadata.name),
    numeric('Desired', 'spec.replicas'),
    numeric('Available', 'status.replicas'),
    AGE_COLUMN,
  ],
  get schema() {
    return linkedSchema('io.k8s.api.autoscaling.v1.Scale');
  },
};
