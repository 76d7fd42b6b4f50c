import {
  Controller,
  controllerReference,
  done,
  ensureChild,
  keyOf,
  predicates,
  StatusWriter,
} from 'crd-controller';
import type {
  Condition,
  ControllerKit,
  KubernetesObject,
  Readiness,
  Resource,
} from 'crd-controller';

export interface Greeting extends KubernetesObject {
  spec: { text: string };
  status?: { observedGeneration?: number; conditions?: Condition[] };
}

export const GREETINGS: Resource<Greeting> = {
  group: 'example.com',
  version: 'v1',
  plural: 'greetings',
  kind: 'Greeting',
  namespaced: true,
};

export interface ConfigMap extends KubernetesObject {
  data?: Record<string, string>;
}

export const CONFIG_MAPS: Resource<ConfigMap> = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
};

export interface GreetingControllerOptions {
  /** @default all */
  readonly namespaces?: readonly string[];
}

/** Name of the controller in managedFields and events. */
const COMPONENT = 'greeting-controller';

/** Keeps a ConfigMap with `spec.text` for every Greeting. */
export function greetingController(
  kit: ControllerKit,
  { namespaces }: GreetingControllerOptions = {},
): Controller {
  const greetings = kit.informers.for(GREETINGS, { namespaces });
  const configMaps = kit.informers.for(CONFIG_MAPS, { namespaces });
  const statuses = new StatusWriter(GREETINGS, COMPONENT, kit);
  return new Controller(kit, {
    name: 'greeting',
    kind: GREETINGS.kind,
    sync: async (key, context) => {
      const greeting = greetings.lister.get(key);
      // The garbage collector deletes the ConfigMap of a deleted Greeting.
      if (!greeting || greeting.metadata.deletionTimestamp) return done();
      const { name, namespace = '' } = greeting.metadata;
      const { kind } = await ensureChild(context, {
        resource: CONFIG_MAPS,
        owner: greeting,
        desired: {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: { name, namespace, ownerReferences: [controllerReference(greeting)] },
          data: { text: greeting.spec.text },
        },
        cached: configMaps.lister.get(key),
        fieldManager: COMPONENT,
      });
      const readiness = readinessOf(kind, name);
      await statuses.report(context, {
        object: greeting,
        readiness,
        event: { type: readiness.kind === 'ready' ? 'Normal' : 'Warning' },
      });
      return done();
    },
  })
    .for(greetings, { predicates: [predicates.generationChanged] })
    .owns(configMaps, GREETINGS, { orNamed: keyOf });
}

function readinessOf(kind: string, name: string): Readiness {
  switch (kind) {
    case 'nameCollision': {
      const message = `ConfigMap "${name}" already exists and is not managed by Greeting`;
      return { kind: 'stalled', reason: 'ErrResourceExists', message };
    }
    case 'terminating': {
      const message = `ConfigMap "${name}" is being deleted`;
      return { kind: 'reconciling', reason: 'ConfigMapTerminating', message };
    }
    default:
      return { kind: 'ready', reason: 'Synced', message: 'Greeting synced successfully' };
  }
}
