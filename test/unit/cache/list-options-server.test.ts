import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { NAMESPACES, PODS } from '../../../src/api/builtin.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { InformerSet } from '../../../src/cache/informer-set.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';

describe('list options on a server', () => {
  let clock: FakeClock;
  let client: HttpClient;
  let set: InformerSet;
  const stop = { now: (): Promise<void> => Promise.resolve() };

  const pod = (namespace: string, name: string, labels: Record<string, string> = {}) =>
    client.create(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { namespace, name, labels },
      spec: { containers: [{ name: 'app', image: 'nginx' }] },
    });
  const start = async () => {
    const controller = new AbortController();
    const running = set.run(controller.signal);
    stop.now = async () => {
      controller.abort();
      await running;
    };
    await clock.advance(1000);
  };

  beforeEach(async () => {
    clock = new FakeClock();
    const { handler } = new ApiServer({ clock });
    client = new HttpClient({ handler, server: 'https://test', clock });
    set = new InformerSet(client, { clock, freeze: true });
    for (const name of ['a', 'b']) {
      await client.create(NAMESPACES, {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name },
      });
    }
  });
  afterEach(() => stop.now());

  it('caches only metadata in a metadata-only informer', async () => {
    const metadata = set.for(PODS, { metadataOnly: true });
    assert.notEqual(metadata, set.for(PODS));
    await pod('a', 'first');
    await start();
    await pod('b', 'second');
    await settle();
    const objects = metadata.lister.list();
    assert.deepEqual(
      objects.map(({ kind, metadata: { name } }) => [kind, name]),
      [
        ['Pod', 'first'],
        ['Pod', 'second'],
      ],
    );
    for (const object of objects) {
      assert.deepEqual(Object.keys(object).toSorted(), ['apiVersion', 'kind', 'metadata']);
      // @ts-expect-error: the type has no spec either
      assert.equal(object.spec, undefined);
    }
  });

  it('removes an object that no longer matches the selector, and adds one that starts to match', async () => {
    const selected = set.for(PODS, {
      namespaces: ['a', 'b'],
      tweakListOptions: () => ({
        labelSelector: 'app=web',
        fieldSelector: 'metadata.name!=not-me',
      }),
    });
    await pod('a', 'web', { app: 'web' });
    const other = await pod('b', 'other');
    await pod('b', 'not-me', { app: 'web' });
    const { notes, handler } = named();
    selected.addHandler(handler);
    await start();
    const label = (at: typeof other.metadata, app: string) =>
      client.patch(PODS, at, { type: 'merge', body: { metadata: { labels: { app } } } });
    await label(other.metadata, 'web');
    await settle();
    await label(other.metadata, 'db');
    await settle();
    assert.deepEqual(notes, ['+web', '+other', '-other']);
    assert.equal(selected.lister.size, 1);
  });
});

function named() {
  const notes: string[] = [];
  type Named = { readonly metadata: { readonly name: string } };
  return {
    notes,
    handler: {
      onAdd: ({ metadata }: Named) => void notes.push(`+${metadata.name}`),
      onDelete: ({ metadata }: Named) => void notes.push(`-${metadata.name}`),
    },
  };
}
