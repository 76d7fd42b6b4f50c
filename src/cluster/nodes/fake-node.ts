import { isApiError } from '../../api/api-error.ts';
import { NODES } from '../../api/builtin.ts';
import type { Node } from '../../api/builtin.ts';
import { timestamp } from '../../api/conditions.ts';
import { objectKey } from '../../api/object-key.ts';
import type { Draft } from '../../api/object.ts';
import { conditionOf } from '../../api/workloads.ts';
import { Controller } from '../../manager/controller.ts';
import { done } from '../../workqueue/outcome.ts';
import type { ClusterDeps } from '../support/resource-monitors.ts';

/**
 * Taint that admission adds to a new node. It is removed here too, so that Pods are scheduled in a cluster without the
 * controller `node-lifecycle`.
 */
const NOT_READY = 'node.kubernetes.io/not-ready';

/** The internal address of the node, and the host address of its Pods. */
export const NODE_ADDRESS = '192.168.0.1';

/** Simulated node. Registers itself as ready, and again if it is deleted. */
export function fakeNode(deps: ClusterDeps, nodeName: string): Controller {
  const nodes = deps.informers.for(NODES, { fieldSelector: `metadata.name=${nodeName}` });
  const key = objectKey(undefined, nodeName);
  const controller = new Controller(deps, {
    name: 'fake-node',
    kind: NODES.kind,
    sync: async (_, { client, signal }) => {
      const node = nodes.lister.get(key);
      const taints = node?.spec?.taints ?? [];
      const isReady = conditionOf(node?.status?.conditions, 'Ready', 'True') !== undefined;
      if (!node) {
        try {
          const draft = buildNode(nodeName, timestamp(deps.clock.now()));
          await client.create(NODES, draft, { fieldManager: 'kubelet', signal });
        } catch (error) {
          if (!isApiError(error, 'alreadyExists')) throw error;
        }
      } else if (isReady && taints.some((taint) => taint.key === NOT_READY)) {
        const { uid, resourceVersion } = node.metadata;
        const left = taints.filter((taint) => taint.key !== NOT_READY);
        const body = { metadata: { uid, resourceVersion }, spec: { taints: left } };
        await client.patch(NODES, node.metadata, { type: 'merge', body }, { signal });
      }
      return done();
    },
  }).for(nodes);
  controller.queue.add(key, { cause: 'The node registers itself' });
  return controller;
}

function buildNode(name: string, now: string): Draft<Node> {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      labels: {
        'kubernetes.io/arch': 'amd64',
        'kubernetes.io/hostname': name,
        'kubernetes.io/os': 'linux',
      },
    },
    spec: {},
    status: {
      addresses: [
        { type: 'InternalIP', address: NODE_ADDRESS },
        { type: 'Hostname', address: name },
      ],
      capacity: { cpu: '32', memory: '64Gi', pods: '10000' },
      allocatable: { cpu: '32', memory: '64Gi', pods: '10000' },
      conditions: [
        {
          type: 'Ready',
          status: 'True',
          reason: 'KubeletReady',
          message: 'the simulated kubelet is ready',
          lastHeartbeatTime: now,
          lastTransitionTime: now,
        },
      ],
      nodeInfo: {
        architecture: 'amd64',
        bootID: '',
        containerRuntimeVersion: 'fake://1',
        kernelVersion: '',
        kubeProxyVersion: '',
        kubeletVersion: 'fake',
        machineID: '',
        operatingSystem: 'linux',
        osImage: '',
        systemUUID: '',
      },
    },
  };
}
