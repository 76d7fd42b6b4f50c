import { PODS } from '../../api/builtin.ts';
import type { Pod } from '../../api/builtin.ts';
import { hasFinalizer } from '../../api/metadata.ts';
import { ATS } from '../../api/generated/at.ts';
import type { At } from '../../api/generated/at.ts';
import { keyOf } from '../../api/object-key.ts';
import type { ObjectKey } from '../../api/object-key.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { Controller } from '../../manager/controller.ts';
import { mapToOwner } from '../../manager/enqueue.ts';
import { StatusWriter } from '../../manager/status-writer.ts';
import { watchClockJumps } from '../../util/clock.ts';
import type { ControllerFactory } from '../controller-factory.ts';
import { COMPONENT, FINALIZER, podName } from './pod.ts';
import { Punctuality } from './punctuality.ts';
import { atSync, UNRECORDED_INDEX } from './sync.ts';

/** Name of the index of Ats by the key of the Pod that they will have. */
const POD_INDEX = 'pod';

/** Runs the command of every At once, at its time. */
export const atController: ControllerFactory = (deps, options) => {
  const ats = deps.informers.for(ATS, options.selection);
  const pods = deps.informers.for(PODS, options.selection);
  const toAt = (pod: DeepReadonly<Pod>): ObjectKey[] => {
    const key = mapToOwner(ATS)(pod);
    return typeof key === 'string' ? [key] : [];
  };
  pods.addIndexers({
    [UNRECORDED_INDEX]: (pod: DeepReadonly<Pod>) => (hasFinalizer(pod, FINALIZER) ? toAt(pod) : []),
  });
  ats.addIndexers({
    [POD_INDEX]: (at: DeepReadonly<At>) => [
      keyOf({ metadata: { ...at.metadata, name: podName(at) } }),
    ],
  });
  const sync = atSync({
    ats: ats.lister,
    pods: pods.lister,
    recorder: deps.events.recorder(COMPONENT),
    statuses: new StatusWriter(ATS, COMPONENT),
    punctuality: new Punctuality(deps.metrics?.at),
    clock: deps.clock,
  });
  // A Pod that is not an At's may hold the name that an At waits for.
  const toAts = (pod: DeepReadonly<Pod>) => {
    const own = toAt(pod);
    return own.length > 0 ? own : ats.lister.indexKeys(POD_INDEX, keyOf(pod));
  };
  return new Controller(deps, {
    name: options.name,
    kind: ATS.kind,
    sync,
    concurrency: options.concurrency,
  })
    .for(ats)
    .watches(pods, toAts)
    .source((queue, signal) =>
      watchClockJumps(
        deps.clock,
        (byMs) => {
          deps.log.info('The clock jumped; looking at every schedule again', { byMs });
          for (const at of ats.lister.list()) {
            if (at.status?.podUID === undefined) queue.add(keyOf(at), { cause: 'Clock jumped' });
          }
        },
        signal,
      ),
    );
};
