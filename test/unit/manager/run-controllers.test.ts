import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { LEASES, PODS } from '../../../src/api/builtin.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { WriteFence } from '../../../src/client/write-fence.ts';
import { Controller } from '../../../src/manager/controller.ts';
import { runControllers } from '../../../src/manager/run-controllers.ts';
import type {
  ControllerKit,
  ControllerManagerOptions,
} from '../../../src/manager/run-controllers.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
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
  const run = (options: Omit<ControllerManagerOptions, 'client'>, of = client) => {
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
