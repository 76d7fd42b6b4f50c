import { DEPLOYMENTS, PODS, SERVICES } from '../../../api/builtin.ts';
import type { Service } from '../../../api/builtin.ts';
import { WEB_APPS } from '../../../api/generated/web-app.ts';
import type { WebApp } from '../../../api/generated/web-app.ts';
import type { KubernetesObject } from '../../../api/object.ts';
import { compareResourceVersions } from '../../../api/resource-version.ts';
import { WEB_APP_FINALIZER } from '../../../controllers/webapp/owned-objects.ts';
import type { ScenarioContext, Scenario } from '../scenario.ts';
import { holds, isShownReady, namesOf, ownedBy } from '../observer.ts';
import type { View } from '../observer.ts';

const NAME = 'webapp-sample';

/** Condition types of the tasks, in the order of the pipeline. */
const TASKS = ['DeploymentDone', 'ServiceDone', 'RolloutDone'];

/** Runs a pipeline of tasks, scales, and undoes the tasks in reverse order. */
export const webAppScenario: Scenario = {
  name: 'webapp',
  kinds: [WEB_APPS],
  sample: 'examples/02-webapp',
  run: async (context) => {
    const { kubectl } = context;
    context.heading('Create a WebApp: Deployment, Service, rollout');
    await kubectl.apply('examples/02-webapp');
    const view = await checkEventually(context, 2);
    await kubectl.get(WEB_APPS);
    await kubectl.get(DEPLOYMENTS, PODS);
    context.check(
      `Each task has a condition that is true: ${TASKS.join(', ')}`,
      falseConditions(view),
    );
    context.check(
      'A finalizer delays the deletion of the WebApp until its tasks are undone',
      missingFinalizer(view),
    );

    context.heading('Scale up to 3');
    await kubectl.scale(WEB_APPS, NAME, 3);
    await checkEventually(context, 3);
    await kubectl.get(WEB_APPS);

    context.heading('Delete the WebApp');
    const before = context.observer.gone.length;
    await kubectl.delete(WEB_APPS, NAME);
    await context.checkEventually('The WebApp and its owned objects are deleted', (now) => {
      const left = [
        ...now(WEB_APPS).values(),
        ...now(DEPLOYMENTS).values(),
        ...[...now(SERVICES).values()].filter(isOurs),
        ...now(PODS).values(),
      ];
      return left.length === 0 ? undefined : `these still exist: ${namesOf(left)}`;
    });
    await kubectl.get(WEB_APPS, DEPLOYMENTS, PODS);
    context.check(
      'The Service is deleted first, then the Deployment, and the WebApp last',
      wrongOrder(context.observer.gone.slice(before), ['Service', 'Deployment', 'WebApp']),
    );
  },
};

function checkEventually(context: ScenarioContext, wanted: number): Promise<View> {
  return context.checkEventually(
    `${wanted} of ${wanted} replicas are available, behind a Service that the WebApp owns`,
    (view) => {
      const webapp = view(WEB_APPS).get(NAME);
      if (!webapp) return 'the WebApp does not exist';
      return missingStatus(webapp, wanted) ?? missingChildren(view, webapp, wanted);
    },
  );
}

function missingStatus(webapp: WebApp, wanted: number): string | undefined {
  const { observedGeneration, availableReplicas } = webapp.status ?? {};
  if (observedGeneration !== webapp.metadata.generation) return 'the status is out of date';
  if (!holds(webapp, 'Ready')) return 'the WebApp is not Ready';
  return availableReplicas === wanted ? undefined : `${availableReplicas} replicas are available`;
}

function missingChildren(view: View, webapp: WebApp, wanted: number): string | undefined {
  const [deployment] = ownedBy(view(DEPLOYMENTS), webapp);
  const [service] = ownedBy(view(SERVICES), webapp);
  if (!deployment) return 'it owns no Deployment';
  if (!service) return 'it owns no Service';
  const available = deployment.status?.availableReplicas;
  if (available !== wanted) return `the Deployment has ${available} available replicas`;
  const ready = [...view(PODS).values()].filter((pod) => isShownReady(pod));
  return ready.length === wanted ? undefined : `${ready.length} Pods are ready`;
}

function falseConditions(view: View): string | undefined {
  const webapp = view(WEB_APPS).get(NAME);
  const open = TASKS.filter((type) => !webapp || !holds(webapp, type));
  return open.length === 0 ? undefined : `not true: ${open.join(', ')}`;
}

function missingFinalizer(view: View): string | undefined {
  const { finalizers = [] } = view(WEB_APPS).get(NAME)?.metadata ?? {};
  return finalizers.includes(WEB_APP_FINALIZER)
    ? undefined
    : `it has ${JSON.stringify(finalizers)}`;
}

/** The Service of the API server has no owner. */
function isOurs({ metadata }: Service): boolean {
  return metadata.ownerReferences !== undefined;
}

/** Watches of several kinds are not ordered; resource versions are. */
function wrongOrder(
  gone: readonly KubernetesObject[],
  kinds: readonly string[],
): string | undefined {
  const order = gone
    .filter(({ kind }) => kinds.includes(kind))
    .toSorted((a, b) =>
      compareResourceVersions(a.metadata.resourceVersion, b.metadata.resourceVersion),
    )
    .map(({ kind }) => kind);
  return order.join() === kinds.join() ? undefined : `the order was ${order.join(', ')}`;
}
