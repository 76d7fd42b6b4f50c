import { Controller, controllerReference, done, isControlledBy } from 'crd-controller';
import type { ControllerKit } from 'crd-controller';
import { CONFIG_MAPS, SECRETS } from 'crd-controller/kinds';
import { explore } from 'crd-controller/testing';
import type { ExploreOptions } from 'crd-controller/testing';

/** Keeps one Secret for each ConfigMap. */
const tokens = (nameOf: (map: string) => object) => (kit: ControllerKit) => {
  const maps = kit.informers.for(CONFIG_MAPS);
  const secrets = kit.informers.for(SECRETS);
  const controller = new Controller(kit, {
    name: 'tokens',
    kind: 'ConfigMap',
    sync: async (key, { client }) => {
      const map = maps.lister.get(key);
      if (!map || map.metadata.deletionTimestamp !== undefined) return done();
      if (secrets.lister.list().some((secret) => isControlledBy(secret, map))) return done();
      const { namespace = 'default', name } = map.metadata;
      const metadata = { namespace, ownerReferences: [controllerReference(map)], ...nameOf(name) };
      await client.create(SECRETS, { apiVersion: 'v1', kind: 'Secret', metadata });
      return done();
    },
  });
  return [controller.for(maps).owns(secrets, CONFIG_MAPS)];
};

const metadata = { namespace: 'default', name: 'web' };
const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata };
const options: Omit<ExploreOptions, 'controllers'> = {
  scenario: { 'a user creates a ConfigMap': (client) => client.create(CONFIG_MAPS, map) },
  budget: { schedules: 50 },
};

try {
  await explore({ ...options, controllers: tokens((name) => ({ generateName: `${name}-` })) });
} catch (error) {
  console.log(String(error).split('\n')[0]); // prints: ViolationError: Violated: nothing is created twice
}

const fixed = tokens((name) => ({ name: `${name}-token` }));
const { schedules } = await explore({ ...options, controllers: fixed });
console.log(schedules); // prints: 50
