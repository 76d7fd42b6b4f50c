import { objectIn, textIn } from '../../../util/json-value.ts';
import { AGE_COLUMN, NAME_COLUMN, column, field, qualified } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

export const INGRESS_CLASS: BuiltinKind = {
  resource: 'networking.k8s.io/ingressclasses',
  tracksGeneration: true,
  defaults: { 'spec.parameters.scope': 'Cluster' },
  immutable: ['spec.controller'],
  columns: [
    {
      ...NAME_COLUMN,
      value: ({ metadata: { name, annotations } }) =>
        annotations?.[DEFAULT_CLASS] === 'true' ? `${name} (default)` : name,
    },
    field('Controller', 'spec.controller'),
    column('Parameters', 'Reference to more parameters.', (ingressClass) => {
      const parameters = objectIn(objectIn(ingressClass, 'spec'), 'parameters');
      if (!parameters) return '<none>';
      const kind = qualified(textIn(parameters, 'kind'), textIn(parameters, 'apiGroup'));
      return `${kind}/${textIn(parameters, 'name')}`;
    }),
    AGE_COLUMN,
  ],
};

const DEFAULT_CLASS = 'ingressclass.kubernetes.io/is-default-class';
