/**
 * Limits of a test process: duration of a blocked event loop, memory, and run time. `--test-timeout` cannot
 * end an infinite loop, because it is a timer in the same process, and does not limit memory.
 *
 * A worker thread checks the limits, since it runs while the event loop is blocked. It ends the process with
 * SIGKILL and prints the reason to stderr.
 */
import { writeSync } from 'node:fs';
import { isMainThread, Worker, workerData } from 'node:worker_threads';

export interface Bounds {
  /** Maximum time without a timer event, in milliseconds. */
  readonly blockedMs: number;
  /** Maximum resident set size, which includes buffers outside the heap. */
  readonly memoryBytes: number;
  readonly lifeMs: number;
}

const BOUNDS: Bounds = { blockedMs: 60_000, memoryBytes: 3 * 2 ** 30, lifeMs: 30 * 60_000 };
const CHECK_EVERY_MS = 250;

interface Watched extends Bounds {
  /** Counts the timers that fired in the main thread. */
  readonly beats: Int32Array<SharedArrayBuffer>;
}

if (!isMainThread && isWatched(workerData)) watch(workerData);

export function boundThisProcess(bounds: Bounds = BOUNDS): void {
  const beats = new Int32Array(new SharedArrayBuffer(4));
  setInterval(() => Atomics.add(beats, 0, 1), CHECK_EVERY_MS).unref();
  const watched: Watched = { ...bounds, beats };
  // Without the preloaded modules, which would start another worker.
  new Worker(import.meta.filename, { workerData: watched, execArgv: [] }).unref();
}

function isWatched(data: unknown): data is Watched {
  return typeof data === 'object' && data !== null && 'beats' in data;
}

function watch({ blockedMs, memoryBytes, lifeMs, beats }: Watched): void {
  let last = -1;
  // Counts checks instead of time, because a suspended process is not blocked.
  let checks = 0;
  let checksSinceBeat = 0;
  setInterval(() => {
    checks++;
    const beat = Atomics.load(beats, 0);
    checksSinceBeat = beat === last ? checksSinceBeat + 1 : 0;
    last = beat;
    if (checksSinceBeat * CHECK_EVERY_MS > blockedMs) {
      end(`its event loop was blocked for more than ${blockedMs / 1000} s`);
    } else if (process.memoryUsage.rss() > memoryBytes) {
      end(`it took more than ${memoryBytes / 2 ** 20} MiB of memory`);
    } else if (checks * CHECK_EVERY_MS > lifeMs) {
      end(`it lived for more than ${lifeMs / 1000} s`);
    }
  }, CHECK_EVERY_MS);
}

function end(reason: string): void {
  // The streams of a worker depend on the main thread.
  writeSync(2, `Test process ${process.pid} was killed: ${reason}\n`);
  process.kill(process.pid, 'SIGKILL');
}
