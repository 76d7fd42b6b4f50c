import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import type { Program } from './programs.ts';

/** Retained characters of a program's output. */
const LOG_CHARACTERS = 4000;

/** Length of a clock tick in /proc/PID/stat. */
const TICK_MS = 10;

/** Resources of a process since its start, counted by the operating system for all threads. */
export interface Usage {
  readonly cpuMs: number;
  readonly rssMb: number;
  readonly peakRssMb: number;
}

/** Returns the resident memory of all child processes of this one. */
export function childrenRssMb(): number {
  let sum = 0;
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    try {
      const status = readFileSync(`/proc/${pid}/status`, 'utf8');
      if (kilobytes(status, 'PPid') === process.pid) sum += kilobytes(status, 'VmRSS') / 1024;
    } catch (error) {
      // The process has ended since.
      if (!(error instanceof Error && 'code' in error)) throw error;
    }
  }
  return sum;
}

/** Returns a number of /proc/PID/status, which has no memory after the end of the process. */
function kilobytes(status: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0);
}

/** A program whose CPU time and memory are read from outside, in /proc. Only Linux has it. */
export class MeteredProcess implements AsyncDisposable {
  readonly #child: ChildProcess;
  #log = '';

  constructor(
    { file, args, env }: Program,
    more: {
      readonly args?: readonly string[];
      readonly env?: Readonly<Record<string, string>>;
    } = {},
  ) {
    this.#child = spawn(file, [...args, ...(more.args ?? [])], {
      env: { ...process.env, ...env, ...more.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child.once('error', (error) => (this.#log += error.message));
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (chunk: string) => {
        this.#log = (this.#log + chunk).slice(-LOG_CHARACTERS);
      });
    }
  }

  /** The end of its output. */
  get log(): string {
    return this.#log;
  }

  /** @throws {Error} with the end of its output, if the program has ended */
  usage(): Usage {
    this.requireRunning();
    const folder = `/proc/${this.#child.pid}`;
    // The name in parentheses may contain spaces.
    const [, fields = ''] = readFileSync(`${folder}/stat`, 'utf8').split(/\) (?!.*\) )/);
    const [user, system] = fields.split(' ').slice(11, 13).map(Number);
    const status = readFileSync(`${folder}/status`, 'utf8');
    return {
      cpuMs: ((user ?? Number.NaN) + (system ?? Number.NaN)) * TICK_MS,
      rssMb: kilobytes(status, 'VmRSS') / 1024,
      peakRssMb: kilobytes(status, 'VmHWM') / 1024,
    };
  }

  /** @throws {Error} with the end of its output, if the program has ended */
  requireRunning(): void {
    const { exitCode, signalCode, pid, spawnfile } = this.#child;
    if (pid !== undefined && exitCode === null && signalCode === null) return;
    throw new Error(`${spawnfile} ended with ${exitCode ?? signalCode}: ${this.#log}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { exitCode, signalCode, pid } = this.#child;
    if (pid === undefined || exitCode !== null || signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }
}
