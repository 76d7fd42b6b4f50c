import { totalmem } from 'node:os';
import type { Readable } from 'node:stream';
import type { Download, DownloadRequest, Downloads } from './routes.ts';
import type { Clock } from '../util/clock.ts';
import { goQuote } from '../util/go-quote.ts';
import type { Logger } from '../util/logger.ts';
import type { Runnable } from '../util/runnable.ts';
import { isLoopback } from './bind-address.ts';
import type { HeapProfiler, Profiler } from 'node:inspector';
import { Session } from 'node:inspector/promises';
import { getHeapSnapshot } from 'node:v8';
import { untilAborted } from '../util/abort.ts';
import { messageOf } from '../util/values.ts';

/** Allocated bytes per sample of the heap profile, as in Go. The overhead is negligible. */
const SAMPLING_INTERVAL_BYTES = 512 * 1024;

/** JSON-RPC code in the errors of the inspector. */
const METHOD_NOT_FOUND = '-32601';

/**
 * Profiles its own process through sessions of the Node.js inspector, which open no port. While it
 * runs, it samples allocations for the heap profile.
 */
export class V8Profiler implements Runnable {
  readonly name = 'profiler';
  readonly #clock: Pick<Clock, 'sleep'>;
  #sampling: Session | undefined;

  constructor(clock: Pick<Clock, 'sleep'>) {
    this.#clock = clock;
  }

  async run(signal: AbortSignal): Promise<void> {
    const session = new Session();
    session.connect();
    try {
      if (await startSampling(session)) this.#sampling = session;
      await untilAborted(signal);
    } finally {
      this.#sampling = undefined;
      session.disconnect();
    }
  }

  /**
   * Takes a CPU profile for `ms` milliseconds. Returns undefined if `signal` aborts earlier. Only one
   * profile can be taken at a time.
   */
  async cpuProfile(ms: number, signal: AbortSignal): Promise<Profiler.Profile | undefined> {
    const session = new Session();
    session.connect();
    try {
      await session.post('Profiler.enable');
      await session.post('Profiler.start');
      await this.#clock.sleep(ms, signal);
      return signal.aborted ? undefined : (await session.post('Profiler.stop')).profile;
    } finally {
      session.disconnect();
    }
  }

  /**
   * Returns live memory by allocation site, after a garbage collection. Covers allocations since `run`
   * was called; undefined if the profiler does not run, or the engine has no heap profiles.
   */
  async heapProfile(): Promise<HeapProfiler.SamplingHeapProfile | undefined> {
    return (await this.#sampling?.post('HeapProfiler.getSamplingProfile'))?.profile;
  }

  /** Takes a snapshot of all objects. Reading or destroying the stream releases its memory. */
  heapSnapshot(): Readable {
    return getHeapSnapshot();
  }
}

/** Returns false if the JavaScript engine has no heap profiles: that of Bun. */
async function startSampling(session: Session): Promise<boolean> {
  const samplingInterval = SAMPLING_INTERVAL_BYTES;
  try {
    await session.post('HeapProfiler.startSampling', { samplingInterval });
    return true;
  } catch (error) {
    if (messageOf(error).includes(METHOD_NOT_FOUND)) return false;
    throw error;
  }
}

/** Profile endpoints, and the profiler that must run for them. */
export interface Profiling {
  readonly profiler: Runnable;
  readonly downloads: Downloads;
}

/**
 * Creates the profiler and its endpoints.
 *
 * @param address `HOST:PORT` or `:PORT` on which the endpoints are served
 */
export function newProfiling(
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
  /** `HOST:PORT` or `:PORT` on which the endpoints are served. */
  readonly address: string;
  /** @default the memory of this process and the limit of its container or machine */
  readonly memory?: (() => MemoryUse) | undefined;
}

/** Memory in bytes. */
export interface MemoryUse {
  /** Resident memory of the process. */
  readonly used: number;
  /** Used part of the JavaScript heap. */
  readonly heap: number;
  /** Maximum memory of the process. */
  readonly limit: number;
}

const DEFAULT_SECONDS = 30;
const MAX_SECONDS = 300;

/** Memory that a snapshot needs per byte of heap, measured with many small objects. */
const SNAPSHOT_FACTOR = 16;

/**
 * Profile endpoints under the paths of Go programs, in the formats of Chrome DevTools:
 *
 * - `/debug/pprof/profile?seconds=30`: a CPU profile, as `.cpuprofile`.
 * - `/debug/pprof/heap`: live memory by allocation site, as `.heapprofile`.
 * - `/debug/heapsnapshot`: all objects, as `.heapsnapshot`. Blocks the process while it is taken. A
 *   snapshot contains tokens and cached objects, so it is served on loopback addresses only.
 *
 * A second CPU profile or snapshot at the same time gets status 409.
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
    if (seconds < 1 || seconds > MAX_SECONDS) {
      const message = `seconds must be a whole number from 1 to ${MAX_SECONDS}`;
      return refused(400, `${message}: got ${goQuote(text)}`);
    }
    if (isBusy) return refused(409, 'A CPU profile is already being taken; try again later');
    isBusy = true;
    try {
      log.info('Taking a CPU profile', { seconds });
      const profile = await profiler.cpuProfile(1000 * seconds, signal);
      return profile
        ? saved('cpuprofile', JSON.stringify(profile))
        : refused(503, 'The request was cancelled before the CPU profile was complete');
    } finally {
      isBusy = false;
    }
  };
}

function heapProfile({ profiler }: ProfilingDeps): Answer {
  return async ({ query }) => {
    if (query.has('seconds')) {
      return refused(
        400,
        'The heap profile covers the time since the start; the parameter seconds is not supported',
      );
    }
    const profile = await profiler.heapProfile();
    return profile
      ? saved('heapprofile', JSON.stringify(profile))
      : refused(503, 'The profiler is not running, or this JavaScript engine has no heap profiles');
  };
}

function heapSnapshot({ profiler, log, address, memory = memoryUse }: ProfilingDeps): Answer {
  let isBusy = false;
  return async () => {
    if (!isLoopback(address)) {
      const reason = 'A heap snapshot contains secrets';
      return refused(403, `${reason}; it is served only on a loopback address such as 127.0.0.1`);
    }
    if (isBusy) return refused(409, 'A heap snapshot is already being taken; try again later');
    const { used, heap, limit } = memory();
    const needed = Math.max(used, SNAPSHOT_FACTOR * heap);
    if (used + needed > limit) {
      const usage = `${mebibytes(used)} of ${mebibytes(limit)} are in use`;
      return refused(
        503,
        `A heap snapshot needs up to ${mebibytes(needed)} of memory, and ${usage}`,
      );
    }
    log.info('Taking a heap snapshot; the process is blocked meanwhile', { rssBytes: used });
    isBusy = true;
    const snapshot = profiler.heapSnapshot();
    snapshot.once('close', () => {
      isBusy = false;
    });
    return saved('heapsnapshot', snapshot);
  };
}

function memoryUse(): MemoryUse {
  // Without a limit, Node.js returns 0 or more than the memory of the machine.
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

function refused(status: number, reason: string): Download {
  return { status, contentType: 'text/plain; charset=utf-8', body: `${reason}\n` };
}
