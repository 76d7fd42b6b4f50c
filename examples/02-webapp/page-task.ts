import { controllerReference } from 'crd-controller';
import type {
  Controller,
  ControllerKit,
  DeepReadonly,
  KubernetesObject,
  Resource,
} from 'crd-controller';
import {
  ownedObjectTask,
  standardTasks,
  WEB_APPS,
  webAppController,
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

/** The WebApp controller of the program with two more tasks: a page before the others, and a log line after them. */
export function webAppWithPage(kit: ControllerKit): Controller {
  const configMaps = kit.informers.for(CONFIG_MAPS);
  const page = ownedObjectTask({
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
  return (
    webAppController(kit, { tasks: (caches) => [page, ...standardTasks(caches), word] })
      // A page that is deleted or changed by another client is created again.
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
    log.v(2).info('All replicas are available', { replicas: webapp.spec.replicas });
    return undefined;
  },
  preDelete: async ({ log }) => {
    log.v(2).info('Deleting the WebApp');
    return undefined;
  },
};
