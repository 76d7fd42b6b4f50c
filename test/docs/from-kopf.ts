import { Controller, done, Finalizer, OwnedObjects, requeueAfter } from 'crd-controller';
import { objectTimer, StatusWriter, TerminalError } from 'crd-controller';
import { CONFIG_MAPS } from 'crd-controller/kinds';
import { customResource, object, string } from 'crd-controller/schema';
import type { ControllerKit } from 'crd-controller';

declare const dns: {
  add(domain: string): Promise<boolean>;
  remove(domain: string): Promise<void>;
  check(domain: string): Promise<void>;
};

export const WEBSITES = customResource({
  group: 'example.com',
  version: 'v1',
  kind: 'Website',
  plural: 'websites',
  spec: object({ domain: string() }),
  status: object({ domain: string() }),
});

export function websiteControllers(kit: ControllerKit) {
  const websites = kit.informers.for(WEBSITES);
  const configMaps = kit.informers.for(CONFIG_MAPS);
  // The finalizer of kopf, so that existing objects are cleaned up, too.
  const finalizer = new Finalizer(WEBSITES, 'kopf.zalando.org/KopfFinalizerMarker', 'website');
  const owned = new OwnedObjects(WEBSITES, 'website').add(configMaps);
  const statuses = new StatusWriter(WEBSITES, 'website', kit);
  const sync = new Controller(kit, {
    name: 'website',
    kind: 'Website',
    sync: async (key, context) => {
      const website = websites.lister.get(key);
      if (!website) return done(); // It was deleted.
      const { name } = website.metadata;
      const { domain } = website.spec;
      return finalizer.sync(website, context, {
        apply: async () => {
          if (domain.endsWith('.test')) throw new TerminalError(`${domain} is not public`);
          if (!(await dns.add(domain))) return requeueAfter(10_000, 'the zone does not exist');
          const config = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } };
          await owned.ensure(context, website, [{ ...config, data: { domain } }]);
          await statuses.report(context, { object: website, status: { domain } });
          context.log.info('Website is served', { domain });
          return done();
        },
        cleanUp: async () => {
          await dns.remove(domain);
          return undefined;
        },
      });
    },
  })
    .for(websites)
    .owns(configMaps, WEBSITES);
  const timer = objectTimer(kit, websites, {
    name: 'website-check',
    intervalMs: 60_000,
    run: ({ spec }) => dns.check(spec.domain),
  });
  return [sync, timer];
}
