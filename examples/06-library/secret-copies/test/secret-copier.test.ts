import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { HttpClient, runControllers } from 'crd-controller';
import { EVENTS, LEASES, SECRETS } from 'crd-controller/kinds';
import { ApiServer, FakeClock } from 'crd-controller/testing';
import { secretCopiers } from '../secret-copier.ts';

const AT = { namespace: 'default', name: 'token' };
const SECRET = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { ...AT, labels: { 'example.com/copy': 'yes' } },
  data: { key: btoa('one') },
};

async function start(context: TestContext) {
  const clock = new FakeClock();
  const open = (name: string) => {
    const server = new ApiServer({ clock });
    const options = { handler: server.handler, server: `https://${name}`, clock };
    return { server, client: new HttpClient({ ...options, namespace: 'default' }) };
  };
  const [hub, a, b] = [open('hub'), open('a'), open('b')];
  const members = new Map([
    ['a', a.client],
    ['b', b.client],
  ]);
  /** Starts a replica of the operator, and returns a function that stops it. */
  const startReplica = () => {
    const stop = new AbortController();
    const running = runControllers(
      {
        name: 'secret-copier',
        client: hub.client,
        clock,
        freeze: true,
        leaderElection: true,
        controllers: (kit) => secretCopiers(kit, members),
      },
      stop.signal,
    );
    const end = async () => {
      stop.abort();
      await clock.advance(60_000);
      await running;
    };
    context.after(end);
    return end;
  };
  return {
    clock,
    hub,
    a,
    b,
    startReplica,
    /** Returns the value of the key in the copies of `AT`; undefined without a copy. */
    copies: async () => {
      await clock.advance(10_000);
      const found = await Promise.all(
        [a, b].map(({ client }) => client.list(SECRETS, { fieldSelector: 'metadata.name=token' })),
      );
      return found.map(({ items: [copy] }) => copy && atob(copy.data?.['key'] ?? ''));
    },
  };
}

test('keeps copies in all member clusters, and deletes them with the Secret', async (context) => {
  const { hub, a, b, startReplica, copies, clock } = await start(context);
  startReplica();
  await hub.client.create(SECRETS, SECRET);
  await hub.client.create(SECRETS, { ...SECRET, metadata: { ...AT, name: 'unlabelled' } });
  assert.deepEqual(await copies(), ['one', 'one']);
  assert.equal((await a.client.list(SECRETS)).items.length, 1);

  const body = { data: { key: btoa('two') } };
  await hub.client.patch(SECRETS, AT, { type: 'merge', body });
  assert.deepEqual(await copies(), ['two', 'two']);
  const other = { data: { key: btoa('other'), more: btoa('more') } };
  await a.client.patch(SECRETS, AT, { type: 'merge', body: other });
  await b.client.delete(SECRETS, AT);
  assert.deepEqual(await copies(), ['two', 'two']);
  assert.deepEqual(Object.keys((await a.client.get(SECRETS, AT)).data ?? {}), ['key']);

  const revisions = [a.server.revision, b.server.revision];
  await clock.advance(600_000);
  assert.deepEqual([a.server.revision, b.server.revision], revisions);

  await hub.client.delete(SECRETS, AT);
  assert.deepEqual(await copies(), [undefined, undefined]);
});

test('replaces immutable copies, and deletes them when the label is removed', async (context) => {
  const { hub, startReplica, copies, clock } = await start(context);
  const stop = startReplica();
  await hub.client.create(SECRETS, { ...SECRET, immutable: true });
  assert.deepEqual(await copies(), ['one', 'one']);
  await stop();
  await hub.client.delete(SECRETS, AT);
  await hub.client.create(SECRETS, { ...SECRET, data: { key: btoa('two') } });
  startReplica();
  await clock.advance(60_000);
  assert.deepEqual(await copies(), ['two', 'two']);
  const body = { metadata: { labels: null } };
  await hub.client.patch(SECRETS, AT, { type: 'merge', body });
  assert.deepEqual(await copies(), [undefined, undefined]);
});

test('does not change a Secret of the member, and waits for its deletion', async (context) => {
  const { hub, b, startReplica, copies, clock } = await start(context);
  startReplica();
  const own = { ...SECRET, metadata: AT, data: { key: btoa('own') } };
  await b.client.create(SECRETS, own);
  await hub.client.create(SECRETS, SECRET);
  assert.deepEqual(await copies(), ['one', 'own']);
  const events = (await hub.client.list(EVENTS, { namespace: 'default' })).items;
  assert.ok(events.some(({ reason }) => reason === 'Copied'));
  assert.ok(events.some(({ reason }) => reason === 'NotCopied'));
  await b.client.delete(SECRETS, AT);
  await clock.advance(60_000);
  assert.deepEqual(await copies(), ['one', 'one']);
});

test('copies to one cluster while another one fails', async (context) => {
  const { hub, a, startReplica, copies, clock } = await start(context);
  startReplica();
  await copies();
  a.server.faults.failNext({ verb: 'create', resource: 'secrets' }, 503, { times: 12 });
  await hub.client.create(SECRETS, SECRET);
  assert.deepEqual(await copies(), [undefined, 'one']);
  await clock.advance(600_000);
  assert.deepEqual(await copies(), ['one', 'one']);
});

test('another replica takes over, and copies are deleted after a stop of all replicas', async (context) => {
  const { hub, a, startReplica, copies, clock } = await start(context);
  const stopFirst = startReplica();
  await hub.client.create(SECRETS, SECRET);
  assert.deepEqual(await copies(), ['one', 'one']);
  const stopSecond = startReplica();
  await clock.advance(10_000);
  await stopFirst();
  const body = { data: { key: btoa('two') } };
  await hub.client.patch(SECRETS, AT, { type: 'merge', body });
  assert.deepEqual(await copies(), ['two', 'two']);
  await stopSecond();
  await hub.client.delete(SECRETS, AT);
  assert.deepEqual(await copies(), ['two', 'two']);
  startReplica();
  await clock.advance(60_000);
  assert.deepEqual(await copies(), [undefined, undefined]);
  // The Lease is in the hub.
  assert.equal((await hub.client.list(LEASES)).items.length, 1);
  assert.equal((await a.client.list(LEASES)).items.length, 0);
});
