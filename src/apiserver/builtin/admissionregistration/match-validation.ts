import { nameProblems, qualifiedNameProblems } from '../../../api/object-names.ts';
import type { PolicyEnvironment, PolicyExpression } from '../../../cel/policy-environment.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { validateLabelSelector } from '../shared/label-selector-validation.ts';

const OPERATIONS = ['*', 'CONNECT', 'CREATE', 'DELETE', 'UPDATE'];
const OF_MUTATIONS = ['*', 'CONNECT', 'CREATE', 'UPDATE'];

/** Reports what is wrong with a rule for requests. */
export function validateRule(rule: CheckedObject): void {
  const operations = rule.list('operations');
  if (operations.length === 0) rule.required('operations');
  if (operations.length > 1 && operations.includes('*')) {
    rule.invalid('operations', "if '*' is present, must not specify other operations");
  }
  rule.requireEachOf('operations', OPERATIONS);
  validateRuleGroups(rule);
  rule.requireSupported('scope', ['*', 'Cluster', 'Namespaced']);
}

/** Validates groups, versions and resources of a rule; a wildcard stands alone. */
function validateRuleGroups(rule: CheckedObject): void {
  const words = { apiGroups: 'API groups', apiVersions: 'API versions' };
  for (const [field, word] of Object.entries(words)) {
    const list = rule.list(field);
    if (list.length === 0) rule.required(field);
    else if (list.length > 1 && list.includes('*')) {
      rule.invalid(field, `if '*' is present, must not specify other ${word}`);
    }
  }
  for (const [index, version] of rule.list('apiVersions').entries()) {
    if (version === '') rule.required(`apiVersions[${index}]`);
  }
  if (rule.list('resources').length === 0) rule.required('resources');
  validateResources(rule);
}

/** Resources with subresources: `pods`, `pods/log`, `pods/*`, and wildcards. */
function validateResources(rule: CheckedObject): void {
  const resources = rule.list('resources').map(String);
  const seen = new Set<string>();
  for (const [index, resource] of resources.entries()) {
    const field = `resources[${index}]`;
    if (resource === '') rule.required(field);
    const slash = resource.indexOf('/');
    if (slash < 0) continue;
    const wildcards = [`${resource.slice(0, slash)}/*`, `*/${resource.slice(slash + 1)}`];
    for (const wildcard of wildcards.filter((each) => seen.has(each))) {
      const why = `if '${wildcard}' is present, must not specify ${resource}`;
      rule.invalid(field, why, resource);
    }
    seen.add(resource);
  }
  if (resources.length > 1 && resources.includes('*/*')) {
    rule.invalid('resources', "if '*/*' is present, must not specify other resources");
  }
  // As upstream, only the last resource without subresource counts.
  const last = resources.findLast((resource) => resource !== '' && !resource.includes('/'));
  if (resources.includes('*') && last !== '*') {
    const why = "if '*' is present, must not specify other resources without subresources";
    rule.invalid('resources', why);
  }
}

/** Reports what is wrong with the requests that a policy or its binding matches. */
export function validateMatchResources(match: CheckedObject, isMutating: boolean): void {
  match.requireSupported('matchPolicy', ['Equivalent', 'Exact']);
  validateLabelSelector(match.get('namespaceSelector'));
  validateLabelSelector(match.get('objectSelector'));
  for (const list of ['resourceRules', 'excludeResourceRules']) {
    for (const rule of match.items(list)) {
      const names = rule.list('resourceNames').map(String);
      for (const [index, name] of names.entries()) {
        const field = `resourceNames[${index}]`;
        rule.problems(field, nameProblems(name, 'pathSegment'), name);
        if (names.indexOf(name) < index) rule.duplicate(field, name);
      }
      validateRule(rule);
    }
  }
  if (!isMutating) return;
  for (const operation of match.items('resourceRules').flatMap((rule) => rule.list('operations'))) {
    if (OF_MUTATIONS.includes(String(operation))) continue;
    match.notSupported('resourceRules.operations', OF_MUTATIONS, operation);
  }
}

/** Reports why an expression in a field does not compile. */
export function reportCompilation(
  holder: CheckedObject,
  field: string,
  { source, compiled }: PolicyExpression,
): void {
  if (!('error' in compiled)) return;
  const { error, isInternal = false } = compiled;
  if (!isInternal) holder.invalid(field, error, source);
  else holder.report({ reason: 'InternalError', field: holder.at(field), detail: error });
}

/** Reports what is wrong with the `matchConditions` of a webhook or a policy. */
export function validateMatchConditions(
  holder: CheckedObject,
  environment: PolicyEnvironment,
): void {
  holder.requireAtMost('matchConditions', 64);
  const names = new Set<string>();
  for (const condition of holder.items('matchConditions')) {
    const source = condition.text('expression').trim();
    if (source === '') condition.required('expression');
    else reportCompilation(condition, 'expression', environment.compile(source, 'bool'));
    const name = condition.text('name');
    if (name === '') condition.required('name');
    else condition.problems('name', qualifiedNameProblems(name));
    condition.requireUnique('name', names);
  }
}

/** Reports what is wrong with the kind of a policy's parameters. */
export function validateParamKind(kind: CheckedObject): void {
  const [group = '', ...versions] = kind.text('apiVersion').includes('/')
    ? kind.text('apiVersion').split('/')
    : ['', kind.text('apiVersion')];
  const version = versions.join('/');
  const field = 'apiVersion';
  kind.requireText(field);
  if (versions.length > 1) {
    kind.invalid(field, `unexpected GroupVersion string: ${kind.text(field)}`, kind.text(field));
  } else if (kind.text(field) !== '') {
    const join = (problems: string[]) => (problems.length > 0 ? [problems.join(',')] : []);
    if (group !== '') kind.problems(field, join(nameProblems(group, 'dns1123Subdomain')), group);
    if (version === '') kind.invalid(field, 'version must be specified');
    else kind.problems(field, join(nameProblems(version, 'dns1035Label')), version);
  }
  const name = kind.text('kind');
  const problems = nameProblems(name.toLowerCase(), 'dns1035Label');
  if (name === '') kind.required('kind');
  else if (problems.length > 0) {
    const why = `may have mixed case, but should otherwise match: ${problems.join(',')}`;
    kind.invalid('kind', why);
  }
}

/** Reports what is wrong with the reference of a binding to parameters. */
export function validateParamRef(reference: CheckedObject): void {
  reference.requireFormat('name', 'pathSegment');
  const isNamed = reference.text('name') !== '';
  const selector = reference.get('selector');
  validateLabelSelector(selector);
  const why = 'name and selector are mutually exclusive';
  if (isNamed && selector)
    for (const field of ['name', 'selector']) reference.forbidden(field, why);
  if (!isNamed && !selector) {
    reference.required('', 'one of name or selector must be specified');
  }
  reference.requireText('parameterNotFoundAction');
  reference.requireOneOf('parameterNotFoundAction', ['Deny', 'Allow']);
}
