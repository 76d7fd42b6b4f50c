import { controllerReference } from 'crd-controller';
import type {
  Controller,
  ControllerKit,
  DeepReadonly,
  KubernetesObject,
  Resource,
} from 'crd-controller';
import {
  childTask,
  standardTasks,
  WEB_APPS,
  webAppControllerWith,
} from 'crd-controller/controllers';
import type { Task, WebApp } from 'crd-controller/controllers';

interface ConfigMap extends KubernetesObject {
  data?: Record<string, string>;
}

const CONFIG_MAPS: Resource<ConfigMap> = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
};

/** The daemon's WebApps, with two tasks more: a page before all others, and a word after them. */
export function webAppController(kit: ControllerKit): Controller {
  const configMaps = kit.informers.for(CONFIG_MAPS);
  const page = childTask({
    name: 'page',
    resource: CONFIG_MAPS,
    lister: configMaps.lister,
    nameOf: pageName,
    build: (webapp) => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: {
        name: pageName(webapp),
        ...(webapp.metadata.namespace && { namespace: webapp.metadata.namespace }),
        ownerReferences: [controllerReference(webapp)],
      },
      data: { 'index.html': `<h1>${webapp.metadata.name} ${webapp.spec.version}</h1>` },
    }),
  });
  const build = webAppControllerWith((caches) => [page, ...standardTasks(caches), word]);
  return (
    build(kit, { name: 'webapp', selection: {}, concurrency: 2 })
      // A page that is deleted or changed by someone else is created again.
      .owns(configMaps, WEB_APPS)
  );
}

function pageName({ metadata }: DeepReadonly<WebApp>): string {
  return `${metadata.name}-page`;
}

/** Hooks run on every change, so each must check whether it has work to do. */
const word: Task = {
  name: 'word',
  postCreate: async ({ webapp, log }) => {
    log.v(2).info('Everything is available', { replicas: webapp.spec.replicas });
    return undefined;
  },
  preDelete: async ({ log }) => {
    log.v(2).info('About to be taken down');
    return undefined;
  },
};
