import { textIn } from '../../../util/json-value.ts';
import { column, columns, field, numeric } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { conditionOfType } from '../shared/cells.ts';

export const FLOW_SCHEMA: BuiltinKind = {
  resource: 'flowcontrol.apiserver.k8s.io/flowschemas',
  tracksGeneration: true,
  defaults: { 'spec.matchingPrecedence': 1000 },
  columns: [
    ...columns(
      field('PriorityLevel', 'spec.priorityLevelConfiguration.name'),
      numeric('MatchingPrecedence', 'spec.matchingPrecedence', 'string'),
      field('DistinguisherMethod', 'spec.distinguisherMethod.type', '<none>'),
    ),
    column('MissingPL', 'Whether the priority level does not exist.', (schema) => {
      const dangling = conditionOfType(schema, 'Dangling');
      return dangling ? textIn(dangling, 'status') : '?';
    }),
  ],
};
