/** A watch expires, and the client lists again: nothing has changed. Ends with the first event after that. */
import { cannedSetting, CLIENTS } from '../support/client-program.ts';
import { grouped, numberIn } from '../support/workload.ts';
import type { Case, Options, Workload } from '../support/workload.ts';

export const workload: Workload = {
  description: 'cost of a relist of unchanged objects',
  options: { objects: '50000', mode: 'stream,pages' },
  short: { objects: '10000', mode: 'stream' },
  columns: [
    { key: 'cpuUs', title: 'CPU µs/object', digits: 2, ratio: true },
    { key: 'wallMs', title: 'wall ms' },
    { key: 'peakRssMb', title: 'peak RSS MiB' },
  ],
  cases({ mode: modes = '', ...rest }: Options): readonly Case[] {
    const objects = numberIn(rest, 'objects');
    return modes.split(',').map((mode) => ({
      name: `${grouped(objects)} Foos, ${mode === 'pages' ? 'paged' : 'streamed'}`,
      contestants: CLIENTS,
      open: (clients) => {
        const server = { objects, events: 1, expires: true } as const;
        return cannedSetting(
          { ...server, mode: mode === 'pages' ? 'pages' : 'stream' },
          clients,
          ({ stormed }) => ({
            cpuUs: (stormed!.cpuMs * 1000) / objects,
            wallMs: stormed!.wallMs,
            peakRssMb: stormed!.peakRssKb / 1024,
          }),
        );
      },
    }));
  },
};
