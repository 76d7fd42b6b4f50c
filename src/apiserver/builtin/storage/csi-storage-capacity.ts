import { nameProblems } from '../../../api/object-names.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { validateAmount } from '../pods/container-resources.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { validateLabelSelector } from '../shared/label-selector-validation.ts';
import { NODE_LABELS, nodeLabelWarnings } from '../shared/warnings.ts';

export const CSI_STORAGE_CAPACITY: BuiltinKind = {
  resource: 'storage.k8s.io/csistoragecapacities',
  revalidatesName: 'object',
  unconditionalUpdate: false,
  immutable: ['nodeTopology', 'storageClassName'],
  validate: (object) => {
    const name = object.text('storageClassName');
    object.problems('storageClassName', nameProblems(name, 'dns1123Subdomain'), name);
    validateAmount(object, 'capacity', 'capacity', object.text('capacity'));
    validateLabelSelector(object.get('nodeTopology'));
  },
  warnings: (object) => labelSelectorWarnings(object.in('nodeTopology')),
};

function labelSelectorWarnings(selector: CheckedObject): string[] {
  const labels = selector.in('matchLabels');
  const ofLabels = Object.keys(labels.value)
    .filter((key) => Object.hasOwn(NODE_LABELS, key))
    .map((key) => `${labels.at(key)}: ${NODE_LABELS[key]}`);
  const expressions = selector.items('matchExpressions');
  return [
    ...expressions.flatMap((expression) => nodeLabelWarnings(expression, 'key')),
    ...ofLabels,
  ];
}
