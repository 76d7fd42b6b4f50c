import { objectController, objectTimer, OwnedObjects } from 'crd-controller';
import { requeueAfter, TerminalError } from 'crd-controller';
import { CONFIG_MAPS } from 'crd-controller/kinds';
import * as s from 'crd-controller/schema';
import type { ControllerKit } from 'crd-controller';

declare const dns: {
  add(domain: string): Promise<boolean>;
  remove(domain: string): Promise<void>;
  check(domain: string): Promise<void>;
};

export const WEBSITES = s.customResource({
  group: 'example.com',
  version: 'v1',
  kind: 'Website',
  plural: 'websites',
  spec: s.object({ domain: s.string() }),
  status: s.status({ domain: s.optional(s.string()) }),
});

export function websiteControllers(kit: ControllerKit) {
  const websites = kit.informers.for(WEBSITES);
  const configMaps = kit.informers.for(CONFIG_MAPS);
  const owned = new OwnedObjects(WEBSITES, 'website-controller').add(configMaps);
  const controller = objectController(kit, websites, {
    name: 'website',
    reconcile: async (website, context) => {
      const { name } = website.metadata;
      const { domain } = website.spec;
      if (domain.endsWith('.test')) throw new TerminalError(`${domain} is not public`);
      if (!(await dns.add(domain))) return requeueAfter(10_000, 'the zone does not exist');
      const config = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } };
      await owned.ensure(context, website, [{ ...config, data: { domain } }]);
      context.log.info('Website is served', { domain });
      const message = `Website is served at ${domain}`;
      return { kind: 'ready', reason: 'Served', message, status: { domain } };
    },
    // The finalizer of kopf, so that existing objects are cleaned up, too.
    finalizer: 'kopf.zalando.org/KopfFinalizerMarker',
    cleanUp: async ({ spec }) => {
      await dns.remove(spec.domain);
    },
  }).owns(owned);
  const timer = objectTimer(kit, websites, {
    name: 'website-check',
    intervalMs: 60_000,
    run: ({ spec }) => dns.check(spec.domain),
  });
  return [controller, timer];
}
