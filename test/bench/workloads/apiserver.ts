/** The embedded server against etcd with kube-apiserver, over TLS: the cost of the server, with the same client. */
import { setTimeout as sleep } from 'node:timers/promises';
import { startControlPlane } from '../support/control-plane.ts';
import { FooServer, FOOS } from '../support/foo-controllers.ts';
import { childrenRssMb } from '../support/metered-process.ts';
import { daemonFromBundle } from '../support/programs.ts';
import { readKubeconfig, ServerApi } from '../support/server-api.ts';
import { grouped, numberIn } from '../support/workload.ts';
import type { Case, Options, Sample, Workload } from '../support/workload.ts';

export const workload: Workload = {
  description: 'the embedded server against etcd and kube-apiserver',
  options: { objects: '20000', watchers: '100', changes: '200' },
  short: { objects: '2000', watchers: '20', changes: '50' },
  rounds: 3,
  columns: [
    { key: 'startMs', title: 'start ms', ratio: true },
    { key: 'createsPerSecond', title: 'creates/s', ratio: true },
    { key: 'listMs', title: 'list ms', ratio: true },
    { key: 'deliveriesPerSecond', title: 'watch deliveries/s', ratio: true },
    { key: 'rssMb', title: 'RSS MiB', ratio: true },
  ],
  cases(options: Options): readonly Case[] {
    const objects = numberIn(options, 'objects');
    const watchers = numberIn(options, 'watchers');
    const changes = numberIn(options, 'changes');
    return [
      {
        name: `${grouped(objects)} Foos, ${watchers} watchers`,
        contestants: ['kube-apiserver', 'embedded'],
        open: async () => {
          // The first round does not measure the bundler.
          await daemonFromBundle();
          return {
            sample: (name) => sample(name, { objects, watchers, changes }),
            [Symbol.asyncDispose]: async () => undefined,
          };
        },
      },
    ];
  },
};

async function sample(
  name: string,
  { objects, watchers, changes }: Readonly<Record<'objects' | 'watchers' | 'changes', number>>,
): Promise<Sample> {
  const started = performance.now();
  await using plane = await startControlPlane(name === 'embedded' ? 'embedded' : 'real');
  const startMs = performance.now() - started;
  const server = await FooServer.install(plane.kubeconfig);
  const address = readKubeconfig(plane.kubeconfig);
  const api = new ServerApi(address);
  try {
    const creating = performance.now();
    await server.createFoos(objects);
    const createMs = performance.now() - creating;
    const listing = performance.now();
    const bytes = await (await api.open('GET', FOOS)).arrayBuffer();
    const listMs = performance.now() - listing;
    const { items, metadata } = JSON.parse(Buffer.from(bytes).toString()) as {
      items: object[];
      metadata: { resourceVersion: string };
    };
    if (items.length !== objects) throw new Error(`The list has ${items.length} objects`);
    const fanOutMs = await fanOut(address, metadata.resourceVersion, { watchers, changes });
    return {
      startMs,
      createsPerSecond: (objects * 1000) / createMs,
      listMs,
      deliveriesPerSecond: (watchers * changes * 1000) / fanOutMs,
      rssMb: childrenRssMb(),
    };
  } finally {
    await api.close();
    await server.close();
  }
}

/** Returns the time from the first of some changes until every watcher has received all of them. */
async function fanOut(
  address: ReturnType<typeof readKubeconfig>,
  resourceVersion: string,
  { watchers, changes }: Readonly<Record<'watchers' | 'changes', number>>,
): Promise<number> {
  const watching = new ServerApi(address, watchers);
  const api = new ServerApi(address, 10);
  let lines = 0;
  const read = async () => {
    const path = `${FOOS}?watch=true&resourceVersion=${resourceVersion}`;
    for await (const chunk of await watching.open('GET', path)) {
      for (const byte of chunk as Buffer) if (byte === 10) lines++;
    }
  };
  const reading = Promise.allSettled(Array.from({ length: watchers }, read));
  try {
    await sleep(1000);
    const started = performance.now();
    for (let number = 0; number < changes; number++) {
      await api.request('DELETE', `${FOOS}/foo-${number}`);
    }
    const isMissing = () => lines < watchers * changes;
    while (isMissing()) await sleep(5);
    return performance.now() - started;
  } finally {
    await watching.close();
    await api.close();
    await reading;
  }
}
