import { NODES, PODS } from '../../api/builtin.ts';
import { keyOf } from '../../api/object-key.ts';
import { Controller } from '../../manager/controller.ts';
import type { Source } from '../../manager/controller.ts';
import type { ControllerFactory } from '../controller-factory.ts';
import { Announcer } from './announcer.ts';
import { COMPONENT, INTERVAL_MS, isLabelled, isMaster, podCountSync } from './sync.ts';

/**
 * Counts the Pods of the cluster, from the cache, and labels the master nodes with the number. What
 * a Pod's coming and going costs does not depend on how many there are: the cache knows its size,
 * and it is looked at every ten seconds.
 */
export const podCountController: ControllerFactory = (deps, options) => {
  const { clock, log } = deps;
  const nodes = deps.informers.for(NODES);
  const pods = deps.informers.for(PODS);
  const recorder = deps.events.recorder(COMPONENT);
  const announcer = new Announcer({ recorder, clock, log, count: () => pods.lister.size });
  if (options.podEvents) {
    pods.addHandler({
      // Those that are there already were told when they came, or nobody looked.
      onAdd: (pod, isInInitialList) => {
        // Of several that share the work, one tells it.
        const isOurs = deps.sharding?.holds(keyOf(pod)) ?? true;
        if (!isInInitialList && isOurs) announcer.added(pod);
      },
    });
  }
  const recount: Source = async (queue, signal) => {
    announcer.on(signal);
    let hadMasters = true;
    while (!signal.aborted) {
      const masters = nodes.lister.list().filter(isMaster);
      if (masters.length === 0 && hadMasters) {
        log.info('No node has the role control-plane or master; the count is written nowhere');
      }
      hadMasters = masters.length > 0;
      const stale = masters.filter((node) => !isLabelled(node, pods.lister.size));
      for (const node of stale) queue.add(keyOf(node), { cause: 'The number of Pods changed' });
      await clock.sleep(INTERVAL_MS, signal);
    }
  };
  return new Controller(deps, {
    name: options.name,
    kind: NODES.kind,
    sync: podCountSync({ nodes: nodes.lister, pods: pods.lister, recorder, clock }),
    concurrency: options.concurrency,
  })
    .for(nodes)
    .source(recount);
};
