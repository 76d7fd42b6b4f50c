import { DEPLOYMENTS } from '../../api/builtin.ts';
import type { Deployment } from '../../api/builtin.ts';
import { FOOS } from '../../api/generated/foo.ts';
import type { Foo } from '../../api/generated/foo.ts';
import { keyOf, objectKey } from '../../api/object-key.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { Controller } from '../../manager/controller.ts';
import { ownerIndexers, mapToOwner } from '../../manager/enqueue.ts';
import { StatusWriter } from '../../manager/status-writer.ts';
import type { ControllerFactory } from '../controller-factory.ts';
import { COMPONENT, problemOf } from './deployment.ts';
import { fooSync } from './sync.ts';

/** Name of the index of Foos by the key of the Deployment they ask for. */
const DEPLOYMENT_INDEX = 'deployment';

/** Keeps the Deployment that every Foo names. */
export const fooController: ControllerFactory = (deps, options) => {
  const foos = deps.informers.for(FOOS, options.selection);
  const deployments = deps.informers.for(DEPLOYMENTS, options.selection);
  deployments.addIndexers(ownerIndexers);
  foos.addIndexers({
    [DEPLOYMENT_INDEX]: (foo: DeepReadonly<Foo>) =>
      problemOf(foo) === undefined
        ? [objectKey(foo.metadata.namespace, foo.spec.deploymentName)]
        : [],
  });
  const sync = fooSync({
    foos: foos.lister,
    deployments: deployments.lister,
    recorder: deps.events.recorder(COMPONENT),
    statuses: new StatusWriter(FOOS, COMPONENT),
    clock: deps.clock,
  });
  // A Deployment that is not a Foo's may hold the name that a Foo waits for.
  const toFoos = (deployment: DeepReadonly<Deployment>) =>
    mapToOwner(FOOS)(deployment) ?? foos.lister.indexKeys(DEPLOYMENT_INDEX, keyOf(deployment));
  return new Controller(deps, {
    name: options.name,
    kind: FOOS.kind,
    sync,
    concurrency: options.concurrency,
  })
    .for(foos)
    .watches(deployments, toFoos);
};
