import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NODES, PODS } from '../../../src/api/builtin.ts';
import { booleanOption, choiceOption, integerOption } from '../../../src/cli/flags/option.ts';
import { listOption, textOption } from '../../../src/cli/flags/option.ts';
import { loadClusterConfig } from '../../../src/client/kube-config/kube-config.ts';
import * as apply from '../../../src/apply.ts';
import * as cache from '../../../src/cache.ts';
import * as controllerExports from '../../../src/controllers.ts';
import * as clients from '../../../src/client.ts';
import * as debug from '../../../src/debug.ts';
import * as events from '../../../src/events.ts';
import * as library from '../../../src/index.ts';
import * as kinds from '../../../src/kinds.ts';
import * as leaderelection from '../../../src/leaderelection.ts';
import * as manager from '../../../src/manager.ts';
import * as metrics from '../../../src/metrics.ts';
import * as schema from '../../../src/schema.ts';
import * as serving from '../../../src/serving.ts';
import * as workqueue from '../../../src/workqueue.ts';
import * as kitExports from '../../../src/testing.ts';
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

const server = new kitExports.ApiServer();
const clock = new kitExports.FakeClock();
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
const informers = () => new library.InformerSet(client);
const kit = { client, clock, log, informers: informers() } as unknown as library.ControllerKit;
const sync = async () => library.done();
const controller = () =>
  new library.Controller({ client, clock, log }, { name: 'web', kind: 'Pod', sync });
const text = schema.string();
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
  'client.patch: patch': (wrong) => client.patch(PODS, at, { type: 'merge', body: {}, ...wrong }),
  'client.raw': (wrong) => client.raw({ path: '/version', ...wrong }),
  'client.text': (wrong) => client.text({ path: '/version', ...wrong }),
  'client.list: labelSelector': (wrong) => client.list(PODS, { labelSelector: wrong }),
  'client.watch: labelSelector': (wrong) => client.watch(PODS, { labelSelector: wrong }),
  'informers.for: labelSelector': (wrong) => informers().for(PODS, { labelSelector: wrong }),
  'lister.list: selector': (wrong) => informers().for(PODS).lister.list({ selector: wrong }),
  listerWatcher: (wrong) => cache.listerWatcher(client, PODS, wrong),
  RestMapper: (wrong) => new clients.RestMapper(client, wrong),
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
  ApiServer: (wrong) => new kitExports.ApiServer(wrong),
  'server.listen': (wrong) => server.listen(wrong),
  'faults.failNext': (wrong) => server.faults.failNext('GET', 500, wrong),
  'faults.delayNext': (wrong) => server.faults.delayNext('GET', 1, wrong),
  'request matcher': (wrong) => server.faults.failNext(wrong, 500),
  Cluster: (wrong) => new kitExports.Cluster(clusterDeps, wrong),
  ensureChild: (wrong) => library.ensureChild(kit as never, wrong as never),
  'OwnedObjects.add': (wrong) =>
    new library.OwnedObjects(PODS, 'test').add(informers().for(PODS), wrong),
  objectController: (wrong) =>
    library.objectController(kit, informers().for(PODS) as never, wrong as never),
  objectTask: (wrong) => library.objectTask(kit, informers().for(PODS), wrong as never),
  objectTimer: (wrong) => library.objectTimer(kit, informers().for(PODS), wrong as never),
  requeueAfter: (wrong) => library.requeueAfter(1, 'waits', wrong),
  'controller.owns': (wrong) => controller().owns(informers().for(PODS), NODES, wrong),
  'controller.watches': (wrong) =>
    controller().watches(informers().for(PODS), library.keyOf, wrong),
  booleanOption: (wrong) => booleanOption({ help: '', ...wrong }),
  choiceOption: (wrong) => choiceOption({ help: '', choices: ['a'], default: 'a', ...wrong }),
  integerOption: (wrong) => integerOption({ help: '', default: 1, min: 0, ...wrong }),
  listOption: (wrong) => listOption({ help: '', ...wrong }),
  textOption: (wrong) => textOption({ help: '', ...wrong }),
  metricsOf: (wrong) => metrics.metricsOf(metrics.createRegistry(), wrong),
  podCountController: (wrong) => controllerExports.podCountController(kit, wrong),
  webAppController: (wrong) => controllerExports.webAppController(kit, wrong),
  childTask: (wrong) => controllerExports.childTask(wrong as never),
  SyncError: (wrong) => new library.SyncError('Failed', 'failed', wrong),
  callService: (wrong) =>
    library.callService({ clock, signal: AbortSignal.abort() }, 'GET', 'https://a.test', wrong),
  TaskError: (wrong) => new controllerExports.TaskError('Failed', 'failed', wrong),
  anything: (wrong) => schema.anything(wrong),
  boolean: (wrong) => schema.boolean(wrong),
  conditions: (wrong) => schema.conditions(wrong),
  customResource: (wrong) => schema.customResource(wrong as never),
  dateTime: (wrong) => schema.dateTime(wrong),
  embeddedResource: (wrong) => schema.embeddedResource(wrong),
  enumeration: (wrong) => schema.enumeration(['a'], wrong),
  intOrString: (wrong) => schema.intOrString(wrong),
  integer: (wrong) => schema.integer(wrong),
  list: (wrong) => schema.list(text, wrong),
  map: (wrong) => schema.map(text, wrong),
  number: (wrong) => schema.number(wrong),
  object: (wrong) => schema.object({ text }, wrong),
  quantity: (wrong) => schema.quantity(wrong),
  string: (wrong) => schema.string(wrong),
  checkConversion: (wrong) => kitExports.checkConversion({} as never, wrong as never),
  installWebhooks: (wrong) => kitExports.installWebhooks(server, client, {} as never, wrong),
  'Cluster: kubelet': (wrong) => new kitExports.Cluster(clusterDeps, { kubelet: wrong }),
};

for (const [name, call] of Object.entries(CALLS)) {
  test(`${name} rejects an unknown option`, async () => {
    await assert.rejects(async () => call({ noSuchOption: 1 }), {
      name: 'TypeError',
      message: /unknown option noSuchOption/,
    });
  });
}

test('each exported function and class with a parameter `options` is among them', () => {
  const entryPoints = { ...apply, ...cache, ...clients, ...controllerExports, ...debug, ...events };
  const others = { ...leaderelection, ...library, ...manager, ...metrics, ...schema, ...serving };
  const missing = Object.entries({ ...entryPoints, ...others, ...workqueue, ...kitExports })
    .filter(([, each]) => typeof each === 'function' && hasOptions(each.toString()))
    .flatMap(([name]) => (Object.hasOwn(CALLS, name) ? [] : [name]));
  assert.deepEqual(missing, []);
});

/** Whether the source of a function, or of the constructor of a class, has a parameter `options`. */
function hasOptions(source: string): boolean {
  const parameters = source.startsWith('class') ? /\n\s+constructor\(([^{]*)/ : /^[^(]*\(([^{]*)/;
  return /\boptions\b/.test(parameters.exec(source)?.[1] ?? '');
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
