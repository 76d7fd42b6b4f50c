import { goJson } from '../../../util/go-format.ts';
import { compareText, repeatedIndexes } from '../../../util/values.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { columns, field, flagColumn } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { requireSelectorKey } from '../shared/label-selector-validation.ts';
import { NODE_LABELS } from '../shared/warnings.ts';
import { validateDriverAndParameters } from './class-parameters.ts';

export const STORAGE_CLASS: BuiltinKind = {
  resource: 'storage.k8s.io/storageclasses',
  revalidatesName: 'object',
  returnsDeleted: true,
  defaults: { reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' },
  immutable: ['parameters', 'provisioner', 'reclaimPolicy', 'volumeBindingMode'],
  hidesImmutable: true,
  validate: validateClass,
  columns: columns(
    field('Provisioner', 'provisioner'),
    field('ReclaimPolicy', 'reclaimPolicy', 'Delete'),
    field('VolumeBindingMode', 'volumeBindingMode', 'Immediate'),
    { ...flagColumn('AllowVolumeExpansion', 'allowVolumeExpansion'), type: 'string' },
  ),
  warnings: (object) =>
    object
      .items('allowedTopologies')
      .flatMap((topology) => topology.items('matchLabelExpressions'))
      .filter((expression) => Object.hasOwn(NODE_LABELS, expression.text('key')))
      .map((expression) => `${expression.at('key')}: ${NODE_LABELS[expression.text('key')]}`),
};

function validateClass(object: CheckedObject): void {
  validateDriverAndParameters(object, 'provisioner');
  object.requireOneOf('reclaimPolicy', ['Delete', 'Retain']);
  object.requireSupported('volumeBindingMode', ['Immediate', 'WaitForFirstConsumer']);
  // As upstream, a term without expressions is a duplicate of each place of the list.
  const terms = object.list('allowedTopologies').map(() => '[]');
  for (const topology of object.items('allowedTopologies')) {
    const keys = new Map<string, readonly unknown[]>();
    for (const expression of topology.items('matchLabelExpressions')) {
      const values = expression.list('values');
      if (values.length === 0) expression.required('values');
      const repeated = repeatedIndexes(values);
      for (const [index, value] of values.entries()) {
        if (repeated.has(index)) expression.duplicate(`values[${index}]`, value);
      }
      requireSelectorKey(expression, 'key');
      if (keys.has(expression.text('key'))) expression.duplicate('key');
      keys.set(expression.text('key'), [...new Set(values)].map(String).sort());
    }
    const term = goJson([...keys].sort(([a], [b]) => compareText(a, b)));
    for (const other of terms) {
      if (other === term) topology.duplicate('matchLabelExpressions', '');
    }
    terms.push(term);
  }
}
