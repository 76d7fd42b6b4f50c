import { HttpClient, KeyChannel, objectKey, objectTask, objectTimer } from 'crd-controller';
import { Controller, done, runControllers } from 'crd-controller';
import { NAMESPACES } from 'crd-controller/kinds';
import { ApiServer, FakeClock } from 'crd-controller/testing';

const lines: string[] = [];
const channel = new KeyChannel();
const clock = new FakeClock();
const handler = new ApiServer({ clock }).handler;
const client = new HttpClient({ handler, server: 'https://test', clock });
const stop = new AbortController();
const running = runControllers(
  {
    client,
    clock,
    controllers: (kit) => {
      const namespaces = kit.informers.for(NAMESPACES, { labelSelector: 'team=a' });
      return [
        // Every minute, from the creation of a Namespace to its deletion.
        objectTimer(kit, namespaces, {
          name: 'probe',
          intervalMs: 60_000,
          run: async ({ metadata }) => void lines.push(`probe ${metadata.name}`),
        }),
        // One task for each Namespace, which ends when its signal aborts.
        objectTask(kit, namespaces, {
          name: 'tail',
          run: async ({ metadata }, { signal }) => {
            await kit.clock.sleep(3_600_000, signal);
            lines.push(`tail of ${metadata.name} stopped: ${signal.aborted}`);
          },
        }),
        // Syncs that another system starts, such as a webhook or a message queue.
        new Controller(kit, {
          name: 'hook',
          kind: 'Namespace',
          sync: async (key, { causes }) => {
            lines.push(`hook ${key}: ${causes[0]?.text}`);
            return done();
          },
        }).source(channel.source),
      ];
    },
  },
  stop.signal,
);
const metadata = { name: 'shop', labels: { team: 'a' } };
await client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata });
await clock.advance(10_000);
channel.add(objectKey(undefined, 'shop'), { cause: 'push' });
await clock.advance(90_000);
await client.delete(NAMESPACES, { name: 'shop' });
await clock.advance(600_000);
console.log(lines.slice(0, 2).join()); // prints: probe shop,hook shop: push
console.log(lines.slice(2).join()); // prints: probe shop,tail of shop stopped: true
stop.abort();
await clock.advance(30_000);
await running;
