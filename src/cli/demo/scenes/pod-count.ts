import { DEPLOYMENTS, NODES, PODS } from '../../../api/builtin.ts';
import { LABEL } from '../../../controllers/pod-count/sync.ts';
import type { Scene } from '../scene.ts';
import { eventsOf, holds, namesOf } from '../view.ts';

const NODE = 'node-1';
const ROLE = 'node-role.kubernetes.io/control-plane';
const REASON = 'SuccessCalculatePod';

/** How many Pods there are, on a label of the control plane's nodes. */
export const podCountScene: Scene = {
  name: 'pod-count',
  kinds: [],
  sample: 'examples/05-pod-count',
  play: async (act) => {
    const { kubectl } = act;
    act.heading('Pods are counted');
    await kubectl.apply('examples/05-pod-count');
    await act.reached('Each new Pod was told the count', (view) => {
      const deployment = view(DEPLOYMENTS).get('web');
      if (!deployment || !holds(deployment, 'Available')) return 'web is not available';
      const pods = [...view(PODS).values()];
      const untold = pods.filter(
        ({ metadata }) => eventsOf(view, REASON, metadata.uid).length !== 1,
      );
      if (pods.length !== 3) return `there are ${pods.length} Pods, not 3`;
      return untold.length === 0 ? undefined : `not so ${namesOf(untold)}`;
    });
    await kubectl.label(NODES, NODE, { [ROLE]: '' });
    await act.reached(
      'The node of the control plane has the number of Pods, and was told so',
      (view) => {
        const { size } = view(PODS);
        const node = view(NODES).get(NODE);
        const label = node?.metadata.labels?.[LABEL];
        if (label !== String(size)) return `its label says ${label ?? 'nothing'}, not ${size}`;
        const told = eventsOf(view, REASON, node?.metadata.uid).map(({ message }) => message);
        return told.includes(`pod count is ${size}`)
          ? undefined
          : `the events say ${told.join(', ')}`;
      },
    );
    await kubectl.getEvents(`reason=${REASON},involvedObject.kind=Node`);

    act.heading('Everything is put back');
    await kubectl.label(NODES, NODE, { [ROLE]: undefined, [LABEL]: undefined });
    await kubectl.delete(DEPLOYMENTS, 'web');
    await act.reached('The Pods are gone, and the node has no label', (view) => {
      const { labels = {} } = view(NODES).get(NODE)?.metadata ?? {};
      if (Object.hasOwn(labels, LABEL)) return `its label says ${labels[LABEL]}`;
      return view(PODS).size === 0 ? undefined : `there are ${view(PODS).size}`;
    });
  },
};
