import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { NODES, PODS } from '../../src/api/builtin.ts';
import { HttpClient } from '../../src/client/http-client.ts';
import { LABEL } from '../../src/controllers/pod-count/controller.ts';
import { Simulation } from '../support/simulation.ts';

describe('A daemon that counts Pods', () => {
  let simulation: Simulation;

  beforeEach(() => {
    simulation = new Simulation();
  });
  afterEach(() => simulation.end());

  const node = (name: string, labels?: Record<string, string>) =>
    simulation.client.create(NODES, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, ...(labels ? { labels } : {}) },
    });
  const pod = (name: string) =>
    simulation.client.create(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { namespace: 'default', name },
      spec: { containers: [{ name: 'app', image: 'nginx' }] },
    });
  const label = async (name: string) =>
    (await simulation.client.get(NODES, { name })).metadata.labels?.[LABEL];
  const version = async (name: string) =>
    (await simulation.client.get(NODES, { name })).metadata.resourceVersion;
  const startDaemon = (config: object = {}) =>
    simulation.startDaemon({ controllers: ['pod-count'], ...config });
  const MASTER = { 'node-role.kubernetes.io/control-plane': '' };

  it('writes the number to control-plane nodes only, and records an event on each', async () => {
    await node('master-1', MASTER);
    await node('master-2', { 'node-role.kubernetes.io/master': 'true' });
    await node('worker');
    await pod('a');
    startDaemon();
    await simulation.pass(1000);
    assert.deepEqual([await label('master-1'), await label('master-2')], ['1', '1']);
    await pod('b');
    await simulation.pass(11_000);
    assert.equal(await label('master-1'), '2');
    assert.equal(await label('worker'), undefined);
    await simulation.client.delete(
      PODS,
      { namespace: 'default', name: 'a' },
      { gracePeriodSeconds: 0 },
    );
    await simulation.pass(11_000);
    assert.equal(await label('master-1'), '1');
    const events = await simulation.events('pod-count-controller');
    assert.ok(events.includes('SuccessCalculatePod pod count is 2'), events.join());
    assert.deepEqual(simulation.errors(), []);
  });

  it('sends no write while the number is unchanged, also after a restart', async () => {
    await node('master', MASTER);
    await pod('a');
    const stop = startDaemon();
    await simulation.pass(30_000);
    const before = await version('master');
    const events = await simulation.events('pod-count-controller');
    await stop();
    startDaemon();
    await simulation.pass(60_000);
    assert.equal(await version('master'), before);
    assert.deepEqual(await simulation.events('pod-count-controller'), events);
    assert.equal(events.length, 1, 'an event for the node, none for the existing Pod');
  });

  it('limits writes to one every ten seconds when Pods change often, at twenty changes per second', async () => {
    await node('master', MASTER);
    let writes = 0;
    const client = new HttpClient({
      server: 'https://simulated',
      handler: (request) => {
        if (request.method === 'PATCH' && request.path.startsWith('/api/v1/nodes/')) writes++;
        return simulation.server.handler(request);
      },
    });
    simulation.startDaemon({ controllers: ['pod-count'] }, client);
    await simulation.pass(1000);
    for (let second = 0; second < 30; second++) {
      for (let at = 0; at < 40; at++) await pod(`pod-${second}-${at}`);
      await simulation.pass(1000);
    }
    assert.ok(writes >= 3 && writes <= 4, `${writes} writes`);
    await simulation.pass(11_000);
    assert.equal(await label('master'), '1200');
    const lines = simulation.lines.filter(({ message }) => message.startsWith('Too many new Pods'));
    assert.equal(lines.length, 1, 'one line a minute');
  });

  it('logs a missing control-plane node and a missing permission once, and continues', async () => {
    startDaemon();
    await pod('a');
    await simulation.pass(60_000);
    const line = 'No control-plane node found; skipping the Pod count label';
    assert.equal(simulation.lines.filter(({ message }) => message === line).length, 1);
    simulation.server.faults.failNext('PATCH', 403, { times: 3 });
    await node('master', MASTER);
    await simulation.pass(60_000);
    assert.equal(simulation.errors().length, 1, simulation.errors().join('\n'));
    assert.match(simulation.errors().join(), /^Not allowed to label nodes/);
  });

  it('does not run when the daemon is limited to namespaces', async () => {
    await node('master', MASTER);
    startDaemon({ controllers: ['pod-count'], namespaces: ['default'] });
    await simulation.pass(15_000);
    assert.equal(await label('master'), undefined);
    assert.ok(
      simulation.lines.some(({ message }) => message.startsWith('Skipping a cluster-scoped')),
    );
  });
});
