import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { COMPILE_CACHE } from './compile-cache.ts';

/** Output and exit status of a command. */
export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A process whose output can be waited for. */
export class Program {
  readonly child: ChildProcess;
  stdout = '';
  stderr = '';
  readonly #ended: Promise<unknown>;
  readonly #waiting = new Set<() => void>();

  constructor(
    command: string,
    args: readonly string[],
    environment: Readonly<Record<string, string>>,
    stdin?: string,
  ) {
    this.child = spawn(command, args, { env: environment, stdio: 'pipe' });
    // A program may exit before it has read all its input.
    this.child.stdin?.on('error', () => undefined);
    this.child.stdin?.end(stdin);
    this.child.stdout?.on('data', (chunk) => this.#received('stdout', String(chunk)));
    this.child.stderr?.on('data', (chunk) => this.#received('stderr', String(chunk)));
    this.#ended = once(this.child, 'close').finally(() => this.#wake());
  }

  /** Output of both streams, in any order. */
  get output(): string {
    return this.stdout + this.stderr;
  }

  async ended(): Promise<Ended> {
    await this.#ended;
    return { code: this.child.exitCode, stdout: this.stdout, stderr: this.stderr };
  }

  /** Resolves when the output matches `pattern`. Rejects if the program ends first. */
  async printed(pattern: RegExp): Promise<void> {
    while (!pattern.test(this.output)) {
      const { exitCode, signalCode } = this.child;
      assert.ok(
        exitCode === null && signalCode === null,
        `it ended without printing ${pattern}:\n${this.output}`,
      );
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
  }

  #received(stream: 'stdout' | 'stderr', text: string): void {
    this[stream] += text;
    this.#wake();
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }
}

/** Kills running programs and waits for their end. */
export async function killAll(programs: readonly Program[]): Promise<void> {
  for (const { child } of programs) child.kill('SIGKILL');
  await Promise.all(programs.map((program) => program.ended()));
}

const MAIN = join(import.meta.dirname, '../../src/cli/main.ts');

/**
 * Starts our command line in a process without home directory that inherits only PATH, so that it depends
 * only on its arguments and `environment`. Uses the V8 compile cache.
 */
export function crdController(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  stdin?: string,
): Program {
  const all = { ...bareEnvironment(), ...environment };
  return new Program(process.execPath, [MAIN, ...args], all, stdin);
}

/** Returns the environment of a process that inherits only PATH. */
export function bareEnvironment(): Record<string, string> {
  return {
    PATH: process.env['PATH'] ?? '',
    HOME: '/nonexistent',
    NODE_COMPILE_CACHE: COMPILE_CACHE,
  };
}

/** Starts our command line with `redirections` of a shell: `2>/dev/full`. */
export function crdControllerTo(redirections: string, args: readonly string[]): Program {
  const command = ['-c', `exec "$@" ${redirections}`, 'sh', process.execPath, MAIN, ...args];
  return new Program('/bin/sh', command, bareEnvironment());
}
