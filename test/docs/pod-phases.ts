import { Controller, done, runControllers, textLogger } from 'crd-controller';
import { PODS } from 'crd-controller/kinds';

await runControllers({
  log: textLogger({ verbosity: 2 }),
  controllers: (kit) => {
    const pods = kit.informers.for(PODS, { labelSelector: 'app=web' });
    return [
      new Controller(kit, {
        name: 'web',
        kind: 'Pod',
        sync: async (key) => {
          const pod = pods.lister.get(key);
          console.log(pod ? `${key} is ${pod.status?.phase}` : `${key} is gone`);
          return done();
        },
      }).for(pods),
    ];
  },
});
