import { labelValue, objectController, OwnedObjects } from 'crd-controller';
import { DEPLOYMENTS } from 'crd-controller/kinds';
import type { Controller, ControllerKit, DeepReadonly, OwnedDraft } from 'crd-controller';
import type { Deployment } from 'crd-controller/kinds';
import { FOOS } from 'crd-controller/controllers';
import type { Foo } from 'crd-controller/controllers';

export function fooController(kit: ControllerKit): Controller {
  const deployments = kit.informers.for(DEPLOYMENTS);
  const owned = new OwnedObjects(FOOS, 'foo-controller').add(deployments);
  return objectController(kit, kit.informers.for(FOOS), {
    name: 'foo',
    concurrency: 4,
    reconcile: async (foo, context) => {
      await owned.ensure(context, foo, [deploymentFor(foo)]);
      return { kind: 'ready', reason: 'Synced', message: 'Foo synced successfully' };
    },
  }).owns(owned);
}

function deploymentFor({ metadata: { name }, spec }: DeepReadonly<Foo>): OwnedDraft<Deployment> {
  const labels = { app: labelValue(name) };
  const containers = [{ name: 'nginx', image: 'nginx' }];
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name },
    spec: {
      replicas: spec.replicas,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers } },
    },
  };
}
