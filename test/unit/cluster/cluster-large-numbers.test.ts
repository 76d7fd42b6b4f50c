import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  JOBS,
  PODS,
  REPLICA_SETS,
  RESOURCE_QUOTAS,
  STATEFUL_SETS,
} from '../../../src/api/builtin.ts';
import type { Job } from '../../../src/api/builtin.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { Cluster } from '../../../src/cluster/cluster.ts';
import {
  completedCount,
  formatIndexes,
  missingIndexes,
} from '../../../src/cluster/workloads/job-index.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { silentLogger } from '../../../src/util/logger.ts';

const MAX_INT32 = 2 ** 31 - 1;

test('the indexes of a Job are ranges', () => {
  const job = {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'a', uid: 'a', resourceVersion: '1', creationTimestamp: '' },
    spec: { completions: MAX_INT32, template: { spec: { containers: [] } } },
    status: { completedIndexes: '2-2000000000,0' },
  } satisfies Job;
  assert.equal(completedCount(job, []), 2_000_000_000);
  assert.equal(formatIndexes(job, []), '0,2-2000000000');
  assert.deepEqual(missingIndexes(job, [], [], 3), [1, 2_000_000_001, 2_000_000_002]);
});

test('workloads of two billion Pods create as many as the quota permits', async () => {
  const clock = new FakeClock();
  const { handler } = new ApiServer({ clock });
  const client = new HttpClient({ handler, server: 'https://test', clock });
  const stop = new AbortController();
  const controllers = ['replicaset', 'statefulset', 'job', 'resourcequota'];
  const cluster = new Cluster({ client, clock, log: silentLogger }, { controllers });
  const running = cluster.run(stop.signal);
  const metadata = { namespace: 'default', name: 'a' };
  await client.create(RESOURCE_QUOTAS, {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata,
    spec: { hard: { pods: '9' } },
  });
  await clock.advance(1000);
  const template = (name: string) => ({
    metadata: { labels: { app: name } },
    spec: { restartPolicy: 'Always' as const, containers: [{ name: 'app', image: 'nginx' }] },
  });
  const set = (name: string) => ({
    replicas: MAX_INT32,
    selector: { matchLabels: { app: name } },
    template: template(name),
  });
  await client.create(STATEFUL_SETS, {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata,
    spec: { ...set('stateful'), serviceName: 'a', podManagementPolicy: 'Parallel' },
  });
  await clock.advance(100);
  await client.create(REPLICA_SETS, {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata,
    spec: set('replicated'),
  });
  const { spec } = template('job');
  await client.create(JOBS, {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata,
    spec: {
      parallelism: MAX_INT32,
      completions: MAX_INT32,
      template: { spec: { ...spec, restartPolicy: 'Never' } },
    },
  });
  await clock.advance(100);
  const { items } = await client.list(PODS, { namespace: 'default' });
  assert.equal(items.length, 9);
  stop.abort();
  await clock.advance(1000);
  await running;
});
