import type { TableColumn } from '../../objects/resource-definition.ts';
import { columns, field, fieldColumn } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

export const PRIORITY_LEVEL_CONFIGURATION: BuiltinKind = {
  resource: 'flowcontrol.apiserver.k8s.io/prioritylevelconfigurations',
  tracksGeneration: true,
  defaults: {
    ...defaultsAt('spec.exempt', { nominalConcurrencyShares: 0, lendablePercent: 0 }),
    ...defaultsAt('spec.limited', { nominalConcurrencyShares: 30, lendablePercent: 0 }),
    ...defaultsAt('spec.limited.limitResponse.queuing', {
      handSize: 8,
      queueLengthLimit: 50,
      queues: 64,
    }),
  },
  columns: columns(
    field('Type', 'spec.type'),
    limit('NominalConcurrencyShares', 'spec.limited.nominalConcurrencyShares'),
    limit('Queues', 'spec.limited.limitResponse.queuing.queues'),
    limit('HandSize', 'spec.limited.limitResponse.queuing.handSize'),
    limit('QueueLengthLimit', 'spec.limited.limitResponse.queuing.queueLengthLimit'),
  ),
};

function limit(name: string, path: string): TableColumn {
  return fieldColumn(name, path, (value) => (typeof value === 'number' ? value : '<none>'));
}

function defaultsAt(path: string, values: Readonly<Record<string, unknown>>): object {
  return Object.fromEntries(
    Object.entries(values).map(([field, value]) => [`${path}.${field}`, value]),
  );
}
