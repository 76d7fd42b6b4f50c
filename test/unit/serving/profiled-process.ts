import type { HeapProfiler, Profiler } from 'node:inspector';
import { url as inspectorUrl } from 'node:inspector';
import { profilingDownloads, V8Profiler } from '../../../src/serving/profiling.ts';
import { HttpServer } from '../../../src/serving/http-server.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import { runAll } from '../../../src/util/runnable.ts';
import { recordingLogger } from '../../support/recording-logger.ts';

/**
 * A worker that serves and requests its own profiles, and writes the results. Profiling a small isolate
 * is much faster than profiling the isolate of the tests.
 */

/** Function that the CPU profile must contain. */
function useCpu(ms: number): number {
  let sum = 0;
  for (const end = performance.now() + ms; performance.now() < end;) sum += Math.sqrt(sum + 1);
  return sum;
}

/** Allocation that the heap profile must contain. */
function retainMemory(): readonly unknown[] {
  return Array.from({ length: 8 }, () => Array<number>(262_144).fill(1));
}

/** Object that the heap snapshot must contain, with its token. */
class RetainedSecret {
  readonly token: string = ['canary', 'of', 'the', 'worker'].join('-');
}

/** Results of the worker. */
export interface Found {
  readonly cpu: { readonly hasFunction: boolean; readonly samples: number; readonly ms: number };
  readonly heap: { readonly hasFunction: boolean; readonly retainedArrays: number };
  readonly snapshot: {
    readonly nodes: number;
    readonly hasClass: boolean;
    readonly hasToken: boolean;
  };
  /** Whether a cancelled profile was empty. */
  readonly isCancelledEmpty: boolean;
  /** Number of remaining timers. */
  readonly pending: number;
  /** Heap profiles while the profiler does not run. */
  readonly outside: number;
  readonly inspectorUrl: string;
}

function namesIn({ callFrame, children }: HeapProfiler.SamplingHeapProfileNode): string[] {
  return [callFrame.functionName, ...children.flatMap(namesIn)];
}

const clock = new FakeClock();
const { log, lines } = recordingLogger();
const profiler = new V8Profiler(clock);
const before = await profiler.heapProfile();
const downloads = profilingDownloads({ profiler, log, address: '127.0.0.1:0' });
const server = new HttpServer(
  { log },
  { name: 'profiles', bindAddress: '127.0.0.1:0', routes: { downloads } },
);
const stop = new AbortController();
const running = runAll(
  [(signal) => server.run(signal), (signal) => profiler.run(signal)],
  stop.signal,
);
const listening = () => lines.find(({ message }) => message === 'Listening');
while (!listening()) await settle();
const textOf = async (path: string) =>
  (await fetch(`http://${String(listening()?.fields['address'])}${path}`)).text();

const asked = textOf('/debug/pprof/profile?seconds=5');
while (clock.pending === 0) await settle();
useCpu(60);
await clock.advance(5000);
const cpu: Profiler.Profile = JSON.parse(await asked);
const retained = retainMemory();
const heap: HeapProfiler.SamplingHeapProfile = JSON.parse(await textOf('/debug/pprof/heap'));
const secret = new RetainedSecret();
const snapshot: { readonly nodes: unknown[]; readonly strings: string[] } = JSON.parse(
  await textOf('/debug/heapsnapshot'),
);
const gone = new AbortController();
const isCancelledEmpty = profiler.cpuProfile(1000, gone.signal);
gone.abort();
const found: Omit<Found, 'outside'> = {
  cpu: {
    hasFunction: cpu.nodes.some(({ callFrame }) => callFrame.functionName === useCpu.name),
    samples: cpu.samples?.length ?? 0,
    ms: (cpu.endTime - cpu.startTime) / 1000,
  },
  heap: {
    hasFunction: namesIn(heap.head).includes(retainMemory.name),
    retainedArrays: retained.length,
  },
  snapshot: {
    nodes: snapshot.nodes.length,
    hasClass: snapshot.strings.includes(RetainedSecret.name),
    hasToken: snapshot.strings.includes(secret.token),
  },
  isCancelledEmpty: (await isCancelledEmpty) === undefined,
  pending: clock.pending,
  inspectorUrl: inspectorUrl() ?? 'none',
};
stop.abort();
await running;
const after = await profiler.heapProfile();
const all: Found = { ...found, outside: [before, after].filter(Boolean).length };
process.stdout.write(JSON.stringify(all));
