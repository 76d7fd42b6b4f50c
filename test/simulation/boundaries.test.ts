import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, PODS, SERVICES } from '../../src/api/builtin.ts';
import { ATS } from '../../src/api/generated/at.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { FOOS } from '../../src/api/generated/foo.ts';
import { WEB_APPS } from '../../src/api/generated/web-app.ts';
import type { Resource } from '../../src/api/resource.ts';
import { draftOf, KINDS } from '../support/kinds.ts';
import type { Subject } from '../support/kinds.ts';
import { Simulation } from '../support/simulation.ts';
import { crdOf } from '../support/test-cluster.ts';

/** Returns a name of `length` characters: DNS labels of at most 63 characters. */
const nameOf = (length: number) =>
  Array.from({ length }, (_, at) => (at % 64 === 63 && at < length - 1 ? '.' : 'a')).join('');

interface Boundary {
  readonly what: string;
  readonly resource: Resource;
  /** Name of the object; the rest of the spec is that of its kind. */
  readonly name: string;
  readonly spec?: object;
  /** Names of the owned objects; undefined if the spec is invalid. */
  readonly owns: Resource | undefined;
  readonly names?: readonly string[];
}

const BOUNDARIES: readonly Boundary[] = [
  {
    what: 'the longest name for ten Pods',
    resource: COUNTS,
    name: nameOf(251),
    spec: { count: 10 },
    owns: PODS,
    names: Array.from({ length: 10 }, (_, at) => `${nameOf(251)}-${at}`),
  },
  {
    what: 'the longest name, with eleven Pods',
    resource: COUNTS,
    name: nameOf(251),
    spec: { count: 11 },
    owns: undefined,
  },
  {
    what: 'a name that is too long for one Pod',
    resource: COUNTS,
    name: nameOf(252),
    spec: { count: 1 },
    owns: undefined,
  },
  { what: 'no Pods', resource: COUNTS, name: 'x', spec: { count: 0 }, owns: PODS, names: [] },
  {
    what: 'more Pods than allowed',
    resource: COUNTS,
    name: 'x',
    spec: { count: 1001 },
    owns: undefined,
  },
  {
    what: 'the longest name',
    resource: ATS,
    name: nameOf(249),
    owns: PODS,
    names: [`${nameOf(249)}-pod`],
  },
  { what: 'a name that is too long', resource: ATS, name: nameOf(250), owns: undefined },
  {
    what: 'the longest Deployment name',
    resource: FOOS,
    name: 'x',
    spec: { deploymentName: nameOf(242), replicas: 10 },
    owns: DEPLOYMENTS,
    names: [nameOf(242)],
  },
  {
    what: 'a Deployment name that is too long',
    resource: FOOS,
    name: 'x',
    spec: { deploymentName: nameOf(243) },
    owns: undefined,
  },
  {
    what: 'more replicas than allowed',
    resource: FOOS,
    name: 'x',
    spec: { replicas: 11 },
    owns: undefined,
  },
  {
    what: 'fewer replicas than allowed',
    resource: FOOS,
    name: 'x',
    spec: { replicas: 0 },
    owns: undefined,
  },
  {
    what: 'the longest Service name',
    resource: WEB_APPS,
    name: 'a'.repeat(63),
    spec: { replicas: 0 },
    owns: SERVICES,
    names: ['a'.repeat(63)],
  },
  {
    what: 'more replicas than allowed',
    resource: WEB_APPS,
    name: 'x',
    spec: { replicas: 1001 },
    owns: undefined,
  },
];

describe('Objects with boundary values in names and numbers', () => {
  let simulation: Simulation;

  beforeEach(() => {
    simulation = new Simulation();
    simulation.startCluster();
  });
  afterEach(() => simulation.end());

  const start = async (resource: Resource) => {
    // Objects that this release's CRD rejects may have been stored before it was installed.
    const crd = crdOf(resource);
    const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
    for (const version of crd.spec.versions) version.schema = { openAPIV3Schema: open };
    await simulation.client.create(CUSTOM_RESOURCE_DEFINITIONS, crd);
    const kind = KINDS.find((one) => one.resource === resource);
    assert.ok(kind);
    simulation.startDaemon({ controllers: [kind.controller] });
    return kind;
  };
  const namesOf = async (resource: Resource) =>
    (await simulation.client.list(resource, { namespace: simulation.namespace })).items
      .map(({ metadata }) => metadata.name)
      // The server's own Service.
      .filter((name) => name !== 'kubernetes')
      .toSorted();

  for (const { what, resource, name, spec, owns, names } of BOUNDARIES) {
    const outcome = owns === undefined ? 'reports it as invalid' : 'creates its objects';

    it(`reconciles a ${resource.kind} with ${what}: ${outcome}`, async () => {
      const kind = await start(resource);
      const at = { namespace: simulation.namespace, name };
      await simulation.client.create(resource, draftOf(resource, at, { ...kind.spec, ...spec }));
      await simulation.pass(1000);
      await simulation.settle();
      const { status } = await simulation.client.get<Subject>(resource, at);
      const isStalled = status?.conditions?.some(
        ({ type, status: is }) => type === 'Stalled' && is === 'True',
      );
      assert.equal(isStalled, owns === undefined, JSON.stringify(status));
      if (owns === undefined) {
        for (const one of kind.owned) assert.deepEqual(await namesOf(one.resource), []);
        assert.match(simulation.errors().join(), /not retrying a terminal error/);
      } else {
        assert.deepEqual(await namesOf(owns), names?.toSorted());
        assert.deepEqual(simulation.errors(), []);
      }
    });
  }

  it('creates a Service with a generated name for a WebApp whose name is not a DNS label', async () => {
    await start(WEB_APPS);
    for (const name of ['a'.repeat(64), '1x', 'a.b']) {
      await simulation.client.create(WEB_APPS, {
        apiVersion: 'jiajunhuang.com/v1',
        kind: 'WebApp',
        metadata: { namespace: simulation.namespace, name },
        spec: { version: '1.27', replicas: 0 },
      });
    }
    await simulation.pass(1000);
    await simulation.settle();
    const services = await namesOf(SERVICES);
    assert.equal(services.length, 3);
    for (const name of services) assert.match(name, /^webapp-[0-9a-f]{10}$/);
    assert.deepEqual(simulation.errors(), []);
  });

  const largest: readonly (readonly [Resource, object])[] = [
    [COUNTS, { count: 1000 }],
    [WEB_APPS, { replicas: 1000 }],
  ];
  for (const [resource, spec] of largest) {
    it(`accepts a ${resource.kind} that requests 1000 Pods`, async () => {
      // An attempt to create a Pod is sufficient.
      simulation.server.faults.failNext({ verb: 'create', resource: 'pods' }, 403, {
        times: Infinity,
      });
      const kind = await start(resource);
      const at = { namespace: simulation.namespace, name: 'x' };
      await simulation.client.create(resource, draftOf(resource, at, { ...kind.spec, ...spec }));
      await simulation.pass(1000);
      const tried = { verb: 'create', resource: 'pods' };
      assert.ok(simulation.server.requests.count(tried) > 0);
      const { status } = await simulation.client.get<Subject>(resource, at);
      assert.ok(!status?.conditions?.some(({ type }) => type === 'Stalled'));
    });
  }

  it('keeps the order of Pods when a Count loses one of 10 and one of 11 Pods', async () => {
    await start(COUNTS);
    await simulation.applyCount({ count: 11 });
    await simulation.untilReady(11);
    await simulation.patchCount({ count: 10 });
    await simulation.untilReady(10);
    const names = Array.from({ length: 10 }, (_, at) => simulation.podAt(at).name);
    assert.deepEqual(await namesOf(PODS), names.toSorted());
  });
});
