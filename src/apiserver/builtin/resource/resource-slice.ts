import { goQuote } from '../../../util/go-quote.ts';
import { fieldsAt } from '../../objects/field-path.ts';
import { columns, field } from '../../table/column.ts';
import { validateSlice } from './slice-validation.ts';
import { timeSliceTaints } from './taint-times.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

export const RESOURCE_SLICE: BuiltinKind = {
  resource: 'resource.k8s.io/resourceslices',
  tracksGeneration: true,
  returnsDeleted: true,
  immutable: ['spec.nodeName', 'spec.driver', 'spec.pool.name'],
  disabledFields: [
    'spec.partitionTypeAttribute',
    'spec.skipNodeOperations',
    'spec.devices[].nodeAllocatableResources',
    'spec.devices[].consumesCounters[].compatibilityGroups',
    ...['bools', 'ints', 'strings', 'versions'].map(
      (list) => `spec.devices[].attributes{}.${list}`,
    ),
  ],
  hooks: {
    prepareForCreate: (slice, { now }) => timeSliceTaints(slice, now),
    prepareForUpdate: (slice, _, { now }) => timeSliceTaints(slice, now),
  },
  validate: validateSlice,
  selectableFields: fieldsAt('spec.nodeName', 'spec.driver', 'spec.pool.name'),
  columns: columns(
    field('Node', 'spec.nodeName'),
    field('Driver', 'spec.driver'),
    field('Pool', 'spec.pool.name'),
  ),
  warnings: (slice) => {
    const driver = slice.in('spec').text('driver');
    return driver === driver.toLowerCase()
      ? []
      : [
          `spec.driver: driver names should be lowercase; ${goQuote(driver)} contains uppercase characters`,
        ];
  },
};
