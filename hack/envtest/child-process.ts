import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { basename } from 'node:path';

/** What is kept of a program's output. */
const LOG_CHARACTERS = 16_000;

/**
 * Runs the program beside a watcher that waits for the end of the pipe on descriptor 3. The kernel closes the pipe
 * when this process ends, also after SIGKILL.
 */
const SCRIPT = '(read -r _ <&3; kill -9 $$) & exec "$@" 3<&-';

/**
 * A program that does not outlive this process. It runs in its own process group, so that Ctrl-C does not reach it and
 * this process decides the order of the end. While the watcher is in the group, the kernel does not reuse
 * its number, so we never kill another process.
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

  /** The end of what it has printed. */
  get log(): string {
    return this.#log;
  }

  /** @throws {Error} with the program's last words, if it has ended */
  requireRunning(): void {
    if (this.#state !== 'running') throw new Error(`${this.#name} has ended:\n${this.#log}`);
  }

  /** Asks it to end (SIGTERM) and ends it if it has not after `withinMs`; resolves when it is gone. */
  async terminate(withinMs: number): Promise<void> {
    const { pid } = this.#child;
    if (this.#state === 'running' && pid !== undefined) process.kill(pid, 'SIGTERM');
    const impatience = setTimeout(() => void this.kill(), withinMs);
    await this.#ended;
    clearTimeout(impatience);
  }

  /** Ends it at once; resolves when it is gone. Its data is not worth a farewell. */
  async kill(): Promise<void> {
    if (this.#state === 'running') this.#killGroup();
    await this.#ended;
  }

  async #end(): Promise<void> {
    try {
      await once(this.#child, 'exit');
    } catch (error) {
      this.#log = `cannot be started: ${String(error)}`;
    }
    // It ended by itself: the watchman is still there.
    if (this.#state === 'running') this.#killGroup();
    this.#state = 'ended';
  }

  #killGroup(): void {
    this.#state = 'killed';
    const { pid } = this.#child;
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  }
}
