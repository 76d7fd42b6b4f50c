import { Controller, controllerReference, done, ensureChild, labelValue } from 'crd-controller';
import { DEPLOYMENTS } from 'crd-controller/kinds';
import type { ControllerKit } from 'crd-controller';
import { FOOS } from 'crd-controller/controllers';

export function fooController(kit: ControllerKit): Controller {
  const foos = kit.informers.for(FOOS);
  const deployments = kit.informers.for(DEPLOYMENTS);
  return new Controller(kit, {
    name: 'foo',
    kind: 'Foo',
    concurrency: 4,
    sync: async (key, context) => {
      const foo = foos.lister.get(key);
      if (!foo || foo.metadata.deletionTimestamp) return done();
      const labels = { app: labelValue(foo.metadata.name) };
      await ensureChild(context, {
        resource: DEPLOYMENTS,
        owner: foo,
        cached: deployments.lister.get(key),
        fieldManager: 'foo-controller',
        desired: {
          apiVersion: 'apps/v1',
          kind: 'Deployment',
          metadata: {
            ...(foo.metadata.namespace && { namespace: foo.metadata.namespace }),
            name: foo.metadata.name,
            ownerReferences: [controllerReference(foo)],
          },
          spec: {
            replicas: foo.spec.replicas,
            selector: { matchLabels: labels },
            template: {
              metadata: { labels },
              spec: { containers: [{ name: 'nginx', image: 'nginx' }] },
            },
          },
        },
      });
      return done();
    },
  })
    .for(foos)
    .owns(deployments, FOOS);
}
