import { labelValue, objectController, OwnedObjects } from 'crd-controller';
import type { Controller, ControllerKit, OwnedNode } from 'crd-controller';
import { CONFIG_MAPS, DEPLOYMENTS, SERVICES } from 'crd-controller/kinds';
import * as s from 'crd-controller/schema';

const WEB_PAGES = s.customResource({
  group: 'example.com',
  version: 'v1',
  kind: 'WebPage',
  plural: 'webpages',
  spec: s.object({ html: s.string({ minLength: 1 }) }),
  status: s.status({}),
});

export function webPageController(kit: ControllerKit): Controller {
  const owned = new OwnedObjects(WEB_PAGES, 'web-page-controller')
    .add(kit.informers.for(CONFIG_MAPS))
    .add(kit.informers.for(DEPLOYMENTS))
    .add(kit.informers.for(SERVICES));
  return objectController(kit, kit.informers.for(WEB_PAGES), {
    name: 'web-page',
    reconcile: async (page, context) => {
      const nodes = nodesOf(page.metadata.name, page.spec.html);
      return (await owned.ensureGraph(context, page, nodes)).readiness;
    },
  }).owns(owned);
}

function nodesOf(name: string, html: string): OwnedNode[] {
  const labels = { app: labelValue(name) };
  const metadata = { name };
  const volumes = [{ name: 'html', configMap: { name } }];
  const volumeMounts = [{ name: 'html', mountPath: '/usr/share/nginx/html' }];
  const containers = [{ name: 'nginx', image: 'nginx', volumeMounts }];
  const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { 'index.html': html } };
  const deployment = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata,
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers, volumes } },
    },
  };
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata,
    spec: { selector: labels, ports: [{ port: 80 }] },
  };
  return [
    { object: configMap },
    { object: deployment, dependsOn: [configMap] },
    { object: service, dependsOn: [deployment] },
  ];
}
