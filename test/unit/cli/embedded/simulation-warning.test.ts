import assert from 'node:assert/strict';
import { it } from 'node:test';
import { CRON_JOBS, DEPLOYMENTS, PODS } from '../../../../src/api/builtin.ts';
import { ApiServer } from '../../../../src/apiserver/api-server.ts';
import { HttpClient } from '../../../../src/client/http-client.ts';
import {
  kindsWithSimulationWarning,
  SIMULATION_WARNING,
} from '../../../../src/cli/embedded/simulation-warning.ts';

const IMAGE = { name: 'app', image: 'registry.invalid/app:1' };
const SHELL = { name: 'shell', image: 'busybox', command: ['sh', '-c', 'sleep 5; nginx'] };
const labels = { app: 'a' };

function newServer() {
  const warnings: string[] = [];
  const client = new HttpClient({
    handler: new ApiServer({ kinds: kindsWithSimulationWarning() }).handler,
    server: 'https://test',
    onWarning: (warning) => warnings.push(warning),
  });
  const warned = () => warnings.splice(0).filter((text) => text === SIMULATION_WARNING).length;
  const createPod = async (metadata: object, ...containers: (typeof IMAGE)[]) => {
    const named = { namespace: 'default', generateName: 'a-', ...metadata };
    await client.create(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: named,
      spec: { containers },
    });
    return warned();
  };
  return { client, warned, createPod };
}

it('warns of a Pod none of whose commands is interpreted', async () => {
  const { createPod } = newServer();
  assert.equal(await createPod({}, IMAGE), 1);
  assert.equal(await createPod({}, IMAGE, SHELL), 0);
  const annotations = { 'kubelet.crd-controller/exit-code': '0' };
  assert.equal(await createPod({ annotations }, IMAGE), 0);
  const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'a', uid: 'b', controller: true };
  assert.equal(await createPod({ ownerReferences: [owner] }, IMAGE), 0);
});

it('warns of a workload with a new template', async () => {
  const { client, warned } = newServer();
  const at = { namespace: 'default', name: 'a' };
  const template = { metadata: { labels }, spec: { containers: [IMAGE] } };
  const spec = { selector: { matchLabels: labels }, template };
  await client.create(DEPLOYMENTS, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: at,
    spec,
  });
  assert.equal(warned(), 1);
  await client.patch(DEPLOYMENTS, at, { type: 'merge', body: { spec: { replicas: 3 } } });
  assert.equal(warned(), 0);
  const changed = { ...template.spec, containers: [{ ...IMAGE, image: 'registry.invalid/app:2' }] };
  await client.patch(DEPLOYMENTS, at, {
    type: 'merge',
    body: { spec: { template: { spec: changed } } },
  });
  assert.equal(warned(), 1);
  const pod = { spec: { restartPolicy: 'Never' as const, containers: [IMAGE] } };
  await client.create(CRON_JOBS, {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: at,
    spec: { schedule: '* * * * *', jobTemplate: { spec: { template: pod } } },
  });
  assert.equal(warned(), 1);
});
