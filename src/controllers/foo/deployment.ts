import type { Deployment } from '../../api/builtin.ts';
import type { Foo, FooSpec } from '../../api/generated/foo.ts';
import { formatLabelSelector, labelValue } from '../../api/label-selector.ts';
import type { DeepReadonly, Draft } from '../../api/object.ts';
import { controllerReference } from '../../api/metadata.ts';
import { MAX_NAME_LENGTH, shown, specProblem } from '../spec-problem.ts';
import type { SpecRules } from '../spec-problem.ts';

/** Name of the controller in managedFields and events, as sample-controller's. */
export const FOO_COMPONENT = 'sample-controller';

/**
 * Returns the desired Deployment of a Foo. It equals that of sample-controller, so that a Deployment
 * which sample-controller created is unchanged. Without `spec.replicas`, the field is not managed.
 */
export function buildFooDeployment(
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
      ...(replicas !== undefined && { replicas }),
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: 'nginx', image: 'nginx:latest' }] },
      },
    },
  };
}

/** Returns the label selector of the Foo's Pods in the string form that autoscalers read. */
export function fooSelector(foo: DeepReadonly<Foo>): string {
  return formatLabelSelector({ matchLabels: labelsOf(foo) });
}

function labelsOf({ metadata }: DeepReadonly<Foo>): Record<string, string> {
  return { app: 'nginx', controller: labelValue(metadata.name) };
}

/** sample-controller's CustomResourceDefinition has no default for `replicas`. */
function replicasOf({ spec }: DeepReadonly<Foo>): number | undefined {
  return (spec as { readonly replicas?: number }).replicas;
}

const RULES: SpecRules<FooSpec> = {
  deploymentName: { type: 'string' },
  replicas: { type: 'integer', minimum: 1, maximum: 10, optional: true },
};

/** A ReplicaSet has the name of its Deployment with a dash and a hash of up to 10 characters. */
const MAX_DEPLOYMENT_NAME_LENGTH = MAX_NAME_LENGTH - 11;

/** Returns why the Foo cannot have a Deployment, or undefined. */
export function deploymentProblem({ spec }: DeepReadonly<Foo>): string | undefined {
  const problem = specProblem<FooSpec>(spec, RULES);
  if (problem !== undefined) return problem;
  const { deploymentName: name } = spec;
  if (name.length > MAX_DEPLOYMENT_NAME_LENGTH) {
    return `spec.deploymentName has ${name.length} characters, ${MAX_DEPLOYMENT_NAME_LENGTH} are allowed`;
  }
  if (name.split('.').every((part) => /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(part))) {
    return undefined;
  }
  return `spec.deploymentName ${shown(name)} is not a DNS subdomain: use lower-case letters, digits, "-" and "."`;
}
