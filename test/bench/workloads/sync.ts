/** The initial sync of a cache: streamed (WatchList), and in pages of 500 for clients that request them. */
import { cannedSetting, CLIENTS } from '../support/client-program.ts';
import { grouped } from '../support/workload.ts';
import type { Case, Options, Workload } from '../support/workload.ts';

/** Number of objects above which only the clients with the smallest caches run. */
const MOST_FOR_ALL = 50_000;

export const workload: Workload = {
  description: 'cost of the initial sync of a cache, and memory of an object',
  options: { objects: 'foos:22000,pods:20000,pods:100000', mode: 'stream,pages' },
  short: { objects: 'foos:10000', mode: 'stream' },
  columns: [
    { key: 'cpuMs', title: 'CPU ms', ratio: true },
    { key: 'heapBytes', title: 'heap B/object', ratio: true },
    { key: 'rssMb', title: 'RSS MiB', ratio: true },
    { key: 'peakRssMb', title: 'peak RSS MiB' },
  ],
  chart: [
    { key: 'cpuMs', title: 'Initial sync, CPU in ms' },
    { key: 'heapBytes', title: 'Cached object, bytes of heap' },
  ],
  cases({ objects: sizes = '', mode: modes = '' }: Options): readonly Case[] {
    return sizes.split(',').flatMap((size) =>
      modes.split(',').map((mode) => {
        const [kind, count] = size.split(':');
        const objects = Number(count);
        const server = {
          kind: kind === 'pods' ? 'pods' : 'foos',
          objects,
          mode: mode === 'pages' ? 'pages' : 'stream',
        } as const;
        return {
          name: `${grouped(objects)} ${kind === 'pods' ? 'Pods' : 'Foos'}, ${mode === 'pages' ? 'paged' : 'streamed'}`,
          // The others need gigabytes.
          contestants: objects > MOST_FOR_ALL ? ['client-go', 'ours'] : CLIENTS,
          open: (clients) =>
            cannedSetting(server, clients, ({ synced }) => ({
              cpuMs: synced.cpuMs,
              heapBytes: (synced.heapBytes ?? Number.NaN) / objects,
              rssMb: (synced.rssKb ?? Number.NaN) / 1024,
              peakRssMb: synced.peakRssKb / 1024,
            })),
        };
      }),
    );
  },
};
