import { isApiError } from '../../src/api/api-error.ts';
import { DEPLOYMENTS, NODES, PODS, SERVICES } from '../../src/api/builtin.ts';
import { ATS } from '../../src/api/generated/at.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { FOOS } from '../../src/api/generated/foo.ts';
import { WEB_APPS } from '../../src/api/generated/web-app.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import type { Resource } from '../../src/api/resource.ts';
import { LABEL } from '../../src/controllers/pod-count/controller.ts';
import type { Simulation } from './simulation.ts';

/** A controller under test. */
export interface TestedController {
  /** Its name in `--controllers`. */
  readonly name: string;
  /** Component in its events. */
  readonly component: string;
  readonly resource: Resource;
  /** Kinds of its owned objects. */
  readonly children: readonly Resource[];
}

/** A change and its expected final state. */
export interface Scenario {
  readonly name: string;
  readonly controller: TestedController;
  /** Creates the initial state, which a controller reconciles without disruption. */
  readonly before?: (simulation: Simulation) => Promise<unknown>;
  readonly change: (simulation: Simulation) => Promise<unknown>;
  readonly isDone: (simulation: Simulation) => Promise<boolean>;
}

const COUNT: TestedController = {
  name: 'count',
  component: 'count-controller',
  resource: COUNTS,
  children: [PODS],
};
const WEB_APP: TestedController = {
  name: 'webapp',
  component: 'webapp-controller',
  resource: WEB_APPS,
  children: [DEPLOYMENTS, SERVICES],
};
const AT: TestedController = {
  name: 'at',
  component: 'at-controller',
  resource: ATS,
  children: [PODS],
};
const FOO: TestedController = {
  name: 'foo',
  component: 'sample-controller',
  resource: FOOS,
  children: [DEPLOYMENTS],
};
const POD_COUNT: TestedController = {
  name: 'pod-count',
  component: 'pod-count-controller',
  resource: NODES,
  children: [],
};

/** Name of the object in every scenario. */
const X = { namespace: 'default', name: 'x' };

const inSeconds = (simulation: Simulation, seconds: number) =>
  new Date(Math.floor(simulation.now() / 1000 + seconds) * 1000).toISOString();

const create = (controller: TestedController, spec: object) => (simulation: Simulation) => {
  const { group, version, kind } = controller.resource;
  const draft = { apiVersion: `${group}/${version}`, kind, metadata: X, spec };
  return simulation.client.create(controller.resource, draft);
};
const patch = (controller: TestedController, spec: object) => (simulation: Simulation) =>
  simulation.client.patch(controller.resource, X, { type: 'merge', body: { spec } });
const remove = (controller: TestedController) => (simulation: Simulation) =>
  simulation.client.delete(controller.resource, X);

const runAt = (seconds: number, command: string) => (simulation: Simulation) =>
  create(AT, { schedule: inSeconds(simulation, seconds), command })(simulation);

/** Reports whether the object is Ready with its current spec. */
const isReady =
  ({ resource }: TestedController) =>
  async (simulation: Simulation): Promise<boolean> => {
    const { metadata, status } = (await simulation.client.get(resource, X)) as KubernetesObject & {
      status?: { observedGeneration?: number; conditions?: { type: string; status: string }[] };
    };
    return (
      status?.observedGeneration === metadata.generation &&
      (status?.conditions ?? []).some(({ type, status: is }) => type === 'Ready' && is === 'True')
    );
  };

const isAt = (phase: string) => async (simulation: Simulation) =>
  (await simulation.client.get(ATS, X)).status?.phase === phase;

/** Reports whether the object and its Pods are deleted. */
const isGone = (controller: TestedController) => async (simulation: Simulation) => {
  try {
    await simulation.client.get(controller.resource, X);
    return false;
  } catch (error) {
    if (!isApiError(error, 'notFound')) throw error;
  }
  return (await simulation.pods()).length === 0;
};

/** Creates Pods without owner for `pod-count`. */
const pods =
  (...names: readonly string[]) =>
  async (simulation: Simulation) => {
    for (const name of names) {
      await simulation.client.create(PODS, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { namespace: 'default', name },
        spec: { containers: [{ name: 'app', image: 'nginx' }] },
      });
    }
  };
const isLabelled = (count: string) => async (simulation: Simulation) =>
  (await simulation.client.get(NODES, { name: 'master' })).metadata.labels?.[LABEL] === count;

const NGINX = { name: 'nginx', count: 2 };
const WEB = { version: '1.27', replicas: 1 };

export const SCENARIOS: readonly Scenario[] = [
  { name: 'a new Count', controller: COUNT, change: create(COUNT, NGINX), isDone: isReady(COUNT) },
  {
    name: 'a Count scaled up',
    controller: COUNT,
    before: create(COUNT, { ...NGINX, count: 1 }),
    change: patch(COUNT, { count: 4 }),
    isDone: isReady(COUNT),
  },
  {
    name: 'a Count scaled down',
    controller: COUNT,
    before: create(COUNT, { ...NGINX, count: 4 }),
    change: patch(COUNT, { count: 1 }),
    isDone: isReady(COUNT),
  },
  {
    name: 'a Count of another image',
    controller: COUNT,
    before: create(COUNT, NGINX),
    change: patch(COUNT, { name: 'nginx:2' }),
    isDone: isReady(COUNT),
  },
  {
    name: 'a Count deleted',
    controller: COUNT,
    before: create(COUNT, NGINX),
    change: remove(COUNT),
    isDone: isGone(COUNT),
  },
  {
    name: 'a new WebApp',
    controller: WEB_APP,
    change: create(WEB_APP, WEB),
    isDone: isReady(WEB_APP),
  },
  {
    name: 'a WebApp of another version and size',
    controller: WEB_APP,
    before: create(WEB_APP, WEB),
    change: patch(WEB_APP, { version: '1.28', replicas: 2 }),
    isDone: isReady(WEB_APP),
  },
  {
    name: 'a WebApp deleted',
    controller: WEB_APP,
    before: create(WEB_APP, WEB),
    change: remove(WEB_APP),
    isDone: isGone(WEB_APP),
  },
  {
    name: 'an At that is due',
    controller: AT,
    change: runAt(-1, 'echo YAY'),
    isDone: isAt('DONE'),
  },
  {
    name: 'an At that is due in ten seconds',
    controller: AT,
    change: runAt(10, 'echo YAY'),
    isDone: isAt('DONE'),
  },
  {
    name: 'an At whose command fails',
    controller: AT,
    change: runAt(-1, 'sh -c "exit 3"'),
    isDone: isAt('DONE'),
  },
  {
    name: 'an At deleted while its command runs',
    controller: AT,
    before: runAt(-1, 'sleep 3600'),
    change: remove(AT),
    isDone: isGone(AT),
  },
  {
    name: 'a new Foo',
    controller: FOO,
    change: create(FOO, { deploymentName: 'web', replicas: 1 }),
    isDone: isReady(FOO),
  },
  {
    name: 'a Foo that asks for another name',
    controller: FOO,
    before: create(FOO, { deploymentName: 'web', replicas: 1 }),
    change: patch(FOO, { deploymentName: 'site' }),
    isDone: async (simulation) =>
      (await isReady(FOO)(simulation)) &&
      (await simulation.client.list(DEPLOYMENTS, { namespace: 'default' })).items.length === 1,
  },
  {
    name: 'a Foo scaled',
    controller: FOO,
    before: create(FOO, { deploymentName: 'web', replicas: 1 }),
    change: patch(FOO, { replicas: 3 }),
    isDone: isReady(FOO),
  },
  {
    name: 'Pods counted',
    controller: POD_COUNT,
    before: async (simulation) => {
      const labels = { 'node-role.kubernetes.io/control-plane': '' };
      const master = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'master', labels } };
      await simulation.client.create(NODES, master);
    },
    change: pods('a', 'b'),
    isDone: isLabelled('2'),
  },
];
