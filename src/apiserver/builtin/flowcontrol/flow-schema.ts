import { objectIn, textIn } from '../../../util/json-value.ts';
import { equalJson } from '../../../api/equal.ts';
import { nameProblems } from '../../../api/object-names.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { ApiObject, StoredObject } from '../../objects/resource-definition.ts';
import { column, columns, field, numeric } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { mandatorySpec } from './mandatory-spec.ts';
import { conditionOfType } from '../shared/cells.ts';

export const FLOW_SCHEMA: BuiltinKind = {
  resource: 'flowcontrol.apiserver.k8s.io/flowschemas',
  tracksGeneration: true,
  statusKeeps: 'metadata',
  hooks: { applyDefaults },
  validate,
  columns: [
    ...columns(
      field('PriorityLevel', 'spec.priorityLevelConfiguration.name'),
      numeric('MatchingPrecedence', 'spec.matchingPrecedence', 'string'),
      field('DistinguisherMethod', 'spec.distinguisherMethod.type', '<none>'),
    ),
    column('MissingPL', 'Whether the priority level does not exist.', (schema) => {
      const dangling = conditionOfType(schema, 'Dangling');
      return dangling ? textIn(dangling, 'status') : '?';
    }),
  ],
};

const MAX_PRECEDENCE = 10_000;
const VERBS = 'create delete deletecollection get list patch proxy update watch'.split(' ');

function applyDefaults(schema: ApiObject): void {
  const spec = objectIn(schema, 'spec');
  if (spec) spec['matchingPrecedence'] ||= 1000;
}

function validate(schema: CheckedObject<StoredObject>): void {
  const spec = schema.in('spec');
  const { name } = schema.value.metadata;
  const field = 'matchingPrecedence';
  const precedence = spec.number(field) ?? 0;
  if (precedence <= 0) spec.invalid(field, 'must be a positive value', precedence);
  if (precedence > MAX_PRECEDENCE)
    spec.invalid(field, `must not be greater than ${MAX_PRECEDENCE}`);
  if (precedence === 1 && name !== 'exempt') {
    spec.invalid(field, "only the schema named 'exempt' may have matchingPrecedence 1");
  }
  const method = spec.get('distinguisherMethod');
  method?.requireSupported('type', ['ByNamespace', 'ByUser']);
  const level = spec.in('priorityLevelConfiguration');
  if (level.text('name') === '') level.required('name', 'must reference a priority level');
  level.requireFormat('name', 'dns1123Subdomain');
  for (const rule of spec.items('rules')) validateRule(rule);
  const fixed = mandatorySpec('flowschemas', name);
  if (!fixed || equalJson(spec.value, fixed)) return;
  schema.invalid('spec', `spec of '${name}' must equal the fixed value`);
}

function validateRule(rule: CheckedObject): void {
  const subjects = rule.items('subjects');
  if (subjects.length === 0) rule.required('subjects', 'subjects must contain at least one value');
  for (const subject of subjects) validateSubject(subject);
  const [resources, urls] = [rule.items('resourceRules'), rule.items('nonResourceRules')];
  if (resources.length + urls.length === 0) {
    const why = 'at least one of resourceRules and nonResourceRules has to be non-empty';
    rule.required('', why);
  }
  for (const each of resources) {
    validateVerbs(each);
    requireSome(
      each,
      'apiGroups',
      'api groups',
      'resource rules must supply at least one api group',
    );
    requireSome(each, 'resources', 'resources', 'resource rules must supply at least one resource');
    const namespaces = each.list('namespaces').map(String);
    const absent = 'resource rules that are not cluster scoped must supply at least one namespace';
    if (each.value['clusterScope'] !== true || namespaces.length > 0) {
      requireSome(each, 'namespaces', 'namespaces', absent);
    }
    for (const [index, namespace] of namespaces.includes('*') ? [] : namespaces.entries()) {
      const problems = nameProblems(namespace, 'dns1123Label').map(
        (problem) => `each member of this list must be '*' or a DNS-1123 label; ${problem}`,
      );
      each.problems(`namespaces[${index}]`, problems, namespace);
    }
  }
  for (const each of urls) {
    validateVerbs(each);
    const absent = 'nonResourceURLs must contain at least one value';
    requireSome(each, 'nonResourceURLs', 'non-resource URLs', absent);
    const paths = each.list('nonResourceURLs').map(String);
    for (const [index, path] of paths.includes('*') ? [] : paths.entries()) {
      const problem = pathProblem(path);
      if (problem !== undefined) each.invalid(`nonResourceURLs[${index}]`, problem, path);
    }
  }
}

/** A list with an item, where a wildcard stands alone. */
function requireSome(rule: CheckedObject, field: string, words: string, absent: string): void {
  const list = rule.list(field);
  if (list.length === 0) rule.required(field, absent);
  else if (list.length > 1 && list.includes('*')) {
    rule.invalid(field, `if '*' is present, must not specify other ${words}`);
  }
}

function validateVerbs(rule: CheckedObject): void {
  const verbs = rule.list('verbs').map(String);
  requireSome(rule, 'verbs', 'verbs', 'verbs must contain at least one value');
  if (verbs.includes('*') || verbs.every((verb) => VERBS.includes(verb))) return;
  rule.notSupported('verbs', VERBS);
}

function pathProblem(path: string): string | undefined {
  if (path === '') return 'must not be empty';
  if (path === '/') return undefined;
  if (!path.startsWith('/')) return 'must start with slash';
  if (path.includes(' ')) return 'must not contain white-space';
  if (path.includes('//')) return 'must not contain double slash';
  const isSuffix = !path.slice(0, -1).includes('*') && (!path.endsWith('*') || path.endsWith('/*'));
  return isSuffix ? undefined : 'wildcard can only do suffix matching';
}

/** The fields of subjects by their kinds. */
const SUBJECTS = { Group: 'group', ServiceAccount: 'serviceAccount', User: 'user' } as const;

function validateSubject(subject: CheckedObject): void {
  const kind = subject.text('kind');
  if (!Object.hasOwn(SUBJECTS, kind)) {
    subject.notSupported('kind', Object.keys(SUBJECTS), kind);
    return;
  }
  for (const [other, field] of Object.entries(SUBJECTS)) {
    const details = subject.get(field);
    if (other !== kind) {
      const why = `${field} is forbidden when subject kind is not '${other}'`;
      if (details) subject.forbidden(field, why);
    } else if (!details) {
      subject.required(field, `${field} is required when subject kind is '${kind}'`);
    } else {
      details.requireText('name');
      if (kind !== 'ServiceAccount') continue;
      if (details.text('name') !== '*') details.requireFormat('name', 'dns1123Subdomain');
      if (details.text('namespace') === '') {
        details.required('namespace', 'must specify namespace for service account');
      }
      details.requireFormat('namespace', 'dns1123Label');
    }
  }
}
