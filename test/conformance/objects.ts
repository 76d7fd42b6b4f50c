import type { Json } from './api.ts';

export const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

export function configMaps(namespace: string): string {
  return `/api/v1/namespaces/${namespace}/configmaps`;
}

export function pods(namespace: string): string {
  return `/api/v1/namespaces/${namespace}/pods`;
}

export function deployments(namespace: string): string {
  return `/apis/apps/v1/namespaces/${namespace}/deployments`;
}

export function widgets(namespace: string, group: string = GROUP): string {
  return `/apis/${group}/v1/namespaces/${namespace}/widgets`;
}

export const GROUP = 'conformance.example.com';

export function configMap(name: string, data: Json = { a: '1' }, metadata: Json = {}): Json {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...metadata }, data };
}

export function namespace(name: string): Json {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
}

export function pod(name: string, metadata: Json = {}): Json {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...metadata },
    spec: { containers: [{ name: 'web', image: 'nginx' }] },
  };
}

export function deployment(name: string): Json {
  const labels = { app: name };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name },
    spec: {
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: 'web', image: 'nginx' }] },
      },
    },
  };
}

export function widget(name: string, spec: Json = { color: 'red' }, metadata: Json = {}): Json {
  return { apiVersion: `${GROUP}/v1`, kind: 'Widget', metadata: { name, ...metadata }, spec };
}

/** Returns a CRD whose schema uses most features of a structural schema. */
export function widgetCrd(group: string = GROUP, change: (crd: Json) => void = () => {}): Json {
  const crd = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `widgets.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { plural: 'widgets', singular: 'widget', kind: 'Widget', shortNames: ['wd'] },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          subresources: {
            status: {},
            scale: {
              specReplicasPath: '.spec.size',
              statusReplicasPath: '.status.size',
              labelSelectorPath: '.status.selector',
            },
          },
          additionalPrinterColumns: [
            { name: 'Size', type: 'integer', jsonPath: '.spec.size', description: 'How large.' },
            { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
          ],
          selectableFields: [{ jsonPath: '.spec.color' }],
          schema: { openAPIV3Schema: widgetSchema() },
        },
      ],
    },
  };
  change(crd);
  return crd;
}

function widgetSchema(): Json {
  return {
    type: 'object',
    required: ['spec'],
    properties: {
      spec: {
        type: 'object',
        required: ['color'],
        properties: {
          color: { type: 'string', minLength: 1, maxLength: 10, pattern: '^[a-z]*$' },
          size: { type: 'integer', minimum: 0, maximum: 10, default: 1 },
          mode: { type: 'string', enum: ['Fast', 'Slow'] },
          on: { type: 'boolean' },
          note: { type: 'string', nullable: true },
          tags: {
            type: 'array',
            maxItems: 3,
            items: { type: 'string' },
            'x-kubernetes-list-type': 'set',
          },
          parts: {
            type: 'array',
            'x-kubernetes-list-type': 'map',
            'x-kubernetes-list-map-keys': ['name'],
            items: {
              type: 'object',
              required: ['name'],
              properties: { name: { type: 'string' }, count: { type: 'integer' } },
            },
          },
          labels: { type: 'object', additionalProperties: { type: 'string' } },
          nested: { type: 'object', properties: { a: { type: 'string', default: 'x' } } },
          free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        },
      },
      status: {
        type: 'object',
        properties: {
          size: { type: 'integer' },
          selector: { type: 'string' },
          phase: { type: 'string' },
        },
      },
    },
  };
}
