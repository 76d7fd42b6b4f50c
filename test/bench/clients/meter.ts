/**
 * Measures a client program: reports when its cache is synced and when the events are over, with the CPU time and
 * memory counted by the operating system.
 */
import type { Mode } from '../support/canned-server.ts';
import type { KindName } from '../support/object-bytes.ts';
import { checksumOf } from '../support/checksum.ts';

export interface ClientOptions {
  /** `http://127.0.0.1:12345` */
  readonly server: string;
  /** Present with TLS. */
  readonly caFile?: string | undefined;
  readonly kind: KindName;
  readonly mode: Mode;
  readonly objects: number;
  /** Number of events after the sync; 0: the program ends when its cache is synced. */
  readonly events: number;
  /** Whether events are synced through a work queue, and their latency is measured. */
  readonly latency: boolean;
}

/** A line of JSON on the client's stdout. */
export interface ClientReport {
  readonly at: 'synced' | 'stormed';
  readonly cpuMs: number;
  readonly wallMs: number;
  readonly peakRssKb: number;
  /** Resident memory; only at `synced`, after a garbage collection. */
  readonly rssKb?: number;
  /** Growth of the heap since the start; both values are measured after a garbage collection. */
  readonly heapBytes?: number;
  /** Of the cache, if the program can list it. */
  readonly checksum?: number;
  /** Of each event, in milliseconds. */
  readonly latencies?: readonly number[];
}

interface Reading {
  readonly cpuMs: number;
  readonly wallMs: number;
}

type Listed = Parameters<typeof checksumOf>[0];

export class Meter {
  readonly options: ClientOptions = JSON.parse(process.argv[2]!) as ClientOptions;
  readonly #list: () => Listed | undefined;
  readonly #latencies: number[] = [];
  #startHeapBytes = 0;
  #start: Reading = { cpuMs: 0, wallMs: 0 };
  #left = this.options.events;

  /** @param list returns the content of the cache, if that is possible */
  constructor(list: () => Listed | undefined = () => undefined) {
    this.#list = list;
  }

  /** Starts the measurement; call it when all modules are loaded. */
  start(): void {
    this.#startHeapBytes = heapBytes();
    this.#start = reading();
  }

  /** Call it when the cache is synced. Ends the process if there are no events. */
  synced(): void {
    const usage = this.#usage();
    const heap = heapBytes() - this.#startHeapBytes;
    const rssKb = process.memoryUsage.rss() / 1024;
    this.#report({ at: 'synced', ...usage, rssKb, heapBytes: heap }, this.#left === 0);
    this.#start = reading();
  }

  /**
   * Call it for each event; the last one ends the process.
   *
   * @param sent time of the change in microseconds, if the latency is measured
   */
  event(sent?: string): void {
    if (sent !== undefined) {
      this.#latencies.push(performance.timeOrigin + performance.now() - Number(sent) / 1000);
    }
    if (--this.#left !== 0) return;
    const { options } = this;
    const usage = this.#usage();
    const latencies = options.latency && { latencies: this.#latencies };
    this.#report({ at: 'stormed', ...usage, ...latencies }, true);
  }

  #usage() {
    const { cpuMs, wallMs } = reading();
    return {
      cpuMs: cpuMs - this.#start.cpuMs,
      wallMs: wallMs - this.#start.wallMs,
      peakRssKb: process.resourceUsage().maxRSS,
    };
  }

  #report(line: ClientReport, isLast: boolean): void {
    const listed = this.#list();
    const text = JSON.stringify({ ...line, ...(listed && { checksum: checksumOf(listed) }) });
    // A long line is not written at once.
    process.stdout.write(`${text}\n`, () => isLast && process.exit());
  }
}

function reading(): Reading {
  const { userCPUTime, systemCPUTime } = process.resourceUsage();
  return { cpuMs: (userCPUTime + systemCPUTime) / 1000, wallMs: performance.now() };
}

function heapBytes(): number {
  // Twice, because finalizers release objects that only the second collection frees.
  globalThis.gc!();
  globalThis.gc!();
  // Cached objects may be strings or bytes outside the heap.
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
