import { objectController, OwnedObjects } from 'crd-controller';
import type { Controller, ControllerKit } from 'crd-controller';
import { CONFIG_MAPS } from 'crd-controller/kinds';
import * as s from 'crd-controller/schema';

const GENERATORS = s.customResource({
  group: 'example.com',
  version: 'v1',
  kind: 'ConfigMapGenerator',
  plural: 'configmapgenerators',
  spec: s.object({ content: s.string() }),
  status: s.status({}),
});

export function generatorController(kit: ControllerKit): Controller {
  const owned = new OwnedObjects(GENERATORS, 'generator-controller').add(
    kit.informers.for(CONFIG_MAPS),
  );
  return objectController(kit, kit.informers.for(GENERATORS), {
    name: 'generator',
    reconcile: async (generator, context) => {
      const { name } = generator.metadata;
      const data = { content: generator.spec.content };
      await owned.ensure(context, generator, [
        { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data },
      ]);
      return { kind: 'ready', reason: 'Generated', message: `ConfigMap ${name} is current` };
    },
  }).owns(owned);
}
