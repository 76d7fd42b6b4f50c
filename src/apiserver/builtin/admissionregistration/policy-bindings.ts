import { objectIn, textIn } from '../../../util/json-value.ts';
import { column, columns, field } from '../../table/column.ts';
import { POLICY_TRAITS, matchDefaults } from './match-defaults.ts';
import { authorizeParamRef } from './policy-authorization.ts';
import { staticNameWarnings, validateStaticName } from './static-names.ts';
import type { BuiltinKind, KindTraits } from '../shared/builtin-kind.ts';
import { selectorCell } from '../shared/cells.ts';

const POLICY_BINDING = {
  ...POLICY_TRAITS,
  hooks: { authorize: authorizeParamRef },
  validate: validateStaticName,
  defaults: matchDefaults('spec.matchResources'),
  columns: columns(
    field('PolicyName', 'spec.policyName'),
    column('ParamRef', 'Reference to the parameters.', (binding) => {
      const reference = objectIn(objectIn(binding, 'spec'), 'paramRef');
      const name = textIn(reference, 'name');
      if (name !== '') return `${textIn(reference, 'namespace') || '*'}/${name}`;
      const selector = objectIn(reference, 'selector');
      return selector ? selectorCell(selector) : '<unset>';
    }),
  ),
  warnings: staticNameWarnings,
} satisfies KindTraits;

export const MUTATING_ADMISSION_POLICY_BINDING: BuiltinKind = {
  resource: 'admissionregistration.k8s.io/mutatingadmissionpolicybindings',
  ...POLICY_BINDING,
};

export const VALIDATING_ADMISSION_POLICY_BINDING: BuiltinKind = {
  resource: 'admissionregistration.k8s.io/validatingadmissionpolicybindings',
  ...POLICY_BINDING,
};
