import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { basename } from 'node:path';

/** Retained characters of a program's output. */
const LOG_CHARACTERS = 16_000;

/**
 * Runs the program next to a subshell that waits for the end of the pipe on descriptor 3. The kernel closes the
 * pipe when this process ends in any way, including SIGKILL.
 */
const SCRIPT = '(read -r _ <&3; kill -9 $$) & exec "$@" 3<&-';

/**
 * A program that ends with this process. It runs in its own process group, so that Ctrl-C does not reach it and
 * this process decides about the order. While the subshell is in that group, its id is not reused, so a kill
 * cannot hit another process.
 */
export class ChildProcess {
  readonly #name: string;
  readonly #child: ReturnType<typeof spawn>;
  readonly #ended: Promise<void>;
  #state: 'running' | 'killed' | 'ended' = 'running';
  #log = '';

  constructor(path: string, args: readonly string[]) {
    this.#name = basename(path);
    this.#child = spawn('/bin/sh', ['-c', SCRIPT, this.#name, path, ...args], {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    });
    this.#ended = this.#end();
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
  requireRunning(): void {
    if (this.#state !== 'running') throw new Error(`${this.#name} has ended:\n${this.#log}`);
  }

  /** Sends SIGTERM, and SIGKILL after `withinMs`; resolves when the program has ended. */
  async terminate(withinMs: number): Promise<void> {
    const { pid } = this.#child;
    if (this.#state === 'running' && pid !== undefined) process.kill(pid, 'SIGTERM');
    const timeout = setTimeout(() => void this.kill(), withinMs);
    await this.#ended;
    clearTimeout(timeout);
  }

  /** Sends SIGKILL; resolves when the program has ended. */
  async kill(): Promise<void> {
    if (this.#state === 'running') this.#killGroup();
    await this.#ended;
  }

  async #end(): Promise<void> {
    try {
      await once(this.#child, 'exit');
    } catch (error) {
      this.#log = `cannot start: ${String(error)}`;
    }
    // The program ended by itself; the subshell still runs.
    if (this.#state === 'running') this.#killGroup();
    this.#state = 'ended';
  }

  #killGroup(): void {
    this.#state = 'killed';
    const { pid } = this.#child;
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  }
}
