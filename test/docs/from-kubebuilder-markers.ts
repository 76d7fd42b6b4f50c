import { customResource, integer, intOrString, object, string } from 'crd-controller/schema';

export const FOOS = customResource({
  group: 'example.com',
  version: 'v1',
  kind: 'Foo',
  plural: 'foos',
  shortNames: ['fo'],
  spec: object(
    {
      image: string({ minLength: 1, maxLength: 200 }),
      replicas: integer({ format: 'int32', minimum: 1, maximum: 10, default: 1 }),
      port: intOrString(),
    },
    { rules: [{ rule: 'self.image == oldSelf.image', message: 'image is immutable' }] },
  ),
  status: object({ readyReplicas: integer({ format: 'int32', default: 0 }) }),
  columns: [{ name: 'Ready', type: 'integer', jsonPath: '.status.readyReplicas' }],
  scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.readyReplicas' },
});
