import { objectController, OwnedObjects } from 'crd-controller';
import { CONFIG_MAPS } from 'crd-controller/kinds';
import * as s from 'crd-controller/schema';
import type { Controller, ControllerKit } from 'crd-controller';

export const GREETINGS = s.customResource({
  group: 'example.com',
  version: 'v1',
  kind: 'Greeting',
  plural: 'greetings',
  spec: s.object({ text: s.string() }),
  status: s.status(),
});

/** Keeps a ConfigMap with `spec.text` for every Greeting. */
export function greetingController(kit: ControllerKit): Controller {
  const greetings = kit.informers.for(GREETINGS);
  const configMaps = kit.informers.for(CONFIG_MAPS);
  const owned = new OwnedObjects(GREETINGS, 'greeting-controller').add(configMaps);
  return objectController(kit, greetings, {
    name: 'greeting',
    reconcile: async (greeting, context) => {
      const { name } = greeting.metadata;
      const data = { text: greeting.spec.text };
      const desired = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data };
      await owned.ensure(context, greeting, [desired]);
      return { kind: 'ready', reason: 'Synced', message: 'Greeting synced successfully' };
    },
  }).owns(owned);
}
