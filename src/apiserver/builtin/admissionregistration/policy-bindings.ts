import { objectIn, textIn } from '../../../util/json-value.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';
import { column, columns, field } from '../../table/column.ts';
import { POLICY_TRAITS, matchDefaults } from './match-defaults.ts';
import { validateMatchResources, validateParamRef } from './match-validation.ts';
import { authorizeParamRef } from './policy-authorization.ts';
import { staticNameWarnings, validateStaticName } from './static-names.ts';
import type { BuiltinKind, KindTraits } from '../shared/builtin-kind.ts';
import { selectorCell } from '../shared/cells.ts';

const POLICY_BINDING = {
  ...POLICY_TRAITS,
  hooks: { authorize: authorizeParamRef },
  validate,
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
  revalidatesName: 'object',
  ...POLICY_BINDING,
};

export const VALIDATING_ADMISSION_POLICY_BINDING: BuiltinKind = {
  resource: 'admissionregistration.k8s.io/validatingadmissionpolicybindings',
  revalidatesName: 'object',
  ...POLICY_BINDING,
};

function validate(binding: CheckedObject<StoredObject>, previous: StoredObject | undefined): void {
  validateStaticName(binding, previous);
  const isMutating = binding.value.kind === 'MutatingAdmissionPolicyBinding';
  const spec = binding.in('spec');
  spec.requireName('policyName', 'dns1123Subdomain');
  const [reference, match] = [spec.get('paramRef'), spec.get('matchResources')];
  if (reference) validateParamRef(reference);
  if (match) validateMatchResources(match, isMutating);
  if (isMutating) return;
  const field = 'validationActions';
  const actions = spec.list(field);
  spec.requireEachOf(field, ['Audit', 'Deny', 'Warn']);
  for (const [index, action] of actions.entries()) {
    if (actions.indexOf(action) < index) spec.duplicate(`${field}[${index}]`, action);
  }
  if (actions.includes('Deny') && actions.includes('Warn')) {
    const why =
      'must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)';
    spec.invalid(field, why);
  }
  if (actions.length === 0) spec.required(field);
}
