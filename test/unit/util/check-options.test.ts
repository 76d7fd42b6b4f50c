import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PODS } from '../../../src/api/builtin.ts';
import { loadClusterConfig } from '../../../src/client/kube-config/kube-config.ts';
import * as apply from '../../../src/apply.ts';
import * as cache from '../../../src/cache.ts';
import * as clients from '../../../src/client.ts';
import * as debug from '../../../src/debug.ts';
import * as events from '../../../src/events.ts';
import * as library from '../../../src/index.ts';
import * as kinds from '../../../src/kinds.ts';
import * as leaderelection from '../../../src/leaderelection.ts';
import * as manager from '../../../src/manager.ts';
import * as metrics from '../../../src/metrics.ts';
import * as serving from '../../../src/serving.ts';
import * as workqueue from '../../../src/workqueue.ts';
import * as kit from '../../../src/testing.ts';
import { checkOptions } from '../../../src/util/check-options.ts';

test('rejects an unknown option with a suggestion', () => {
  const names = { labelSelector: true, limit: true } as const;
  checkOptions({ limit: 1 }, names, 'list');
  for (const [wrong, message] of [
    ['labelselector', 'list: unknown option labelselector; did you mean labelSelector?'],
    ['limmit', 'list: unknown option limmit; did you mean limit?'],
    ['other', 'list: unknown option other'],
    ['constructor', 'list: unknown option constructor'],
    ['__proto__', 'list: unknown option __proto__'],
  ] as const) {
    const options = JSON.parse(`{"limit":1,${JSON.stringify(wrong)}:2}`);
    assert.throws(() => checkOptions(options, names, 'list'), { name: 'TypeError', message });
  }
});

const server = new kit.ApiServer();
const clock = new kit.FakeClock();
const log = library.silentLogger;
const client = new library.HttpClient({ handler: server.handler, server: 'https://test' });
const source = cache.listerWatcher(client, PODS, {});
const at = { namespace: 'default', name: 'web' };
const pod = { apiVersion: 'v1', kind: 'Pod', metadata: at, spec: { containers: [] } };
const config: clients.ClusterConfig = {
  source: 'test',
  server: 'https://127.0.0.1:1',
  insecureSkipTlsVerify: false,
  credentials: { kind: 'none' },
  namespace: 'default',
};
const election = {
  client,
  fence: new clients.WriteFence(),
  namespace: 'default',
  name: 'lease',
  identity: 'me',
};
const controllers = () => [];
const clusterDeps = { client, clock, log };

/** Every function of the library and the test kit that takes options, called with `wrong` among them. */
const CALLS: Readonly<Record<string, (wrong: object) => unknown>> = {
  applyManifests: (wrong) => apply.applyManifests(client, [], wrong).next(),
  'client.get': (wrong) => client.get(PODS, at, wrong),
  'client.list': (wrong) => client.list(PODS, wrong),
  'client.watch': (wrong) => client.watch(PODS, wrong),
  'client.create': (wrong) => client.create(PODS, pod, wrong),
  'client.update': (wrong) => client.update(PODS, pod as unknown as kinds.Pod, wrong),
  'client.patch': (wrong) => client.patch(PODS, at, { type: 'merge', body: {} }, wrong),
  'client.delete': (wrong) => client.delete(PODS, at, wrong),
  connectCluster: (wrong) => library.connectCluster(config, wrong),
  ClusterConfig: (wrong) => library.connectCluster({ ...config, ...wrong }),
  loadClusterConfig: (wrong) => loadClusterConfig(wrong),
  HttpClient: (wrong) =>
    new library.HttpClient({ handler: server.handler, server: 'https://test', ...wrong }),
  readManifests: (wrong) => apply.readManifests([], wrong),
  retryOnConflict: (wrong) => library.retryOnConflict(async () => undefined, wrong),
  Informer: (wrong) => new cache.Informer(PODS, source, wrong),
  'informer.addHandler': (wrong) => new cache.Informer(PODS, source).addHandler({}, wrong),
  'lister.list': (wrong) => new cache.Informer(PODS, source).lister.list(wrong),
  'lister.list of several namespaces': (wrong) =>
    new library.InformerSet(client).for(PODS, { namespaces: ['a', 'b'] }).lister.list(wrong),
  InformerSet: (wrong) => new library.InformerSet(client, wrong),
  'informers.for': (wrong) => new library.InformerSet(client).for(PODS, wrong),
  WorkQueue: (wrong) => new workqueue.WorkQueue({ name: 'web', clock }, wrong),
  'queue.add': (wrong) => new workqueue.WorkQueue({ name: 'web', clock }).add('key', wrong),
  WorkerPool: (wrong) =>
    new workqueue.WorkerPool(
      {
        name: 'web',
        queue: new workqueue.WorkQueue({ name: 'web', clock }),
        handler: async () => library.done(),
        clock,
        log,
      },
      wrong,
    ),
  exponentialLimiter: (wrong) => workqueue.exponentialLimiter({ initialMs: 1, maxMs: 2, ...wrong }),
  fastSlowLimiter: (wrong) =>
    workqueue.fastSlowLimiter({ fastMs: 1, slowMs: 2, fastAttempts: 3, ...wrong }),
  bucketLimiter: (wrong) => workqueue.bucketLimiter({ perSecond: 1, burst: 1, ...wrong }, clock),
  EventBroadcaster: (wrong) => new events.EventBroadcaster({ client, clock, log }, wrong),
  'EventBroadcaster: correlation': (wrong) =>
    new events.EventBroadcaster({ client, clock, log }, { correlation: wrong }),
  LeaderElector: (wrong) =>
    new leaderelection.LeaderElector(
      { client, clock, log, random: Math.random },
      { namespace: 'default', name: 'lease', identity: 'me', ...wrong },
    ),
  Controller: (wrong) =>
    new library.Controller(
      { client, clock, log },
      { name: 'web', kind: 'Pod', sync: async () => library.done(), ...wrong },
    ),
  controllerManager: (wrong) => library.controllerManager({ client, controllers, ...wrong }),
  'controllerManager: debug': (wrong) =>
    library.controllerManager({
      client,
      controllers,
      debug: { bindAddress: '127.0.0.1:0', ...wrong },
    }),
  'controllerManager: leaderElection': (wrong) =>
    library.controllerManager({ client, controllers, leaderElection: { ...election, ...wrong } }),
  runControllers: (wrong) =>
    library.runControllers({ client, controllers, ...wrong }, AbortSignal.abort()),
  SinglePass: (wrong) => new manager.SinglePass({ clock, log }, { isDryRun: false, ...wrong }),
  HttpServer: (wrong) =>
    new serving.HttpServer({ log }, { name: 'a', bindAddress: ':0', routes: {}, ...wrong }),
  'HttpServer: routes': (wrong) =>
    new serving.HttpServer({ log }, { name: 'a', bindAddress: ':0', routes: wrong }),
  'HttpServer: tls': (wrong) =>
    new serving.HttpServer(
      { log },
      {
        name: 'a',
        bindAddress: ':0',
        routes: {},
        tls: { certificate: serving.selfSignedCertificate({ clock, dnsNames: [] }), ...wrong },
      },
    ),
  CertificateFiles: (wrong) =>
    new serving.CertificateFiles(
      { clock, log },
      { certificatePath: 'a', privateKeyPath: 'b', ...wrong },
    ),
  Manager: (wrong) => new manager.Manager({ clock, log }, wrong),
  SyncHistory: (wrong) => new debug.SyncHistory(wrong),
  queuePages: (wrong) =>
    debug.queuePages({
      controllers,
      history: new debug.SyncHistory(),
      clock,
      ...wrong,
    }),
  statusPage: (wrong) => debug.statusPage({ clock, version: '', informers: () => [], ...wrong }),
  createRegistry: (wrong) => metrics.createRegistry(wrong),
  textLogger: (wrong) => library.textLogger(wrong),
  ApiServer: (wrong) => new kit.ApiServer(wrong),
  'server.listen': (wrong) => server.listen(wrong),
  'faults.failNext': (wrong) => server.faults.failNext('GET', 500, wrong),
  'faults.delayNext': (wrong) => server.faults.delayNext('GET', 1, wrong),
  'request matcher': (wrong) => server.faults.failNext(wrong, 500),
  Cluster: (wrong) => new kit.Cluster(clusterDeps, wrong),
  'Cluster: kubelet': (wrong) => new kit.Cluster(clusterDeps, { kubelet: wrong }),
};

for (const [name, call] of Object.entries(CALLS)) {
  test(`${name} rejects an unknown option`, async () => {
    await assert.rejects(async () => call({ noSuchOption: 1 }), {
      name: 'TypeError',
      message: /unknown option noSuchOption/,
    });
  });
}

test('rejects an invalid ClusterConfig and names the function that creates one', () => {
  class KubeConfig {
    readonly clusters: readonly unknown[] = [];
  }
  const connect = library.connectCluster as (config: unknown) => unknown;
  for (const [given, got] of [
    [new KubeConfig(), 'KubeConfig'],
    [undefined, 'undefined'],
    ['kubeconfig', 'String'],
    [Promise.resolve(config), 'a Promise'],
  ] as const) {
    assert.throws(() => connect(given), {
      name: 'TypeError',
      message: new RegExp(`expected a ClusterConfig, got ${got}.*await loadClusterConfig\\(`),
    });
  }
});
