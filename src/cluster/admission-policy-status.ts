import type { ValidatingAdmissionPolicy } from '../api/builtin.ts';
import { VALIDATING_ADMISSION_POLICIES } from '../api/builtin.ts';
import type { DeepReadonly } from '../api/object.ts';
import { Controller } from '../manager/controller.ts';
import { done } from '../workqueue/outcome.ts';
import type { ClusterDeps } from './support/resource-monitors.ts';

/** Checks the types of the expressions of a policy. Returns the warnings. */
export type PolicyTypeCheck = (
  policy: DeepReadonly<ValidatingAdmissionPolicy>,
) => readonly { readonly fieldRef: string; readonly warning: string }[];

/** Writes the warnings about the expressions of ValidatingAdmissionPolicies to their status. */
export function admissionPolicyStatus(deps: ClusterDeps, check: PolicyTypeCheck): Controller {
  const policies = deps.informers.for(VALIDATING_ADMISSION_POLICIES);
  const name = 'validatingadmissionpolicy-status';
  return new Controller(deps, {
    name,
    kind: VALIDATING_ADMISSION_POLICIES.kind,
    sync: async (key, { client, signal }) => {
      const policy = policies.lister.get(key);
      const generation = policy?.metadata.generation ?? 0;
      if (!policy || generation <= (policy.status?.observedGeneration ?? 0)) return done();
      const expressionWarnings = check(policy);
      const typeChecking = expressionWarnings.length > 0 ? { expressionWarnings } : {};
      const { apiVersion, kind, metadata } = policy;
      const patch = {
        type: 'apply',
        force: true,
        body: {
          apiVersion,
          kind,
          metadata: { name: metadata.name },
          status: { observedGeneration: generation, typeChecking },
        },
      } as const;
      const options = {
        subresource: 'status',
        fieldManager: `${name}-controller`,
        signal,
      };
      await client.patch(VALIDATING_ADMISSION_POLICIES, { name: key }, patch, options);
      return done();
    },
  }).for(policies);
}
