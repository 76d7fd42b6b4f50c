/** The source of deploy/crds/staticsites.example.com.yaml: `npm run generate` writes it. */
import * as s from 'crd-controller/schema';

export const STATIC_SITES = s.customResource({
  group: 'example.com',
  version: 'v1alpha1',
  kind: 'StaticSite',
  plural: 'staticsites',
  description: 'StaticSite runs a number of equal Pods with a Deployment of the same name.',
  spec: s.object(
    {
      image: s.string({ description: 'Image of the Pods.', minLength: 1, maxLength: 512 }),
      replicas: s.integer({
        description: 'Desired number of Pods, from 0 to 100.',
        format: 'int32',
        default: 1,
        minimum: 0,
        maximum: 100,
      }),
    },
    { description: 'Desired state.' },
  ),
  status: s.status({
    availableReplicas: s.optional(
      s.integer({ description: 'Number of available replicas.', format: 'int32', minimum: 0 }),
    ),
  }),
  scale: {
    specReplicasPath: '.spec.replicas',
    statusReplicasPath: '.status.availableReplicas',
  },
  columns: [
    {
      name: 'Image',
      type: 'string',
      description: 'Image of the Pods',
      jsonPath: '.spec.image',
    },
    {
      name: 'Desired',
      type: 'integer',
      description: 'Desired number of replicas',
      jsonPath: '.spec.replicas',
    },
    {
      name: 'Available',
      type: 'integer',
      description: 'Number of available replicas',
      jsonPath: '.status.availableReplicas',
    },
  ],
});

export type StaticSite = s.Infer<typeof STATIC_SITES>;
