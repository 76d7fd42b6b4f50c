import { DEPLOYMENTS, SERVICES } from '../../api/builtin.ts';
import type { Deployment, Service } from '../../api/builtin.ts';
import { WEB_APPS } from '../../api/generated/web-app.ts';
import type { WebApp } from '../../api/generated/web-app.ts';
import { objectKey } from '../../api/object-key.ts';
import type { ObjectKey } from '../../api/object-key.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { Controller } from '../../manager/controller.ts';
import { mapToOwner } from '../../manager/enqueue.ts';
import { StatusWriter } from '../../manager/status-writer.ts';
import type { Lister } from '../../cache/lister.ts';
import type { ControllerFactory } from '../controller-factory.ts';
import {
  buildDeployment,
  buildService,
  COMPONENT,
  deploymentName,
  serviceName,
} from './children.ts';
import { checkTasks } from './pipeline.ts';
import { webAppSync } from './sync.ts';
import type { Task } from './task.ts';
import { childTask } from './tasks/child-task.ts';
import { rolloutTask } from './tasks/rollout-task.ts';

/** The caches that tasks read. */
export interface TaskCaches {
  readonly deployments: Lister<Deployment>;
  readonly services: Lister<Service>;
}

/** A Deployment, a Service in front of it, and the wait until all replicas are available. */
export function standardTasks({ deployments, services }: TaskCaches): Task[] {
  return [
    childTask({
      name: 'deployment',
      resource: DEPLOYMENTS,
      lister: deployments,
      nameOf: deploymentName,
      build: buildDeployment,
    }),
    childTask({
      name: 'service',
      resource: SERVICES,
      lister: services,
      nameOf: serviceName,
      build: buildService,
    }),
    rolloutTask(deployments),
  ];
}

/**
 * The controller of WebApps with tasks of your own.
 *
 * @throws {RangeError} on a task without a proper name, on two of one name, and on too many
 */
export function webAppControllerWith(
  tasksOf: (caches: TaskCaches) => readonly Task[],
): ControllerFactory {
  return (deps, options) => {
    const webapps = deps.informers.for(WEB_APPS, options.selection);
    const deployments = deps.informers.for(DEPLOYMENTS, options.selection);
    const services = deps.informers.for(SERVICES, options.selection);
    const tasks = tasksOf({ deployments: deployments.lister, services: services.lister });
    checkTasks(tasks);
    webapps.addIndexers({
      [DEPLOYMENT_INDEX]: named(deploymentName),
      [SERVICE_INDEX]: named(serviceName),
    });
    const sync = webAppSync({
      webapps: webapps.lister,
      deployments: deployments.lister,
      tasks,
      recorder: deps.events.recorder(COMPONENT),
      statuses: new StatusWriter(WEB_APPS, COMPONENT),
      clock: deps.clock,
    });
    // What is not a WebApp's may hold the name that a WebApp waits for.
    const waitingFor = (index: string) => (child: DeepReadonly<Deployment | Service>) =>
      mapToOwner(WEB_APPS)(child) ??
      webapps.lister.indexKeys(index, objectKey(child.metadata.namespace, child.metadata.name));
    return new Controller(deps, {
      name: options.name,
      kind: WEB_APPS.kind,
      sync,
      concurrency: options.concurrency,
    })
      .for(webapps)
      .watches(deployments, waitingFor(DEPLOYMENT_INDEX))
      .watches(services, waitingFor(SERVICE_INDEX));
  };
}

/** Runs a WebApp: Deployment, Service, rollout. */
export const webAppController: ControllerFactory = webAppControllerWith(standardTasks);

const DEPLOYMENT_INDEX = 'deployment';
const SERVICE_INDEX = 'service';

function named(nameOf: (webapp: DeepReadonly<WebApp>) => string) {
  return (webapp: DeepReadonly<WebApp>): ObjectKey[] => [
    objectKey(webapp.metadata.namespace, nameOf(webapp)),
  ];
}
