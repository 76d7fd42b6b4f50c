import { DEPLOYMENTS, PODS } from '../../../api/builtin.ts';
import { rolloutOf } from '../../../api/workloads.ts';
import { FOOS } from '../../../api/generated/foo.ts';
import { controllerOf } from '../../../api/metadata.ts';
import type { Act } from '../act.ts';
import type { Scene } from '../scene.ts';
import { eventsOf, holds, namesOf, ownedBy } from '../view.ts';
import type { View } from '../view.ts';

const NAME = 'example-foo';

/** sample-controller's Foo: a Deployment that follows it, and others that it leaves alone. */
export const fooScene: Scene = {
  name: 'foo',
  kinds: [FOOS],
  sample: 'examples/04-foo',
  complaint: /already exists and is not managed by Foo/,
  play: async (act) => {
    const { kubectl } = act;
    act.heading('Create a Foo');
    await kubectl.apply('examples/04-foo');
    await reached(act, 'example-foo', 1);
    await kubectl.get(FOOS, DEPLOYMENTS);

    act.heading('Another client scales the Deployment');
    await kubectl.scale(DEPLOYMENTS, 'example-foo', 3);
    await reached(act, 'example-foo', 1);

    act.heading('Rename the Deployment');
    const spec = { deploymentName: 'renamed', replicas: 2 };
    await kubectl.patch(FOOS, NAME, { spec });
    await reached(act, 'renamed', 2);
    await kubectl.get(FOOS, DEPLOYMENTS);

    act.heading('Use the name of a Deployment that the Foo does not own');
    await kubectl.createDeployment('unowned', 'nginx');
    await kubectl.patch(FOOS, NAME, { spec: { deploymentName: 'unowned' } });
    await act.reached(
      'The Foo reports the name collision, and the Deployment is unchanged',
      (view) => {
        const foo = view(FOOS).get(NAME);
        const [event] = eventsOf(view, 'ErrResourceExists', foo?.metadata.uid);
        if (!foo || !holds(foo, 'Stalled')) return 'the Foo is not Stalled';
        if (!event) return 'there is no event ErrResourceExists';
        return touched(view);
      },
    );
    await kubectl.getWide(FOOS);

    act.heading('Delete the Foo');
    await kubectl.delete(FOOS, NAME);
    await act.reached(
      'The Foo and its Deployment are deleted; the other Deployment still exists',
      (view) => {
        const left = [...view(FOOS).values(), ...view(DEPLOYMENTS).values()];
        return namesOf(left) === 'unowned' ? touched(view) : `these exist: ${namesOf(left)}`;
      },
    );
    await kubectl.delete(DEPLOYMENTS, 'unowned');
    await act.sight((view) => (view(PODS).size === 0 ? undefined : 'Pods exist'));
  },
};

/** Waits until the Foo has one Deployment, of this name, with so many Pods, and is ready. */
function reached(act: Act, deploymentName: string, replicas: number): Promise<View> {
  const claim = `The Foo has one Deployment, ${deploymentName}, with ${replicas} of ${replicas} replicas available`;
  return act.reached(claim, (view) => {
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

function touched(view: View): string | undefined {
  const theirs = view(DEPLOYMENTS).get('unowned');
  if (!theirs) return 'the other Deployment is deleted';
  const { generation, deletionTimestamp } = theirs.metadata;
  return generation === 1 && deletionTimestamp === undefined && !controllerOf(theirs)
    ? undefined
    : 'the other Deployment was changed';
}
