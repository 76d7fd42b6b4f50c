import { columns, field } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { NODE_LABELS } from '../shared/warnings.ts';

export const RUNTIME_CLASS: BuiltinKind = {
  resource: 'node.k8s.io/runtimeclasses',
  createOnUpdate: true,
  unconditionalUpdate: false,
  immutable: ['handler'],
  columns: columns(field('Handler', 'handler')),
  warnings: (object) => {
    const selector = object.in('scheduling').in('nodeSelector');
    return Object.keys(selector.value)
      .filter((key) => Object.hasOwn(NODE_LABELS, key))
      .map((key) => `${selector.path}: ${NODE_LABELS[key]}`);
  },
};
