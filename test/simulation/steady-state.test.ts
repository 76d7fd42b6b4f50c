import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { DEPLOYMENTS, NODES, SERVICES } from '../../src/api/builtin.ts';
import { ATS } from '../../src/api/generated/at.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { FOOS } from '../../src/api/generated/foo.ts';
import { WEB_APPS } from '../../src/api/generated/web-app.ts';
import type { Resource } from '../../src/api/resource.ts';
import type { HttpHandler } from '../../src/util/http.ts';
import { Replicas } from '../support/replicas.ts';
import { CONTROLLERS } from '../support/own-program.ts';

const MINUTE_MS = 60_000;

describe('All controllers in one daemon, with reconciled objects', () => {
  let simulation: Replicas;
  let writes: string[];

  /** Records writes, except those to leases and the events of leader election. */
  const around =
    (handler: HttpHandler): HttpHandler =>
    (request) => {
      const { method, path, body } = request;
      const isAboutLeaders = path.includes('/leases') || String(body).includes('LeaderElection');
      if (method !== 'GET' && !isAboutLeaders) writes.push(`${method} ${path} ${String(body)}`);
      return handler(request);
    };
  const start = (identity: string) =>
    simulation.startReplica(identity, {
      around,
      config: { controllers: CONTROLLERS, resyncPeriodMs: 30_000 },
    });
  const create = (
    resource: Resource,
    name: string,
    spec?: object,
    labels?: Record<string, string>,
  ) => {
    const { group, version, kind, namespaced } = resource;
    const apiVersion = group ? `${group}/${version}` : version;
    const metadata = {
      name,
      ...(namespaced && { namespace: 'default' }),
      ...(labels && { labels }),
    };
    return simulation.client.create(resource, {
      apiVersion,
      kind,
      metadata,
      ...(spec && { spec }),
    });
  };

  beforeEach(async () => {
    simulation = new Replicas();
    writes = [];
    simulation.startCluster();
    await simulation.installCrd(COUNTS);
    await simulation.installCrd(WEB_APPS, DEPLOYMENTS, SERVICES);
    await simulation.installCrd(FOOS);
    await simulation.installCrd(ATS);
    const past = '2025-01-01T00:00:00Z';
    await create(NODES, 'master', undefined, { 'node-role.kubernetes.io/control-plane': '' });
    await create(COUNTS, 'count', { name: 'nginx', count: 2 });
    await create(WEB_APPS, 'webapp', { version: '1.27', replicas: 2 });
    await create(FOOS, 'foo', { deploymentName: 'foo-site', replicas: 2 });
    await create(ATS, 'done', { schedule: past, command: 'echo YAY' });
    await create(ATS, 'failed', { schedule: past, command: 'false' });
    await create(ATS, 'running', { schedule: past, command: 'sleep 86400' });
    await create(ATS, 'waiting', { schedule: '2036-01-01T00:00:00Z', command: 'echo YAY' });
    await create(ATS, 'malformed', { schedule: past, command: '"' });
  });
  afterEach(() => simulation.end());

  it('write nothing and record no events during resyncs, a restart and a leader change', async () => {
    const first = start('first');
    await simulation.pass(MINUTE_MS);
    assert.ok(writes.length > 20, 'writes before the steady state');
    await simulation.pass(MINUTE_MS);
    writes = [];
    await simulation.pass(10 * MINUTE_MS);
    assert.deepEqual(writes, [], 'during resyncs');

    first.stop();
    await simulation.until('the daemon has stopped', async () => first.ending !== undefined);
    const second = start('second');
    await simulation.pass(2 * MINUTE_MS);
    assert.ok(second.hasLogged('Starting workers'));
    assert.deepEqual(writes, [], 'during a restart');

    const third = start('third');
    await simulation.pass(MINUTE_MS);
    second.kill();
    await simulation.pass(2 * MINUTE_MS);
    assert.ok(third.hasLogged('Starting workers'));
    assert.deepEqual(writes, [], 'during a leader change');
    assert.deepEqual(third.errors, []);
  });
});
