import { DEPLOYMENTS, NODES, PODS } from '../../../api/builtin.ts';
import { LABEL } from '../../../controllers/pod-count/controller.ts';
import type { Scenario } from '../scenario.ts';
import { eventsOf, holds, namesOf } from '../observer.ts';

const NODE = 'node-1';
const ROLE = 'node-role.kubernetes.io/control-plane';
const REASON = 'SuccessCalculatePod';

/** Writes the number of Pods to a label of a control-plane node. */
export const podCountScenario: Scenario = {
  name: 'pod-count',
  kinds: [],
  sample: 'examples/05-pod-count',
  run: async (context) => {
    const { kubectl } = context;
    context.heading('Count Pods');
    await kubectl.apply('examples/05-pod-count');
    await context.checkEventually('Each new Pod has one event with the count', (view) => {
      const deployment = view(DEPLOYMENTS).get('web');
      if (!deployment || !holds(deployment, 'Available')) return 'web is not available';
      const pods = [...view(PODS).values()];
      const withoutEvent = pods.filter(
        ({ metadata }) => eventsOf(view, REASON, metadata.uid).length !== 1,
      );
      if (pods.length !== 3) return `there are ${pods.length} Pods, not 3`;
      return withoutEvent.length === 0 ? undefined : `not ${namesOf(withoutEvent)}`;
    });
    await kubectl.label(NODES, NODE, { [ROLE]: '' });
    await context.checkEventually(
      'The control-plane node has a label and an event with the number of Pods',
      (view) => {
        const { size } = view(PODS);
        const node = view(NODES).get(NODE);
        const label = node?.metadata.labels?.[LABEL];
        if (label !== String(size)) return `the label is ${label ?? 'unset'}, not ${size}`;
        const messages = eventsOf(view, REASON, node?.metadata.uid).map(({ message }) => message);
        return messages.includes(`pod count is ${size}`)
          ? undefined
          : `the events say ${messages.join(', ')}`;
      },
    );
    await kubectl.getEvents(`reason=${REASON},involvedObject.kind=Node`);

    context.heading('Clean up');
    await kubectl.label(NODES, NODE, { [ROLE]: undefined, [LABEL]: undefined });
    await kubectl.delete(DEPLOYMENTS, 'web');
    await context.checkEventually('The Pods are deleted, and the node has no label', (view) => {
      const { labels = {} } = view(NODES).get(NODE)?.metadata ?? {};
      if (Object.hasOwn(labels, LABEL)) return `the label is ${labels[LABEL]}`;
      return view(PODS).size === 0 ? undefined : `there are ${view(PODS).size}`;
    });
  },
};
