import { DEPLOYMENTS, PODS } from '../../../api/builtin.ts';
import { rolloutOf } from '../../../api/workloads.ts';
import { FOOS } from '../../../api/generated/foo.ts';
import { controllerOf } from '../../../api/metadata.ts';
import type { ScenarioContext, Scenario } from '../scenario.ts';
import { eventsOf, holds, namesOf, ownedBy } from '../observer.ts';
import type { View } from '../observer.ts';

const NAME = 'example-foo';

/** Creates a Foo with its Deployment, and a name collision with another Deployment. */
export const fooScenario: Scenario = {
  name: 'foo',
  kinds: [FOOS],
  sample: 'examples/04-foo',
  expectedErrors: /already exists and is not managed by Foo/,
  run: async (context) => {
    const { kubectl } = context;
    context.heading('Create a Foo');
    await kubectl.apply('examples/04-foo');
    await checkEventually(context, 'example-foo', 1);
    await kubectl.get(FOOS, DEPLOYMENTS);

    context.heading('Another client scales the Deployment');
    await kubectl.scale(DEPLOYMENTS, 'example-foo', 3);
    await checkEventually(context, 'example-foo', 1);

    context.heading('Rename the Deployment');
    const spec = { deploymentName: 'renamed', replicas: 2 };
    await kubectl.patch(FOOS, NAME, { spec });
    await checkEventually(context, 'renamed', 2);
    await kubectl.get(FOOS, DEPLOYMENTS);

    context.heading('Use the name of a Deployment that the Foo does not own');
    await kubectl.createDeployment('unowned', 'nginx');
    await kubectl.patch(FOOS, NAME, { spec: { deploymentName: 'unowned' } });
    await context.checkEventually(
      'The Foo reports the name collision, and the Deployment is unchanged',
      (view) => {
        const foo = view(FOOS).get(NAME);
        const [event] = eventsOf(view, 'ErrResourceExists', foo?.metadata.uid);
        if (!foo || !holds(foo, 'Stalled')) return 'the Foo is not Stalled';
        if (!event) return 'there is no event ErrResourceExists';
        return changedObjects(view);
      },
    );
    await kubectl.getWide(FOOS);

    context.heading('Delete the Foo');
    await kubectl.delete(FOOS, NAME);
    await context.checkEventually(
      'The Foo and its Deployment are deleted; the other Deployment still exists',
      (view) => {
        const left = [...view(FOOS).values(), ...view(DEPLOYMENTS).values()];
        return namesOf(left) === 'unowned' ? changedObjects(view) : `these exist: ${namesOf(left)}`;
      },
    );
    await kubectl.delete(DEPLOYMENTS, 'unowned');
    await context.waitFor((view) => (view(PODS).size === 0 ? undefined : 'Pods exist'));
  },
};

/** Waits until the Foo owns one Deployment of this name, with this number of Pods, and is ready. */
function checkEventually(
  context: ScenarioContext,
  deploymentName: string,
  replicas: number,
): Promise<View> {
  const check = `The Foo has one Deployment, ${deploymentName}, with ${replicas} of ${replicas} replicas available`;
  return context.checkEventually(check, (view) => {
    const foo = view(FOOS).get(NAME);
    if (!foo) return 'the Foo does not exist';
    const owned = ownedBy(view(DEPLOYMENTS), foo);
    const [deployment] = owned;
    if (owned.length !== 1 || deployment?.metadata.name !== deploymentName) {
      return `it owns ${namesOf(owned) || 'none'}`;
    }
    const { desired, isComplete } = rolloutOf(deployment);
    if (desired !== replicas) return `the Deployment requests ${desired}`;
    if (!isComplete) return 'the Deployment is not rolled out';
    if (view(PODS).size !== replicas) return `there are ${view(PODS).size} Pods`;
    const { observedGeneration, availableReplicas } = foo.status ?? {};
    if (observedGeneration !== foo.metadata.generation) return 'the status is out of date';
    return holds(foo, 'Ready') && availableReplicas === replicas
      ? undefined
      : `the status reports ${availableReplicas}`;
  });
}

function changedObjects(view: View): string | undefined {
  const unowned = view(DEPLOYMENTS).get('unowned');
  if (!unowned) return 'the other Deployment is deleted';
  const { generation, deletionTimestamp } = unowned.metadata;
  return generation === 1 && deletionTimestamp === undefined && !controllerOf(unowned)
    ? undefined
    : 'the other Deployment was changed';
}
