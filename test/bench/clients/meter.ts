/**
 * Measures a client program: reports when its cache is synced and when the storm is over, with the CPU
 * time and memory counted by the operating system.
 */
import type { Mode } from '../support/canned-server.ts';

export interface ClientOptions {
  /** `http://127.0.0.1:12345` */
  readonly server: string;
  readonly mode: Mode;
  readonly objects: number;
  /** Number of events in the storm; 0 for no storm. */
  readonly events: number;
}

/** A line of JSON on the client's stdout. */
export type ClientReport =
  | {
      readonly at: 'synced';
      readonly startCpuMs: number;
      readonly cpuMs: number;
      readonly wallMs: number;
      readonly peakRssKb: number;
      /** Growth of the heap since the start; both values are measured after a garbage collection. */
      readonly heapBytes: number;
    }
  | {
      readonly at: 'stormed';
      readonly cpuMs: number;
      readonly wallMs: number;
      readonly peakRssKb: number;
    };

interface Reading {
  readonly cpuMs: number;
  readonly wallMs: number;
}

export class Meter {
  readonly options: ClientOptions = JSON.parse(process.argv[2]!) as ClientOptions;
  #startHeapBytes = 0;
  #start: Reading = { cpuMs: 0, wallMs: 0 };
  #left = this.options.events;

  /** Starts the measurement; call it when all modules are loaded. */
  start(): void {
    this.#startHeapBytes = heapBytes();
    this.#start = reading();
  }

  /** Call it when the cache is synced. Ends the process if there is no storm. */
  synced(): void {
    const { cpuMs, wallMs } = this.#since();
    const peakRssKb = process.resourceUsage().maxRSS;
    const heap = heapBytes() - this.#startHeapBytes;
    report({
      at: 'synced',
      startCpuMs: this.#start.cpuMs,
      cpuMs,
      wallMs,
      peakRssKb,
      heapBytes: heap,
    });
    this.#start = reading();
    if (this.#left === 0) process.exit();
  }

  /** Call it for each event of the storm; the last one ends the process. */
  event(): void {
    if (--this.#left > 0) return;
    report({ at: 'stormed', ...this.#since(), peakRssKb: process.resourceUsage().maxRSS });
    process.exit();
  }

  #since(): Reading {
    const { cpuMs, wallMs } = reading();
    return { cpuMs: cpuMs - this.#start.cpuMs, wallMs: wallMs - this.#start.wallMs };
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
  return process.memoryUsage().heapUsed;
}

function report(line: ClientReport): void {
  // Writes to a pipe are synchronous, so process.exit may follow.
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
