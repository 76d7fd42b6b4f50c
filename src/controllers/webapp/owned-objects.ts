import { toHex } from '../../util/bytes.ts';
import { sha256 } from '../../util/sha256.ts';
import type { Deployment, Service } from '../../api/builtin.ts';
import type { WebApp, WebAppSpec } from '../../api/generated/web-app.ts';
import { formatLabelSelector, labelValue } from '../../api/label-selector.ts';
import type { DeepReadonly, Draft } from '../../api/object.ts';
import { controllerReference } from '../../api/metadata.ts';
import { shown, specProblem } from '../spec-problem.ts';
import type { SpecRules } from '../spec-problem.ts';

/** Name of the controller in managedFields, labels and events. */
export const WEB_APP_COMPONENT = 'webapp-controller';

/** Keeps a WebApp until the delete hooks of its tasks are done. */
export const WEB_APP_FINALIZER = 'jiajunhuang.com/webapp';

export type Named<T> = T & { metadata: { name: string } };

const RULES: SpecRules<WebAppSpec> = {
  version: { type: 'string' },
  replicas: { type: 'integer', minimum: 0, maximum: 1000 },
  image: { type: 'image', optional: true },
};

/** Returns why the spec is invalid, or undefined. */
export function webAppProblem({ spec }: DeepReadonly<WebApp>): string | undefined {
  const problem = specProblem<WebAppSpec>(spec, RULES);
  if (problem !== undefined) return problem;
  const { image, version } = spec;
  if (image !== undefined || /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/.test(version)) return undefined;
  return `spec.version ${shown(version)} is not a tag of the nginx image: set spec.image, or another version`;
}

export function buildWebAppDeployment(webapp: DeepReadonly<WebApp>): Named<Draft<Deployment>> {
  const { spec } = webapp;
  const labels = labelsOf(webapp);
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { ...metadataOf(webapp), name: deploymentName(webapp), labels },
    spec: {
      replicas: spec.replicas,
      selector: { matchLabels: selectorOf(webapp) },
      template: {
        metadata: { labels },
        spec: {
          // The image is chosen by the user: it gets no access to the API server.
          automountServiceAccountToken: false,
          containers: [
            {
              name: 'app',
              image: spec.image ?? `nginx:${spec.version}`,
              ports: [{ name: 'http', containerPort: 80, protocol: 'TCP' }],
            },
          ],
        },
      },
    },
  };
}

export function buildService(webapp: DeepReadonly<WebApp>): Named<Draft<Service>> {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { ...metadataOf(webapp), name: serviceName(webapp), labels: labelsOf(webapp) },
    spec: {
      type: 'ClusterIP',
      selector: selectorOf(webapp),
      ports: [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 'http' }],
    },
  };
}

/** Returns the name of the WebApp, shortened so that names of ReplicaSets and Pods fit. */
export function deploymentName({ metadata }: DeepReadonly<WebApp>): string {
  return labelValue(metadata.name);
}

/** Returns the name of the WebApp if it is a host name (RFC 1035), or a name with its hash. */
export function serviceName({ metadata: { name } }: DeepReadonly<WebApp>): string {
  if (/^[a-z][-a-z0-9]{0,62}$/.test(name) && !name.endsWith('-')) return name;
  const hash = toHex(sha256(name)).slice(0, 10);
  return `webapp-${hash}`;
}

/** Returns the label selector of the WebApp's Pods in the string form that autoscalers read. */
export function webAppSelector(webapp: DeepReadonly<WebApp>): string {
  return formatLabelSelector({ matchLabels: selectorOf(webapp) });
}

/** Does not depend on the spec, because the selector of a Deployment is immutable. */
function selectorOf({ metadata }: DeepReadonly<WebApp>): Record<string, string> {
  return {
    'app.kubernetes.io/instance': labelValue(metadata.name),
    'app.kubernetes.io/managed-by': WEB_APP_COMPONENT,
  };
}

function labelsOf(webapp: DeepReadonly<WebApp>): Record<string, string> {
  return { ...selectorOf(webapp), 'app.kubernetes.io/version': versionLabel(webapp.spec.version) };
}

/** Replaces characters of versions that are invalid in labels, such as the plus of `1.0+build`. */
function versionLabel(version: string): string {
  const fit = version
    .replaceAll(/[^A-Za-z0-9._-]+/g, '-')
    .replaceAll(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, '');
  return labelValue(fit);
}

function metadataOf(webapp: DeepReadonly<WebApp>): {
  namespace: string;
  ownerReferences: ReturnType<typeof controllerReference>[];
} {
  return {
    namespace: webapp.metadata.namespace ?? '',
    ownerReferences: [controllerReference(webapp)],
  };
}
