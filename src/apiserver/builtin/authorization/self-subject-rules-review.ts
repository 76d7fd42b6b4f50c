import { objectIn, textIn } from '../../../util/json-value.ts';
import type { PolicyRule } from '../../../api/policy-rule.ts';
import { aggregate } from '../../auth/rbac.ts';
import { badRequest } from '../../objects/status-error.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

/** The permissions of the sender, as for `kubectl auth can-i --list`. */
export const SELF_SUBJECT_RULES_REVIEW: BuiltinKind = {
  resource: 'authorization.k8s.io/selfsubjectrulesreviews',
  review: ({ apiVersion, kind, ...review }, { user, access }) => {
    const namespace = textIn(objectIn(review, 'spec'), 'namespace');
    if (namespace === '') throw badRequest('no namespace on request');
    const { rules, problems } = access.rulesOf(user, namespace);
    const isForPaths = ({ nonResourceURLs = [] }: PolicyRule) => nonResourceURLs.length > 0;
    return {
      apiVersion,
      kind,
      metadata: { name: '', uid: '', resourceVersion: '', creationTimestamp: '' },
      spec: {},
      status: {
        resourceRules: rules.filter((rule) => !isForPaths(rule)),
        nonResourceRules: rules.filter(isForPaths),
        incomplete: false,
        ...(problems.length > 0 && { evaluationError: aggregate(problems) }),
      },
    };
  },
};
