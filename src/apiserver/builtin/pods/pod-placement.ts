import { typedText } from '../../../api/field-error.ts';
import {
  labelValueProblems,
  nameProblems,
  qualifiedNameProblems,
} from '../../../api/object-names.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import {
  requireLabelValues,
  requireSelectorKey,
  requireValuesOfOperator,
  validateLabelSelector,
} from '../shared/label-selector-validation.ts';

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution';

/** Reports what is wrong with the rules by which a Pod is assigned to a node. */
export function validatePlacement(spec: CheckedObject): void {
  const affinity = spec.in('affinity');
  const nodes = affinity.in('nodeAffinity');
  const required = nodes.get(REQUIRED);
  if (required) validateNodeSelector(required);
  for (const term of nodes.items(PREFERRED)) {
    requireWeight(term);
    validateNodeTerm(term.in('preference'), false);
  }
  for (const field of ['podAffinity', 'podAntiAffinity']) {
    const pods = affinity.in(field);
    for (const term of pods.items(REQUIRED)) validatePodTerm(term);
    for (const term of pods.items(PREFERRED)) {
      requireWeight(term);
      validatePodTerm(term.in('podAffinityTerm'));
    }
  }
  validateSpread(spec);
  for (const toleration of spec.items('tolerations')) validateToleration(toleration);
}

function requireWeight(term: CheckedObject): void {
  const weight = term.number('weight') ?? 0;
  if (weight < 1 || weight > 100) term.invalid('weight', 'must be in the range 1-100', weight);
}

/** Reports what is wrong with a node selector, whose terms are alternatives. */
export function validateNodeSelector(selector: CheckedObject): void {
  const terms = selector.items('nodeSelectorTerms');
  if (terms.length === 0) {
    selector.required('nodeSelectorTerms', 'must have at least one node selector term');
  }
  for (const term of terms) validateNodeTerm(term, true);
}

function validateNodeTerm(term: CheckedObject, isRequired: boolean): void {
  for (const expression of term.items('matchExpressions')) {
    if (!['Gt', 'Lt'].includes(expression.text('operator'))) requireValuesOfOperator(expression);
    else if (expression.list('values').length !== 1) {
      const why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
      expression.required('values', why);
    }
    requireSelectorKey(expression, 'key');
    if (isRequired) requireLabelValues(expression);
  }
  for (const field of term.items('matchFields')) validateNodeField(field);
}

function validateNodeField(field: CheckedObject): void {
  const operator = field.text('operator');
  const values = field.list('values').map(String);
  if (operator !== 'In' && operator !== 'NotIn') {
    field.invalid('operator', 'not a valid selector operator', typedText(operator));
  } else if (values.length !== 1) {
    const why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
    field.required('values', why);
  }
  const key = field.text('key');
  if (key !== 'metadata.name') {
    field.invalid('key', 'not a valid field selector key', key);
    return;
  }
  for (const [index, name] of values.entries()) {
    field.problems(`values[${index}]`, nameProblems(name, 'dns1123Subdomain'), name);
  }
}

function validatePodTerm(term: CheckedObject): void {
  validateLabelSelector(term.get('labelSelector'));
  validateLabelSelector(term.get('namespaceSelector'));
  for (const name of term.list('namespaces').map(String)) {
    term.problems('namespace', nameProblems(name, 'dns1123Label'), name);
  }
  validateLabelKeys(term);
  if (term.text('topologyKey') === '') term.required('topologyKey', 'can not be empty');
  requireSelectorKey(term, 'topologyKey');
}

/** Label keys whose values are those of the Pod itself extend the selector. */
function validateLabelKeys(term: CheckedObject): void {
  const lists = {
    matchLabelKeys: keysIn(term, 'matchLabelKeys'),
    mismatchLabelKeys: keysIn(term, 'mismatchLabelKeys'),
  };
  const selector = term.get('labelSelector');
  for (const [field, keys] of Object.entries(lists)) {
    if (keys.length === 0) continue;
    if (!selector) {
      term.forbidden(field, 'must not be specified when labelSelector is not set');
      continue;
    }
    for (const [index, key] of keys.entries()) {
      term.problems(`${field}[${index}]`, qualifiedNameProblems(key), key);
    }
  }
  const { matchLabelKeys, mismatchLabelKeys } = lists;
  const selected = new Set(Object.keys(selector?.in('matchLabels').value ?? {}));
  const [matched, mismatched] = [new Set(matchLabelKeys), new Set(mismatchLabelKeys)];
  for (const expression of selector?.items('matchExpressions') ?? []) {
    const key = expression.text('key');
    if (matched.has(key) && selected.has(key)) {
      // A server omits the name of the list.
      const error = 'exists in both matchLabelKeys and labelSelector';
      term.invalid(`[${matchLabelKeys.lastIndexOf(key)}]`, error, key);
    }
    selected.add(key);
  }
  for (const [index, key] of matchLabelKeys.entries()) {
    if (!mismatched.has(key)) continue;
    const why = 'exists in both matchLabelKeys and mismatchLabelKeys';
    term.invalid(`matchLabelKeys[${index}]`, why, key);
  }
}

function keysIn(term: CheckedObject, field: string): string[] {
  return term.list(field).map(String);
}

const POLICIES = ['Honor', 'Ignore'];

function validateSpread(spec: CheckedObject): void {
  const constraints = spec.items('topologySpreadConstraints');
  const names = constraints.map(
    (each) => `{${each.text('topologyKey')}, ${each.text('whenUnsatisfiable')}}`,
  );
  const last = new Map(names.map((name, index) => [name, index]));
  for (const [index, constraint] of constraints.entries()) {
    const action = constraint.text('whenUnsatisfiable');
    requirePositive(constraint, 'maxSkew', constraint.number('maxSkew') ?? 0);
    if (constraint.text('topologyKey') === '') {
      constraint.required('topologyKey', 'can not be empty');
    }
    const actions = ['DoNotSchedule', 'ScheduleAnyway'];
    if (!actions.includes(action)) constraint.notSupported('whenUnsatisfiable', actions, action);
    const name = names[index] ?? '';
    if (last.get(name) !== index) {
      constraint.duplicate('{topologyKey, whenUnsatisfiable}', name);
    }
    const domains = constraint.number('minDomains');
    if (domains !== undefined) {
      requirePositive(constraint, 'minDomains', domains);
      const why = `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${action}`;
      if (action !== 'DoNotSchedule') constraint.invalid('minDomains', why);
    }
    for (const field of ['nodeAffinityPolicy', 'nodeTaintsPolicy']) {
      if (!constraint.has(field) || POLICIES.includes(constraint.text(field))) continue;
      constraint.notSupported(field, POLICIES);
    }
    validateLabelKeys(constraint);
    validateLabelSelector(constraint.get('labelSelector'));
  }
}

function requirePositive(holder: CheckedObject, field: string, value: number): void {
  if (value <= 0) holder.invalid(field, 'must be greater than zero', value);
}

const EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];

export function validateToleration(toleration: CheckedObject): void {
  const value = toleration.text('value');
  const operator = toleration.text('operator');
  if (toleration.text('key') !== '') requireSelectorKey(toleration, 'key');
  else if (operator !== 'Exists') {
    const why =
      'operator must be Exists when `key` is empty, which means "match all values and all keys"';
    toleration.invalid('operator', why, typedText(operator));
  }
  const effect = toleration.text('effect');
  if (toleration.has('tolerationSeconds') && effect !== 'NoExecute') {
    const why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
    toleration.invalid('effect', why, typedText(effect));
  }
  if (operator === 'Exists') {
    const why = "value must be empty when `operator` is 'Exists'";
    if (value !== '') toleration.invalid('operator', why, value);
  } else if (operator === 'Equal' || operator === '') {
    const problems = labelValueProblems(value);
    if (problems.length > 0) toleration.invalid('operator', problems.join(';'), value);
  } else {
    // Those that compare numbers are named although a feature gate turns them off.
    const known = ['Equal', 'Exists', 'Lt', 'Gt'];
    toleration.notSupported('operator', known.includes(operator) ? known : known.slice(0, 2));
  }
  toleration.requireOneOf('effect', EFFECTS);
}
