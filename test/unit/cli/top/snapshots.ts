import { Exposition } from '../../../../src/util/exposition.ts';
import type { ProgramSnapshot, QueuesPage } from '../../../../src/cli/top/snapshot.ts';
import type { ProcessStatus } from '../../../../src/serving/debug-pages.ts';

export interface SnapshotOptions {
  readonly atMs?: number;
  readonly upMs?: number;
  readonly status?: Partial<ProcessStatus>;
  readonly queues?: Partial<QueuesPage>;
  readonly metrics?: readonly string[];
}

/** Returns the snapshot of a program with one idle controller. */
export function snapshotOf({
  atMs = 0,
  upMs = 60_000,
  status,
  queues,
  metrics = [],
}: SnapshotOptions = {}): ProgramSnapshot {
  return {
    atMs,
    status: {
      name: 'website-controller',
      version: 'v1.2.3',
      now: '2026-09-01T00:01:00.000Z',
      upMs,
      process: {
        residentBytes: 0,
        heapBytes: 0,
        heapLimitBytes: 0,
        cpuMs: 0,
        loopActiveMs: 0,
        loopIdleMs: 0,
      },
      informers: [
        {
          name: 'pods',
          state: 'watching',
          stateForMs: 60_000,
          hasSynced: true,
          inactiveMs: 1000,
          objects: 3,
        },
      ],
      ...status,
    },
    queues: {
      controllers: [
        {
          controller: 'count',
          ready: { count: 0, keys: [] },
          delayed: { count: 0, keys: [] },
          processing: { count: 0, keys: [] },
          hotLoops: [],
        },
      ],
      slowest: [],
      hottest: [],
      ...queues,
    },
    metrics: new Exposition(metrics.join('\n')),
  };
}
