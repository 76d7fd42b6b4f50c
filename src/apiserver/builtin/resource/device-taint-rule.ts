import { objectIn, textIn } from '../../../util/json-value.ts';
import { ageOf, column, columns, field } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { STATUS_ONLY } from '../shared/builtin-kind.ts';

export const DEVICE_TAINT_RULE: BuiltinKind = {
  resource: 'resource.k8s.io/devicetaintrules',
  ...STATUS_ONLY,
  tracksGeneration: true,
  columns: columns(
    field('Key', 'spec.taint.key'),
    field('Value', 'spec.taint.value'),
    field('Effect', 'spec.taint.effect'),
    column('TimeAdded', 'Time since the taint was added.', (rule, nowMs) => {
      const added = textIn(objectIn(objectIn(rule, 'spec'), 'taint'), 'timeAdded');
      return added === '' ? '' : ageOf(added, nowMs);
    }),
  ),
};
