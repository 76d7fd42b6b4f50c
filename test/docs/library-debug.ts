import { Controller, controllerManager, done, HttpClient } from 'crd-controller';
import { SyncHistory } from 'crd-controller/debug';
import { NAMESPACES } from 'crd-controller/kinds';
import { ApiServer } from 'crd-controller/testing';

const client = new HttpClient({ handler: new ApiServer().handler, server: 'https://test' });
const history = new SyncHistory();
const manager = controllerManager({
  client,
  history,
  controllers: (kit) => [
    new Controller(kit, {
      name: 'namespaces',
      kind: 'Namespace',
      sync: async (key) => {
        if (key === 'default') manager.stop();
        return done();
      },
    }).for(kit.informers.for(NAMESPACES)),
  ],
});
await manager.run(new AbortController().signal);
console.log(history.of('namespaces', 'default')?.last[0]?.causes[0]?.text); // prints: Namespace default listed
