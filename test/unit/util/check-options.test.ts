import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NODES, PODS } from '../../../src/api/builtin.ts';
import { booleanOption, choiceOption, integerOption } from '../../../src/cli/flags/option.ts';
import { listOption, textOption } from '../../../src/cli/flags/option.ts';
import { checkProgram } from '../../../src/cli/program/program.ts';
import { loadClusterConfig } from '../../../src/client/kube-config/kube-config.ts';
import * as clients from '../../../src/client.ts';
import * as library from '../../../src/index.ts';
import * as leaderelection from '../../../src/leaderelection.ts';
import * as schema from '../../../src/schema.ts';
import * as kitExports from '../../../src/testing.ts';
import { checkOptions } from '../../../src/util/check-options.ts';
import { Webhooks } from '../../../src/webhook.ts';

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
const program = { name: 'a', version: '1', controllers: {} };
const clusterDeps = { client, clock, log };

/** The functions that put a program together, called with `wrong` among their options. */
const CALLS: Readonly<Record<string, (wrong: object) => unknown>> = {
  'client.list: labelSelector': (wrong) => client.list(PODS, { labelSelector: wrong }),
  'client.watch: labelSelector': (wrong) => client.watch(PODS, { labelSelector: wrong }),
  'informers.for: labelSelector': (wrong) => informers().for(PODS, { labelSelector: wrong }),
  connectCluster: (wrong) => library.connectCluster(config, wrong),
  loadClusterConfig: (wrong) => loadClusterConfig(wrong),
  HttpClient: (wrong) =>
    new library.HttpClient({ handler: server.handler, server: 'https://test', ...wrong }),
  InformerSet: (wrong) => new library.InformerSet(client, wrong),
  'informers.for': (wrong) => new library.InformerSet(client).for(PODS, wrong),
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
  'controllerManager: webhookServer': (wrong) =>
    library.controllerManager({
      client,
      controllers,
      webhooks: new Webhooks(),
      webhookServer: wrong,
    }),
  runControllers: (wrong) =>
    library.runControllers({ client, controllers, ...wrong }, AbortSignal.abort()),
  ApiServer: (wrong) => new kitExports.ApiServer(wrong),
  Cluster: (wrong) => new kitExports.Cluster(clusterDeps, wrong),
  'OwnedObjects.add': (wrong) =>
    new library.OwnedObjects(PODS, 'test').add(informers().for(PODS), wrong),
  objectController: (wrong) =>
    library.objectController(kit, informers().for(PODS) as never, wrong as never),
  objectTask: (wrong) => library.objectTask(kit, informers().for(PODS), wrong as never),
  objectTimer: (wrong) => library.objectTimer(kit, informers().for(PODS), wrong as never),
  'controller.owns': (wrong) => controller().owns(informers().for(PODS), NODES, wrong),
  'controller.watches': (wrong) =>
    controller().watches(informers().for(PODS), library.keyOf, wrong),
  booleanOption: (wrong) => booleanOption({ help: '', ...wrong }),
  choiceOption: (wrong) => choiceOption({ help: '', choices: ['a'], default: 'a', ...wrong }),
  integerOption: (wrong) => integerOption({ help: '', default: 1, min: 0, ...wrong }),
  listOption: (wrong) => listOption({ help: '', ...wrong }),
  textOption: (wrong) => textOption({ help: '', ...wrong }),
  FlightRecorder: (wrong) => new library.FlightRecorder({ file: '', ...wrong }),
  explore: (wrong) => kitExports.explore(wrong as never),
  replay: (wrong) => kitExports.replay(wrong as never),
  runProgram: (wrong) => checkProgram({ ...program, ...wrong }),
  'runProgram: command': (wrong) => checkProgram({ ...program, commands: [wrong as never] }),
  'runProgram: controller': (wrong) =>
    checkProgram({ ...program, controllers: { a: wrong as never } }),
  customResource: (wrong) => schema.customResource(wrong as never),
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
