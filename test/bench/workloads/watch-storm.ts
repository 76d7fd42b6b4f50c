/** MODIFIED events as fast as the client reads: the CPU time of an event in the client's process. */
import { cannedSetting, CLIENTS } from '../support/client-program.ts';
import { grouped, numberIn } from '../support/workload.ts';
import type { Case, Options, Workload } from '../support/workload.ts';

/** `foos:2000`: cached objects of a kind */
const SIZES = 'foos:2000,foos:100000,pods:20000';

export const workload: Workload = {
  description: 'cost of a change of a cached object',
  options: { cached: SIZES, events: '100000', tls: 'false,true' },
  short: { cached: 'foos:2000', events: '30000', tls: 'false' },
  columns: [
    { key: 'cpuUs', title: 'CPU µs/event', digits: 2, ratio: true },
    { key: 'perSecond', title: 'events/s' },
    { key: 'peakRssMb', title: 'peak RSS MiB' },
  ],
  chart: [{ key: 'cpuUs', title: 'Watch event, CPU in µs' }],
  cases({ cached = '', tls = '', ...rest }: Options): readonly Case[] {
    return cached.split(',').flatMap((size) =>
      tls.split(',').map((secure) => {
        const [kind, count] = size.split(':');
        const objects = Number(count);
        // Pods are six times as large.
        const events = Math.round(numberIn(rest, 'events') / (kind === 'pods' ? 4 : 1));
        const server = { kind: kind === 'pods' ? 'pods' : 'foos', objects, events } as const;
        const name = `${grouped(objects)} ${kind === 'pods' ? 'Pods' : 'Foos'}`;
        return {
          name: secure === 'true' ? `${name}, TLS` : name,
          contestants: CLIENTS,
          open: (clients) =>
            cannedSetting({ ...server, tls: secure === 'true' }, clients, ({ stormed }) => ({
              cpuUs: (stormed!.cpuMs * 1000) / events,
              perSecond: (events * 1000) / stormed!.wallMs,
              peakRssMb: stormed!.peakRssKb / 1024,
            })),
        };
      }),
    );
  },
};
