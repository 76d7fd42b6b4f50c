import { NODES, PODS } from '../../src/api/builtin.ts';
import { ATS } from '../../src/api/generated/at.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { FOOS } from '../../src/api/generated/foo.ts';
import { WEB_APPS } from '../../src/api/generated/web-app.ts';
import type { Resource } from '../../src/api/resource.ts';
import type { Client } from '../../src/client/client.ts';
import { atController } from '../../src/controllers/at/controller.ts';
import { countController } from '../../src/controllers/count/controller.ts';
import { fooController } from '../../src/controllers/foo/controller.ts';
import { podCountController } from '../../src/controllers/pod-count/controller.ts';
import { webAppController } from '../../src/controllers/webapp/controller.ts';
import type { ExploreOptions } from '../../src/explore/explore.ts';
import { FAULTS } from '../../src/explore/faults.ts';
import { draftOf } from './kinds.ts';
import { crdOf } from './test-cluster.ts';

type Explored = Pick<
  ExploreOptions,
  'controllers' | 'objects' | 'scenario' | 'faults' | 'cluster' | 'invariants'
>;

const AT = { namespace: 'default', name: 'x' } as const;

function creates(resource: Resource, spec: object) {
  return (client: Client) => client.create(resource, draftOf(resource, AT, spec));
}

function changes(resource: Resource, spec: object) {
  return (client: Client) => client.patch(resource, AT, { type: 'merge', body: { spec } });
}

function deletes(resource: Resource) {
  return (client: Client) => client.delete(resource, AT);
}

/** The controllers of this package with scenarios for `explore`, by name. */
export const EXPLORED: Readonly<Record<string, Explored>> = {
  count: {
    controllers: [countController],
    objects: [crdOf(COUNTS)],
    scenario: {
      'a user creates a Count of 2 Pods': creates(COUNTS, { name: 'nginx', count: 2 }),
      'the user scales it to 1': changes(COUNTS, { count: 1 }),
      'the user changes its image': changes(COUNTS, { name: 'httpd' }),
    },
    invariants: {
      'a Count has at most 2 Pods': ({ list }) => list(PODS).length <= 2,
    },
  },
  'count with a kubelet': {
    controllers: [countController],
    objects: [crdOf(COUNTS)],
    scenario: {
      'a user creates a Count of 2 Pods': creates(COUNTS, { name: 'nginx', count: 2 }),
      'the user deletes it': deletes(COUNTS),
    },
    cluster: ['scheduler', 'kubelet', 'garbage-collector'],
  },
  webapp: {
    controllers: [webAppController],
    objects: [crdOf(WEB_APPS)],
    scenario: {
      'a user creates a WebApp': creates(WEB_APPS, { version: '1.27', replicas: 2 }),
      'the user changes its version': changes(WEB_APPS, { version: '1.28' }),
      'the user deletes it': deletes(WEB_APPS),
    },
  },
  foo: {
    controllers: [fooController],
    objects: [crdOf(FOOS)],
    scenario: {
      'a user creates a Foo': creates(FOOS, { deploymentName: 'x-site', replicas: 1 }),
      'the user scales it': changes(FOOS, { replicas: 2 }),
    },
  },
  at: {
    controllers: [atController],
    objects: [crdOf(ATS)],
    scenario: {
      'a user creates an At': creates(ATS, {
        schedule: '2026-01-01T00:02:00Z',
        command: 'echo YAY',
      }),
      'two minutes pass': (_, clock) => clock.sleep(120_000),
    },
    // An At does not run its command again after its Pod was deleted or lost.
    faults: FAULTS.filter((fault) => fault !== 'delete' && fault !== 'rollback'),
  },
  'pod-count': {
    controllers: [podCountController],
    objects: [
      {
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name: 'x', labels: { 'node-role.kubernetes.io/control-plane': '' } },
      },
    ],
    scenario: {
      'a user creates a Pod': (client) =>
        client.create(PODS, draftOf(PODS, AT, { containers: [{ name: 'app', image: 'nginx' }] })),
      'the user deletes it': (client) => client.delete(PODS, AT),
      'the user deletes the node': (client) => client.delete(NODES, { name: 'x' }),
    },
  },
};
