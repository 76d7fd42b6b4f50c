import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { ApiError } from '../../../src/api/api-error.ts';
import {
  CONFIG_MAPS,
  EVENTS,
  LEASES,
  NAMESPACES,
  PODS,
  VALIDATING_WEBHOOK_CONFIGURATIONS,
} from '../../../src/api/builtin.ts';
import { keyOf } from '../../../src/api/object-key.ts';
import type { ObjectKey } from '../../../src/api/object-key.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import type { Client } from '../../../src/client/client.ts';
import { dryRunClient } from '../../../src/client/dry-run.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { isWriteFenced, WriteFence } from '../../../src/client/write-fence.ts';
import { Controller } from '../../../src/manager/controller.ts';
import { predicates } from '../../../src/manager/predicate.ts';
import { programPages } from '../../../src/manager/program-pages.ts';
import type { ControllerProgram } from '../../../src/manager/program-pages.ts';
import { controllerManager, runControllers } from '../../../src/manager/run-controllers.ts';
import type {
  ControllerKit,
  ControllerManagerOptions,
} from '../../../src/manager/run-controllers.ts';
import { SyncHistory } from '../../../src/manager/sync-history.ts';
import { metricsOf } from '../../../src/metrics/metrics.ts';
import { createRegistry, expose } from '../../../src/metrics/registry.ts';
import { shardOf } from '../../../src/sharding/assignment.ts';
import type { HttpHandler } from '../../../src/util/http.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { webhookObjects } from '../../../src/webhook/install.ts';
import { webhookNames } from '../../../src/webhook/manifests.ts';
import { Webhooks } from '../../../src/webhook/webhooks.ts';
import { recordingLogger } from '../../support/recording-logger.ts';
import { done } from '../../../src/workqueue/outcome.ts';

function newFixture(context: TestContext) {
  const clock = new FakeClock();
  const server = new ApiServer({ clock });
  const clientWith = (fence?: WriteFence) =>
    new HttpClient({
      handler: fence ? fence.wrap(server.handler) : server.handler,
      server: 'https://test',
      clock,
    });
  const client = clientWith();
  const stops: (() => Promise<void>)[] = [];
  const run = (options: Omit<ControllerManagerOptions, 'client'>, of: Client = client) => {
    const stop = new AbortController();
    const running = runControllers({ client: of, clock, ...options }, stop.signal);
    const end = async () => {
      stop.abort();
      await clock.advance(10_000);
      await running;
    };
    stops.push(end);
    return end;
  };
  context.after(async () => {
    for (const stop of stops) await stop();
  });
  const createPod = (name: string) =>
    client.create(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'default' },
      spec: { containers: [{ name: 'app', image: 'nginx' }] },
    });
  return { clock, server, client, clientWith, run, createPod };
}

/** A controller that labels every Pod with `by`, and adds the key to `ran`. */
function labeller(kit: ControllerKit, by: string, ran: string[]): Controller {
  const pods = kit.informers.for(PODS);
  return new Controller(kit, {
    name: 'labeller',
    kind: PODS.kind,
    sync: async (key, { client, signal }) => {
      const pod = pods.lister.get(key);
      if (!pod || pod.metadata.labels?.['by']) return done();
      ran.push(`${by} ${key}`);
      const body = { metadata: { labels: { by } } };
      await client.patch(PODS, pod.metadata, { type: 'merge', body }, { signal });
      kit.events.recorder('labeller').normal(pod, 'Labelled', `Labelled by ${by}`);
      return done();
    },
  }).for(pods);
}

test('runs controllers with shared informers, writes their events, and stops on abort', async (context) => {
  const { clock, server, client, run, createPod } = newFixture(context);
  const ran: string[] = [];
  await createPod('web');
  const stop = run({
    host: 'node-1',
    controllers: (kit) => [
      labeller(kit, 'a', ran),
      new Controller(kit, { name: 'idle', kind: 'Pod', sync: async () => done() }).for(
        kit.informers.for(PODS),
      ),
    ],
  });
  await clock.advance(2000);
  assert.deepEqual(ran, ['a default/web']);
  assert.equal(
    (await client.get(PODS, { namespace: 'default', name: 'web' })).metadata.labels?.['by'],
    'a',
  );
  assert.deepEqual(
    ['watch pods', 'create events'].map((request) => {
      const [verb = '', resource = ''] = request.split(' ');
      return server.requests.count({ verb, resource });
    }),
    [1, 1],
  );
  await stop();
  await createPod('late');
  await clock.advance(60_000);
  assert.deepEqual(ran, ['a default/web']);
});

test('runs the controllers of one of two replicas, and those of the other after the first released the lease', async (context) => {
  const { clock, client, clientWith, run, createPod } = newFixture(context);
  const ran: string[] = [];
  const start = (identity: string) => {
    const fence = new WriteFence();
    return run(
      {
        controllers: (kit) => [labeller(kit, identity, ran)],
        leaderElection: { client, fence, identity, namespace: 'default', name: 'labeller' },
      },
      clientWith(fence),
    );
  };
  const stopFirst = start('a');
  await clock.advance(3000);
  start('b');
  await createPod('one');
  await clock.advance(5000);
  assert.deepEqual(ran, ['a default/one']);
  await stopFirst();
  await createPod('two');
  await clock.advance(20_000);
  assert.deepEqual(ran, ['a default/one', 'b default/two']);
  const lease = await client.get(LEASES, { namespace: 'default', name: 'labeller' });
  assert.equal(lease.spec?.holderIdentity, 'b');
});

test('the debug pages of a shard name the replica that syncs a key', async (context) => {
  const { clock, client, clientWith, run, createPod } = newFixture(context);
  const history = new SyncHistory();
  const programs: ControllerProgram[] = [];
  for (const identity of ['a', 'b']) {
    const fence = new WriteFence();
    const election = { client, fence, identity, namespace: 'default', name: 'x', shards: 2 };
    run(
      {
        history,
        controllers: (kit) => [labeller(kit, identity, [])],
        leaderElection: election,
        servers: (program) => {
          programs.push(program);
          return [];
        },
      },
      clientWith(fence),
    );
  }
  for (let at = 0; at < 10; at++) await createPod(`pod-${at}`);
  await clock.advance(60_000);
  const options = { clock, history: new SyncHistory(), name: undefined, version: 'v1' };
  const answers = programs.map((program) => {
    const { pages } = programPages(program, { ...options, redact: undefined });
    return Array.from({ length: 10 }, (_, pod) => {
      const query = new URLSearchParams({ key: `default/pod-${pod}` });
      const { error } = JSON.parse(pages.get('/debug/why')?.(query).body ?? '') as {
        readonly error: string;
      };
      return / Ask (.*)$/.exec(error)?.[1] ?? 'own';
    });
  });
  const leases = Array.from({ length: 10 }, (_, pod) => `x-${shardOf(`default/pod-${pod}`, 2)}`);
  const { items } = await client.list(LEASES);
  const holders = new Map(
    items.map(({ metadata: { name }, spec }) => [name, spec?.holderIdentity]),
  );
  assert.equal(new Set(holders.values()).size, 2, 'each replica holds a shard');
  for (const [at, identity] of ['a', 'b'].entries()) {
    assert.deepEqual(
      answers[at],
      leases.map((lease) =>
        holders.get(lease) === identity
          ? 'own'
          : `${holders.get(lease)}, which holds its Lease default/${lease}`,
      ),
    );
  }
});

test('steps down when the lease is lost: stops controllers, starts them with a clean queue when it leads again, and reports both', async (context) => {
  const { clock, client, server, run, createPod } = newFixture(context);
  const registry = createRegistry();
  const fence = new WriteFence();
  let isCut = false;
  const cut: HttpHandler = (request) => {
    if (isCut) throw new ApiError({ kind: 'unreachable', message: 'cut' });
    return server.handler(request);
  };
  const lease = new HttpClient({ handler: cut, server: 'https://test', clock });
  let controller: Controller | undefined;
  let syncs = 0;
  const late: Promise<unknown>[] = [];
  run(
    {
      metrics: metricsOf(registry),
      leaderElection: {
        client: lease,
        fence,
        identity: 'a',
        namespace: 'default',
        name: 'test',
        stepDown: true,
      },
      controllers: (kit) => {
        const pods = kit.informers.for(PODS);
        controller = new Controller(kit, {
          name: 'test',
          kind: PODS.kind,
          sync: async (key, { client: own }) => {
            syncs++;
            const pod = pods.lister.get(key);
            // Not awaited, without the signal of the sync: the server asks for a retry in the next term.
            const body = { metadata: { labels: { sync: String(syncs) } } };
            if (pod && syncs === 2) {
              const patch = { type: 'merge', body } as const;
              late.push(own.patch(PODS, pod.metadata, patch).catch((error: unknown) => error));
            }
            throw new Error('always');
          },
        });
        return [controller.for(pods)];
      },
    },
    new HttpClient({ handler: fence.wrap(server.handler), server: 'https://test', clock }),
  );
  const state = async () => {
    const text = (await expose(registry)).text;
    return ['leader_election_master_status', 'running_managed_controllers'].map((name) =>
      Number(new RegExp(`^${name}\\{.*\\} (\\d)$`, 'm').exec(text)?.[1]),
    );
  };
  await createPod('one');
  server.faults.failNext({ verb: 'patch', resource: 'pods' }, 429, { retryAfterSeconds: 30 });
  await clock.advance(2000);
  assert.deepEqual(await state(), [1, 1]);
  const [before, first] = [syncs, controller?.queue];
  assert.ok(first && first.retries('default/one' as ObjectKey) > 3);
  isCut = true;
  await clock.advance(12_000);
  assert.deepEqual(await state(), [0, 0]);
  const inFirst = syncs;
  assert.ok(inFirst >= before);
  await clock.advance(5000);
  assert.equal(syncs, inFirst, 'a standby syncs nothing');
  isCut = false;
  await clock.advance(5000);
  assert.deepEqual(await state(), [1, 1]);
  assert.ok(syncs > inFirst + 3, 'without the backoff of the former term');
  await clock.advance(60_000);
  const [error] = await Promise.all(late);
  assert.match(String(error), /leader election lost/);
  const pod = await client.get(PODS, { namespace: 'default', name: 'one' });
  assert.equal(pod.metadata.labels?.['sync'], undefined);
});

test('elects a leader with a Lease and a fence of its own by leaderElection: true', async (context) => {
  const { clock, server, client, run, createPod } = newFixture(context);
  const programClient = () =>
    new HttpClient({ handler: server.handler, server: 'https://test', clock, namespace: 'apps' });
  const ran: string[] = [];
  const kits: ControllerKit[] = [];
  const start = (by: string) =>
    run(
      {
        name: 'labeller',
        host: by,
        leaderElection: true,
        controllers: (kit) => {
          kits.push(kit);
          return [labeller(kit, by, ran)];
        },
      },
      programClient(),
    );
  await client.create(NAMESPACES, {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'apps' },
  });
  const stopFirst = start('a');
  await clock.advance(3000);
  start('b');
  await createPod('one');
  await clock.advance(5000);
  assert.deepEqual(ran, ['a default/one']);
  const write = kits[1]?.client.delete(PODS, { namespace: 'default', name: 'one' });
  await assert.rejects(write ?? Promise.resolve(), (error) => isWriteFenced(error));
  await stopFirst();
  await createPod('two');
  await clock.advance(20_000);
  assert.deepEqual(ran, ['a default/one', 'b default/two']);
  const lease = await client.get(LEASES, { namespace: 'apps', name: 'labeller' });
  assert.match(lease.spec?.holderIdentity ?? '', /^b_[0-9a-f-]{36}$/);
  const { userAgent } = server.requests.recent.find(({ path }) => path.includes('/leases/'))!;
  assert.equal(userAgent, 'labeller/leader-election');
});

test('rejects a leader election without a name, a namespace, or a client that it can fence', async (context) => {
  const { client } = newFixture(context);
  const attempt = (options: Partial<ControllerManagerOptions>) =>
    runControllers({ client, controllers: () => [], leaderElection: true, ...options });
  await assert.rejects(attempt({}), /^RangeError: .*set the option name$/);
  await assert.rejects(attempt({ name: 'a' }), /^RangeError: .*set leaderElection.namespace$/);
  const leaderElection = { namespace: 'apps', fence: new WriteFence() };
  await assert.rejects(
    attempt({ name: 'a', leaderElection }),
    /^TypeError: .*both client and fence/,
  );
});

test('watches one cluster and writes to another', async (context) => {
  const { clock, client, run } = newFixture(context);
  const other = new ApiServer({ clock });
  const source = new HttpClient({ handler: other.handler, server: 'https://b', clock });
  const configMap = (name: string, data: Record<string, string>) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'default', name },
    data,
  });
  // The resourceVersions of the clusters differ.
  for (let at = 0; at < 20; at++) await client.create(CONFIG_MAPS, configMap(`other-${at}`, {}));
  let syncs = 0;
  run({
    controllers: (kit) => {
      const theirs = kit.forCluster('b', source).informers.for(CONFIG_MAPS, {
        fieldSelector: 'metadata.name=settings',
      });
      const ours = kit.informers.for(CONFIG_MAPS);
      return [
        new Controller(kit, {
          name: 'copy',
          kind: 'ConfigMap',
          sync: async (key, { client, signal }) => {
            syncs++;
            const { data = {} } = theirs.lister.get(key) ?? {};
            const body = configMap('settings', { ...data });
            const at = body.metadata;
            if (!ours.lister.get(key)) await client.create(CONFIG_MAPS, body, { signal });
            else await client.patch(CONFIG_MAPS, at, { type: 'merge', body: { data } }, { signal });
            return done();
          },
        })
          .for(ours, { predicates: [predicates.not({})] })
          .watches(theirs, keyOf),
      ];
    },
  });
  await source.create(CONFIG_MAPS, configMap('settings', { n: '1' }));
  await clock.advance(1000);
  const at = { namespace: 'default', name: 'settings' };
  assert.deepEqual((await client.get(CONFIG_MAPS, at)).data, { n: '1' });
  const patch = { type: 'merge', body: { data: { n: '2' } } } as const;
  await source.patch(CONFIG_MAPS, at, patch);
  await clock.advance(1000);
  assert.deepEqual((await client.get(CONFIG_MAPS, at)).data, { n: '2' });
  assert.equal(syncs, 2);
});

test('runs the same controller for several clusters, with names, events and metrics of their own', async (context) => {
  const { clock, run, client, createPod } = newFixture(context);
  const registry = createRegistry();
  const ran: string[] = [];
  const remotes = ['b', 'c'].map((name) => {
    const { handler } = new ApiServer({ clock });
    return { name, client: new HttpClient({ handler, server: `https://${name}`, clock }) };
  });
  let kits: ControllerKit[] = [];
  run({
    metrics: metricsOf(registry),
    controllers: (kit) => {
      kits = [kit, ...remotes.map((remote) => kit.forCluster(remote.name, remote.client))];
      assert.equal(kit.forCluster('b', remotes[0]!.client), kits[1]);
      assert.throws(
        () => kit.forCluster('b', client),
        /^Error: .*the cluster b has another client/,
      );
      assert.throws(() => kit.forCluster('B!', client), RangeError);
      const counter = { name: 'test_syncs_total', help: 'Syncs', labels: ['cluster'] } as const;
      return kits.map((each) => {
        each.customMetrics.counter(counter).inc({ cluster: each.cluster ?? 'own' });
        return labeller(each, each.cluster ?? 'own', ran);
      });
    },
  });
  await createPod('web');
  for (const remote of remotes) {
    await remote.client.create(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'web', namespace: 'default' },
      spec: { containers: [{ name: 'app', image: 'nginx' }] },
    });
  }
  await clock.advance(5000);
  assert.deepEqual(ran.toSorted(), ['b default/web', 'c default/web', 'own default/web']);
  const { items } = await remotes[1]!.client.list(EVENTS, { namespace: 'default' });
  assert.deepEqual(
    items.map(({ message }) => message),
    ['Labelled by c'],
  );
  const { text } = await expose(registry);
  assert.match(text, /reconcile_total\{controller="labeller-b",result="success"\} 2/);
  assert.match(text, /informer_queued_items\{name="c\/pods",/);
  assert.match(text, /^test_syncs_total\{cluster="c"\} 1$/m);
  assert.throws(
    () => kits[0]?.forCluster('d', client),
    /^Error: .*call it in the option controllers/,
  );
});

test('serves webhooks in each replica with a shared certificate, and not in a dry run', async (context) => {
  const { clock, client, clientWith, run } = newFixture(context);
  const programs: ControllerProgram[] = [];
  const { log, lines } = recordingLogger([], 0);
  const webhooks = new Webhooks().validates(PODS, () => []);
  const start = (identity: string, of?: Client) => {
    const fence = new WriteFence();
    const options: Omit<ControllerManagerOptions, 'client'> = {
      name: 'web',
      log,
      controllers: () => [],
      webhooks: () => webhooks,
      webhookServer: { bindAddress: '127.0.0.1:0', namespace: 'default', client },
      leaderElection: { client, fence, identity, namespace: 'default', name: 'web' },
      servers: (program) => {
        programs.push(program);
        return [];
      },
    };
    run(options, of ?? clientWith(fence));
  };
  for (const object of webhookObjects(webhooks.entries(), webhookNames('web', 'default'))) {
    if (object.kind === 'Service') continue;
    await client.create(VALIDATING_WEBHOOK_CONFIGURATIONS, object);
  }
  start('a');
  start('b');
  for (let times = 0; times < 60; times++) await clock.advance(100);
  const [leader, standby] = programs.map((program) => program.webhooks);
  assert.ok(leader && standby);
  assert.notEqual(await leader.server.listening, await standby.server.listening);
  for (let times = 0; times < 60; times++) await clock.advance(100);
  assert.deepEqual(
    [...leader.readiness, ...standby.readiness].map(({ check }) => check()),
    [undefined, undefined, undefined, undefined],
  );
  const { webhooks: configured } = await client.get(VALIDATING_WEBHOOK_CONFIGURATIONS, {
    name: 'web',
  });
  assert.ok(configured?.[0]?.clientConfig.caBundle);
  start('c', dryRunClient(client, log));
  assert.equal(programs[2]?.webhooks, undefined);
  assert.ok(lines.some(({ message }) => message.startsWith('Not serving webhooks')));
});

test('rejects webhooks without the name and the namespace of their Secret, and serves none without functions', async () => {
  const client = new HttpClient({ handler: new ApiServer().handler, server: 'https://test' });
  const webhooks = new Webhooks().validates(PODS, () => []);
  const build = (options: Partial<ControllerManagerOptions>) => () =>
    controllerManager({ client, controllers: () => [], webhooks, ...options });
  assert.throws(build({}), /set the option name/);
  assert.throws(build({ name: 'web' }), /set webhookServer\.namespace/);
  assert.throws(build({ webhookServer: { adress: ':1' } as object }), TypeError);
  build({ webhooks: new Webhooks() })();
});

test('refuses a signal among the options', async () => {
  const server = new ApiServer();
  const client = new HttpClient({ server: 'https://simulated', handler: server.handler });
  const options = { client, controllers: () => [], signal: new AbortController().signal };
  await assert.rejects(runControllers(options), /second parameter/);
});

test('without a signal, listens to those of the process only while it runs', async (context) => {
  const { client } = newFixture(context);
  const listeners = () => process.listenerCount('SIGTERM') + process.listenerCount('SIGINT');
  const before = listeners();
  let during = 0;
  const run = () => {
    during = listeners();
    return Promise.reject(new Error('no port'));
  };
  const servers = () => [{ name: 'server', run }];
  await assert.rejects(runControllers({ client, controllers: [], servers }), /no port/);
  assert.deepEqual([during - before, listeners() - before], [2, 0]);
});
