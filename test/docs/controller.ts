import { Controller, done, OwnedObjects, runControllers, type SyncHandler } from 'crd-controller';
import { CONFIG_MAPS, NAMESPACES } from 'crd-controller/kinds';
await runControllers({
  controllers: (kit) => {
    const teams = kit.informers.for(NAMESPACES, { labelSelector: 'team' });
    const owned = new OwnedObjects(NAMESPACES, 'teams').add(kit.informers.for(CONFIG_MAPS));
    const sync: SyncHandler = async (namespace, context) => {
      const team = teams.lister.get(namespace);
      const desired = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'env', namespace } };
      if (team) await owned.ensure(context, team, [desired]);
      return done();
    };
    return [new Controller(kit, { name: 'team', kind: 'Namespace', sync }).for(teams).owns(owned)];
  },
});
