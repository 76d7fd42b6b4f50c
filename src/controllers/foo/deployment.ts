import type { Deployment } from '../../api/builtin.ts';
import type { Foo, FooSpec } from '../../api/generated/foo.ts';
import { labelValue } from '../../api/label-selector.ts';
import type { DeepReadonly, Draft } from '../../api/object.ts';
import { controllerReference } from '../../api/metadata.ts';
import { shown, specProblem } from '../spec-problem.ts';
import type { SpecRules } from '../spec-problem.ts';

/** Who writes, in managedFields and in events: the name that sample-controller has there. */
export const COMPONENT = 'sample-controller';

/**
 * The Deployment that a Foo wants, and nothing more: sample-controller's own Deployments are found
 * to be as wanted. Where a Foo says nothing of replicas, neither does this.
 */
export function buildDeployment(
  foo: DeepReadonly<Foo>,
): Draft<Deployment> & { metadata: { name: string } } {
  const { namespace = '' } = foo.metadata;
  const labels = labelsOf(foo);
  const replicas = replicasOf(foo);
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: {
      name: foo.spec.deploymentName,
      namespace,
      ownerReferences: [controllerReference(foo)],
    },
    spec: {
      ...(replicas === undefined ? {} : { replicas }),
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: 'nginx', image: 'nginx:latest' }] },
      },
    },
  };
}

/** What selects the Foo's Pods, in the string form that autoscalers read. */
export function podSelector(foo: DeepReadonly<Foo>): string {
  return Object.entries(labelsOf(foo))
    .map(([key, value]) => `${key}=${value}`)
    .join(',');
}

function labelsOf({ metadata }: DeepReadonly<Foo>): Record<string, string> {
  return { app: 'nginx', controller: labelValue(metadata.name) };
}

/** The CustomResourceDefinition of sample-controller has no default for it. */
function replicasOf({ spec }: DeepReadonly<Foo>): number | undefined {
  return (spec as { readonly replicas?: number }).replicas;
}

const RULES: SpecRules<FooSpec> = {
  deploymentName: { type: 'string' },
  replicas: { type: 'integer', minimum: 1, maximum: 10, optional: true },
};

/** A ReplicaSet is called after its Deployment, with a dash and a hash of up to 10 characters. */
const LONGEST_NAME = 253 - 11;

/** Why the Foo cannot have a Deployment; undefined if it can. */
export function problemOf({ spec }: DeepReadonly<Foo>): string | undefined {
  const problem = specProblem<FooSpec>(spec, RULES);
  if (problem !== undefined) return problem;
  const { deploymentName: name } = spec;
  if (name.length > LONGEST_NAME) {
    return `spec.deploymentName has ${name.length} characters, ${LONGEST_NAME} are allowed`;
  }
  if (name.split('.').every((part) => /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(part))) {
    return undefined;
  }
  return `spec.deploymentName ${shown(name)} is no DNS subdomain: use lower-case letters, digits, "-" and "."`;
}
