import { PODS } from '../../api/builtin.ts';
import type { Pod } from '../../api/builtin.ts';
import { COUNTS } from '../../api/generated/count.ts';
import { keyOf, objectKey } from '../../api/object-key.ts';
import type { DeepReadonly } from '../../api/object.ts';
import type { ObjectKey } from '../../api/object-key.ts';
import { Controller } from '../../manager/controller.ts';
import { ownerIndexers, mapToOwner } from '../../manager/enqueue.ts';
import { StatusWriter } from '../../manager/status-writer.ts';
import type { ControllerFactory } from '../controller-factory.ts';
import { COMPONENT } from './pod.ts';
import { countSync } from './sync.ts';

/** Keeps `spec.count` Pods of `spec.name` for every Count. */
export const countController: ControllerFactory = (deps, options) => {
  const counts = deps.informers.for(COUNTS, options.selection);
  const pods = deps.informers.for(PODS, options.selection);
  pods.addIndexers(ownerIndexers);
  counts.addHandler({
    onDelete: (count) => deps.log.v(2).info('Count was deleted', { count: keyOf(count) }),
  });
  const sync = countSync({
    counts: counts.lister,
    pods: pods.lister,
    recorder: deps.events.recorder(COMPONENT),
    statuses: new StatusWriter(COUNTS, COMPONENT),
    clock: deps.clock,
  });
  // A Pod that is not a Count's may hold the name that a Count waits for.
  const waitingFor = (pod: DeepReadonly<Pod>): ObjectKey | undefined => {
    const [, name] = /^(.+)-\d{1,6}$/.exec(pod.metadata.name) ?? [];
    const key = name && objectKey(pod.metadata.namespace, name);
    return key && counts.lister.get(key) ? key : undefined;
  };
  return new Controller(deps, {
    name: options.name,
    kind: COUNTS.kind,
    sync,
    concurrency: options.concurrency,
  })
    .for(counts)
    .watches(pods, (pod) => mapToOwner(COUNTS)(pod) ?? waitingFor(pod));
};
