/** Time from a change on the server to the sync of the object, at a steady rate of changes. */
import { cannedSetting, CLIENTS } from '../support/client-program.ts';
import { grouped, numberIn, numbersIn } from '../support/workload.ts';
import type { Case, Options, Workload } from '../support/workload.ts';

export const workload: Workload = {
  description: 'time from a change to the sync of the object',
  options: { objects: '2000', rate: '100,1000', duration: '5' },
  short: { rate: '1000', duration: '2' },
  columns: [
    { key: 'p50', title: 'p50 ms', digits: 2 },
    { key: 'p99', title: 'p99 ms', digits: 2, ratio: true },
    { key: 'max', title: 'max ms', digits: 1 },
    { key: 'cpuUs', title: 'CPU µs/event', digits: 1 },
  ],
  chart: [{ key: 'p99', title: 'Event to sync, 99th percentile in ms' }],
  cases(options: Options): readonly Case[] {
    const objects = numberIn(options, 'objects');
    return numbersIn(options, 'rate').map((rate) => {
      const events = rate * numberIn(options, 'duration');
      return {
        name: `${grouped(rate)} changes/s`,
        contestants: CLIENTS,
        open: (clients) =>
          cannedSetting({ objects, events, rate }, clients, ({ stormed }) => {
            const sorted = (stormed!.latencies ?? []).toSorted((a, b) => a - b);
            const at = (share: number) =>
              sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
            return {
              p50: at(0.5),
              p99: at(0.99),
              max: at(1),
              cpuUs: (stormed!.cpuMs * 1000) / events,
            };
          }),
      };
    });
  },
};
