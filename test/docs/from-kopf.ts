import { Controller, done, keyOf, requeueAfter, TerminalError } from 'crd-controller';
import { PODS } from 'crd-controller/kinds';
import type { ControllerKit } from 'crd-controller';

export function podController(kit: ControllerKit): Controller {
  const pods = kit.informers.for(PODS, { labelSelector: 'app=web' });
  return new Controller(kit, {
    name: 'web',
    kind: 'Pod',
    sync: async (key, { log }) => {
      const pod = pods.lister.get(key);
      if (!pod) return done(); // It was deleted.
      if (!pod.spec) throw new TerminalError(`Pod ${keyOf(pod)} has no spec`);
      if (pod.status?.phase !== 'Running') return requeueAfter(10_000, 'the Pod starts');
      log.info('Pod is running');
      return done();
    },
  }).for(pods);
}
