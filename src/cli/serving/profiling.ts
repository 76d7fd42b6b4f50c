import { totalmem } from 'node:os';
import type { Readable } from 'node:stream';
import type { Download, DownloadRequest, Downloads } from '../../manager/serving/download.ts';
import type { Clock } from '../../util/clock.ts';
import { goQuote } from '../../util/go-quote.ts';
import type { Logger } from '../../util/logger.ts';
import type { Runnable } from '../../util/runnable.ts';
import { isLoopback } from '../../manager/serving/bind-address.ts';
import { V8Profiler } from './v8-profiler.ts';

/** What is served, and what has to run for it. */
export interface Profiling {
  readonly profiler: Runnable;
  readonly downloads: Downloads;
}

/** @param address where it is served: `HOST:PORT` or `:PORT` */
export function profilingOf(
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
  address: string,
): Profiling {
  const profiler = new V8Profiler(clock);
  return { profiler, downloads: profilingDownloads({ profiler, log, address }) };
}

/** Dependencies of `Profiling`. */
export interface ProfilingDeps {
  readonly profiler: Pick<V8Profiler, 'cpuProfile' | 'heapProfile' | 'heapSnapshot'>;
  readonly log: Logger;
  /** Where they are served: `HOST:PORT` or `:PORT`. */
  readonly address: string;
  /** @default of this process, on this machine or in this container */
  readonly memory?: (() => MemoryUse) | undefined;
}

/** In bytes. */
export interface MemoryUse {
  /** What is resident. */
  readonly used: number;
  /** What of that is JavaScript's objects. */
  readonly heap: number;
  /** What there may be. */
  readonly limit: number;
}

const DEFAULT_SECONDS = 30;
const MOST_SECONDS = 300;

/** What a snapshot takes of memory for each byte of many small objects, measured. */
const SNAPSHOT_FACTOR = 16;

/**
 * What developers look into, under the paths that Go programs have, in the formats of Chrome DevTools:
 *
 * - `/debug/pprof/profile?seconds=30`: where time goes from now on, as `.cpuprofile`.
 * - `/debug/pprof/heap`: where the memory in use was allocated, as `.heapprofile`.
 * - `/debug/heapsnapshot`: every object there is, as `.heapsnapshot`. Nothing else runs while it is
 *   taken. It contains tokens and cached objects, so it never leaves this machine, not even over TLS.
 *
 * One of a kind at a time; the second is told so by 409.
 */
export function profilingDownloads(deps: ProfilingDeps): Downloads {
  return new Map([
    ['/debug/pprof/profile', cpuProfile(deps)],
    ['/debug/pprof/heap', heapProfile(deps)],
    ['/debug/heapsnapshot', heapSnapshot(deps)],
  ]);
}

type Answer = (request: DownloadRequest) => Promise<Download>;

function cpuProfile({ profiler, log }: ProfilingDeps): Answer {
  let isBusy = false;
  return async ({ query, signal }) => {
    const text = query.get('seconds') ?? String(DEFAULT_SECONDS);
    const seconds = /^\d{1,9}$/.test(text) ? Number(text) : 0;
    if (seconds < 1 || seconds > MOST_SECONDS) {
      const message = `seconds must be a whole number from 1 to ${MOST_SECONDS}`;
      return refused(400, `${message}: got ${goQuote(text)}`);
    }
    if (isBusy) return refused(409, 'A CPU profile is being taken already');
    isBusy = true;
    try {
      log.info('Taking a CPU profile', { seconds });
      const profile = await profiler.cpuProfile(1000 * seconds, signal);
      return profile
        ? saved('cpuprofile', JSON.stringify(profile))
        : refused(503, 'Nobody waited for the CPU profile to end');
    } finally {
      isBusy = false;
    }
  };
}

function heapProfile({ profiler }: ProfilingDeps): Answer {
  return async ({ query }) => {
    if (query.has('seconds')) {
      return refused(400, 'The heap profile is of all since the start: it takes no seconds');
    }
    const profile = await profiler.heapProfile();
    return profile
      ? saved('heapprofile', JSON.stringify(profile))
      : refused(503, 'No samples are taken at this moment');
  };
}

function heapSnapshot({ profiler, log, address, memory = memoryUse }: ProfilingDeps): Answer {
  let isBusy = false;
  return async () => {
    if (!isLoopback(address)) {
      const why = 'A heap snapshot contains secrets';
      return refused(403, `${why}: it is served only on a loopback address such as 127.0.0.1`);
    }
    if (isBusy) return refused(409, 'A heap snapshot is being taken already');
    const { used, heap, limit } = memory();
    const needed = Math.max(used, SNAPSHOT_FACTOR * heap);
    if (used + needed > limit) {
      const left = `${mebibytes(used)} of ${mebibytes(limit)} are in use`;
      return refused(503, `A heap snapshot may take ${mebibytes(needed)} of memory, and ${left}`);
    }
    log.info('Taking a heap snapshot: nothing else runs until it is taken', { rssBytes: used });
    isBusy = true;
    const snapshot = profiler.heapSnapshot();
    snapshot.once('close', () => {
      isBusy = false;
    });
    return saved('heapsnapshot', snapshot);
  };
}

function memoryUse(): MemoryUse {
  // Without a limit it is nothing, or more than there is.
  const limit = process.constrainedMemory() || Number.POSITIVE_INFINITY;
  const { rss, heapUsed } = process.memoryUsage();
  return { used: rss, heap: heapUsed, limit: Math.min(limit, totalmem()) };
}

function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 1024 ** 2)}MiB`;
}

function saved(extension: string, body: string | Readable): Download {
  const fileName = `crd-controller.${extension}`;
  return { status: 200, contentType: 'application/json', body, fileName };
}

function refused(status: number, why: string): Download {
  return { status, contentType: 'text/plain; charset=utf-8', body: `${why}\n` };
}
