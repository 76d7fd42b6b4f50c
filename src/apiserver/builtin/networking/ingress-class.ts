import { plainText } from '../../../api/field-error.ts';
import { utf8Length } from '../../../util/bytes.ts';
import { objectIn, textIn } from '../../../util/json-value.ts';
import { nameProblems } from '../../../api/object-names.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { AGE_COLUMN, NAME_COLUMN, column, field, qualifiedName } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { requireDomainPath } from '../shared/domain-names.ts';

export const INGRESS_CLASS: BuiltinKind = {
  resource: 'networking.k8s.io/ingressclasses',
  revalidatesName: 'object',
  tracksGeneration: true,
  defaults: { 'spec.parameters.scope': 'Cluster' },
  validate: validateIngressClass,
  validateUpdate: (object, previous) => {
    const spec = object.in('spec');
    const controller = spec.text('controller');
    if (controller === textIn(objectIn(previous, 'spec'), 'controller')) return;
    spec.invalid('controller', 'field is immutable', controller);
  },
  columns: [
    {
      ...NAME_COLUMN,
      value: ({ metadata: { name, annotations } }) =>
        annotations?.[IS_DEFAULT_CLASS] === 'true' ? `${name} (default)` : name,
    },
    field('Controller', 'spec.controller'),
    column('Parameters', 'Reference to more parameters.', (ingressClass) => {
      const parameters = objectIn(objectIn(ingressClass, 'spec'), 'parameters');
      if (!parameters) return '<none>';
      const kind = qualifiedName(textIn(parameters, 'kind'), textIn(parameters, 'apiGroup'));
      return `${kind}/${textIn(parameters, 'name')}`;
    }),
    AGE_COLUMN,
  ],
};

const SCOPES = ['Cluster', 'Namespace'];

function validateIngressClass(object: CheckedObject): void {
  const spec = object.in('spec');
  const controller = spec.text('controller');
  if (utf8Length(controller) > 250) spec.tooLong('controller', 250);
  requireDomainPath(spec, 'controller');
  const parameters = spec.get('parameters');
  if (!parameters) return;
  if (parameters.has('apiGroup')) {
    const problems = nameProblems(parameters.text('apiGroup'), 'dns1123Subdomain');
    parameters.problems('apiGroup', problems);
  }
  parameters.requireName('kind', 'pathSegment');
  parameters.requireName('name', 'pathSegment');
  const scope = parameters.text('scope');
  if (!SCOPES.includes(scope)) parameters.notSupported('scope', SCOPES, plainText(scope));
  const isSet = parameters.has('namespace');
  if (parameters.text('scope') === 'Cluster' && isSet) {
    parameters.forbidden('namespace', "`parameters.scope` is set to 'Cluster'");
  } else if (parameters.text('scope') === 'Namespace' && !isSet) {
    parameters.required('namespace', "`parameters.scope` is set to 'Namespace'");
  } else if (parameters.text('scope') === 'Namespace') {
    const problems = nameProblems(parameters.text('namespace'), 'dns1123Label');
    parameters.problems('namespace', problems);
  }
}

export const IS_DEFAULT_CLASS = 'ingressclass.kubernetes.io/is-default-class';
