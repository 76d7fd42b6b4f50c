import type {
  CustomResourceDefinition,
  ValidatingAdmissionPolicy,
  ValidatingAdmissionPolicyBinding,
  Validation,
} from '../api/builtin.ts';
import type { Draft } from '../api/object.ts';
import { groupResourceOf } from '../api/resource.ts';
import type { CelRule, RuleEntry, WebhookEntries } from './declaration.ts';
import { conditionsOf, matchRuleOf, NAMESPACE_LABEL } from './manifests.ts';
import type { WebhookNames } from './manifests.ts';

const ADMISSION = 'admissionregistration.k8s.io/v1';

/** Returns the policies of the declared rules, each with its binding. */
export function admissionPolicies(
  { rules }: Pick<WebhookEntries, 'rules'>,
  names: WebhookNames,
): (Draft<ValidatingAdmissionPolicy> | Draft<ValidatingAdmissionPolicyBinding>)[] {
  return rules
    .filter(({ as }) => as === 'policy')
    .flatMap((entry) => {
      const { resource, options } = entry;
      const { name, failurePolicy, namespaceSelector, objectSelector } = options;
      const parts = [names.program, ...(name === undefined ? [] : [name]), resource.version];
      const metadata = { name: [...parts, groupResourceOf(resource)].join('.') };
      const matchConditions = [...conditionsOf(options), ...options.matchConditions];
      const { namespaces = [] } = names;
      const matchResources = {
        namespaceSelector: {
          matchExpressions: [{ key: NAMESPACE_LABEL, operator: 'In' as const, values: namespaces }],
        },
      };
      return [
        {
          apiVersion: ADMISSION,
          kind: 'ValidatingAdmissionPolicy',
          metadata,
          spec: {
            failurePolicy,
            matchConstraints: {
              matchPolicy: 'Equivalent' as const,
              resourceRules: [matchRuleOf(entry)],
              ...(namespaceSelector && { namespaceSelector }),
              ...(objectSelector && { objectSelector }),
            },
            ...(matchConditions.length > 0 && { matchConditions }),
            validations: entry.rules.map((rule) => validationOf(rule, entry)),
          },
        },
        {
          apiVersion: ADMISSION,
          kind: 'ValidatingAdmissionPolicyBinding',
          metadata,
          spec: {
            policyName: metadata.name,
            validationActions: ['Deny' as const],
            ...(namespaces.length > 0 && { matchResources }),
          },
        },
      ];
    });
}

/** Returns the rule with the variables of a policy, which has no field paths. */
function validationOf(
  { rule, message, messageExpression, fieldPath, reason }: CelRule,
  { options }: RuleEntry,
): Validation {
  const self = options.operations[0] === 'DELETE' ? 'oldObject' : 'object';
  const [expression, isTransition] = withObjects(rule, self);
  const field = fieldPath === undefined ? '' : `${fieldPath.replace(/^\./, '')}: `;
  return {
    // A rule about the stored object is for updates only.
    expression: isTransition ? `oldObject == null || (${expression})` : expression,
    ...((message !== undefined || field !== '') && { message: `${field}${message ?? rule}` }),
    ...(messageExpression !== undefined && {
      messageExpression: `${JSON.stringify(field)} + (${withObjects(messageExpression, self)[0]})`,
    }),
    ...(reason === 'FieldValueForbidden' && { reason: 'Forbidden' }),
  };
}

/** Texts and identifiers in CEL. A selected field, such as `.self`, is not a variable. */
const TOKENS =
  /[rRbB]{0,2}(?:"""[^]*?"""|'''[^]*?'''|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|\.\s*[A-Za-z_]\w*|[A-Za-z_]\w*/g;

/** Replaces the variables of rules in schemas by those of policies. */
function withObjects(
  expression: string,
  self: 'object' | 'oldObject',
): [expression: string, isTransition: boolean] {
  let isTransition = false;
  const replaced = expression.replaceAll(TOKENS, (token) => {
    if (token === 'self') return self;
    if (token !== 'oldSelf') return token;
    isTransition = true;
    return 'oldObject';
  });
  return [replaced, isTransition];
}

/** Adds the declared rules to the schemas of a CRD. */
export function withSchemaRules(
  crd: Draft<CustomResourceDefinition>,
  { rules }: Pick<WebhookEntries, 'rules'>,
): Draft<CustomResourceDefinition> {
  const own = rules.filter(
    ({ as, resource }) => as === 'schema' && groupResourceOf(resource) === crd.metadata.name,
  );
  if (own.length === 0 || !crd.spec) return crd;
  const versions = crd.spec.versions.map((version) => {
    const added = own.filter(({ resource }) => resource.version === version.name);
    const schema = version.schema?.openAPIV3Schema;
    if (added.length === 0 || !schema) return version;
    const validations = [
      ...(schema['x-kubernetes-validations'] ?? []),
      ...added.flatMap((entry) => entry.rules.map((rule) => ({ ...rule }))),
    ];
    const openAPIV3Schema = { ...schema, 'x-kubernetes-validations': validations };
    return Object.assign({}, version, { schema: { openAPIV3Schema } });
  });
  return { ...crd, spec: { ...crd.spec, versions } };
}
