import { Controller, done, Finalizer, objectTimer, OwnedObjects } from 'crd-controller';
import { DEPLOYMENTS, SERVICES } from 'crd-controller/kinds';
import type { ControllerKit } from 'crd-controller';

declare const dns: {
  add(name: string): Promise<void>;
  remove(name: string): Promise<void>;
  check(): Promise<void>;
};

export function siteControllers(kit: ControllerKit) {
  const sites = kit.informers.for(DEPLOYMENTS, { namespaces: ['shop'], labelSelector: 'site' });
  const services = kit.informers.for(SERVICES, { namespaces: ['shop'] });
  const finalizer = new Finalizer(DEPLOYMENTS, 'example.com/site', 'site-controller');
  const owned = new OwnedObjects(DEPLOYMENTS, 'site-controller').add(services);
  const sync = new Controller(kit, {
    name: 'site',
    kind: 'Deployment',
    sync: async (key, context) => {
      const site = sites.lister.get(key);
      if (!site) return done(); // It was deleted.
      const { name } = site.metadata;
      return finalizer.sync(site, context, {
        apply: async () => {
          await dns.add(name);
          await owned.ensure(context, site, [
            {
              apiVersion: 'v1',
              kind: 'Service',
              metadata: { name },
              spec: { selector: { site: name }, ports: [{ port: 80 }] },
            },
          ]);
          return done();
        },
        cleanUp: async () => {
          await dns.remove(name);
          return undefined;
        },
      });
    },
  })
    .for(sites)
    .owns(owned);
  const check = objectTimer(kit, sites, {
    name: 'dns-check',
    intervalMs: 60_000,
    run: () => dns.check(),
  });
  return [sync, check];
}
