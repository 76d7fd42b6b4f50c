/**
 * What every client program of a benchmark does besides its work: it says when its cache is filled
 * and when the storm is over, and what that cost by the operating system's count.
 */
import type { Mode } from '../support/canned-server.ts';

export interface ClientOptions {
  /** `http://127.0.0.1:12345` */
  readonly server: string;
  readonly mode: Mode;
  readonly objects: number;
  /** Events of the storm; 0: there is none. */
  readonly events: number;
}

/** One line of JSON on the client's stdout. */
export type ClientReport =
  | {
      readonly at: 'synced';
      readonly startCpuMs: number;
      readonly cpuMs: number;
      readonly wallMs: number;
      readonly peakRssKb: number;
      /** Growth of the heap since the start, each measured after a collection. */
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

  /** Everything is loaded; the work begins. */
  begin(): void {
    this.#startHeapBytes = heapBytes();
    this.#start = reading();
  }

  /** The initial state is there. Ends the process if no storm is to follow. */
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

  /** One event of the storm was handled; the last ends the process. */
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
  // Twice: what finalizers let go of goes with the second.
  globalThis.gc!();
  globalThis.gc!();
  return process.memoryUsage().heapUsed;
}

function report(line: ClientReport): void {
  // Synchronous on a pipe: process.exit may follow.
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
