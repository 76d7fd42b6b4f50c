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
  status: s.object(
    {
      observedGeneration: s.optional(
        s.integer({
          description: 'The metadata.generation that this status describes.',
          format: 'int64',
          minimum: 0,
        }),
      ),
      availableReplicas: s.optional(
        s.integer({ description: 'Number of available replicas.', format: 'int32', minimum: 0 }),
      ),
      conditions: s.optional(
        s.conditions({
          description:
            'Ready is True if all replicas are available. Reconciling and Stalled are present only while they are True: the controller is working, or is blocked until a user changes something.',
        }),
      ),
    },
    { description: 'Observed state. Written only by the controller.' },
  ),
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
    {
      name: 'Ready',
      type: 'string',
      description: 'Whether all desired replicas are available',
      jsonPath: '.status.conditions[?(@.type=="Ready")].status',
    },
    {
      name: 'Reason',
      type: 'string',
      description: 'Reason of the condition Ready',
      priority: 1,
      jsonPath: '.status.conditions[?(@.type=="Ready")].reason',
    },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
});

export type StaticSite = s.Infer<typeof STATIC_SITES>;
