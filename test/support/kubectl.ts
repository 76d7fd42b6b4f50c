import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

/** What a command printed, and how it ended. */
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
    // A program that does not read its input to the end is no fault of the test.
    this.child.stdin?.on('error', () => undefined);
    this.child.stdin?.end(stdin);
    this.child.stdout?.on('data', (chunk) => this.#heard('stdout', String(chunk)));
    this.child.stderr?.on('data', (chunk) => this.#heard('stderr', String(chunk)));
    this.#ended = once(this.child, 'close').finally(() => this.#wake());
  }

  /** Both streams, in no order. */
  get output(): string {
    return this.stdout + this.stderr;
  }

  async ended(): Promise<Ended> {
    await this.#ended;
    return { code: this.child.exitCode, stdout: this.stdout, stderr: this.stderr };
  }

  /** Resolves once `pattern` is in what was printed; rejects if the program ends without. */
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

  #heard(stream: 'stdout' | 'stderr', text: string): void {
    this[stream] += text;
    this.#wake();
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }
}

/** `$KUBECTL`, or the kubectl of the PATH; undefined if there is none. */
export function findKubectl(): string | undefined {
  const { KUBECTL, PATH = '' } = process.env;
  const candidates = KUBECTL
    ? [KUBECTL]
    : PATH.split(delimiter).map((folder) => join(folder, 'kubectl'));
  return candidates.find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

export interface KubectlOptions {
  /** Path of the program. */
  readonly program: string;
  readonly kubeconfig: string;
  /** What `-n` is unless the arguments say otherwise. */
  readonly namespace: string;
}

/** Stock kubectl in a home of its own: no cache, no preferences and no plugin of this machine. */
export class Kubectl {
  readonly #options: KubectlOptions;
  readonly #home: string = mkdtempSync(join(tmpdir(), 'kubectl-home-'));

  constructor(options: KubectlOptions) {
    this.#options = options;
  }

  close(): void {
    rmSync(this.#home, { recursive: true, force: true });
  }

  /** Starts a command that goes on, such as `get --watch`. */
  start(
    args: readonly string[],
    { stdin, environment = {} }: { stdin?: string; environment?: Record<string, string> } = {},
  ): Program {
    const { program, kubeconfig, namespace } = this.#options;
    const inherited = { PATH: process.env['PATH'] ?? '', HOME: this.#home };
    return new Program(
      program,
      [`--kubeconfig=${kubeconfig}`, `--namespace=${namespace}`, ...args],
      { ...inherited, ...environment },
      stdin,
    );
  }

  /** Runs a command that must succeed; what it printed to standard output. */
  async run(...args: readonly string[]): Promise<string> {
    return success(args, await this.start(args).ended());
  }

  /** `run` with an object, as JSON, on standard input: `apply -f -`. */
  async send(object: unknown, ...args: readonly string[]): Promise<string> {
    const ended = await this.start(args, { stdin: JSON.stringify(object) }).ended();
    return success(args, ended);
  }

  /** `send` that must fail with exit code 1; what it printed to standard error. */
  async refused(object: unknown, ...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.start(args, {
      stdin: JSON.stringify(object),
    }).ended();
    assert.equal(code, 1, stdout + stderr);
    return stderr;
  }
}

function success(args: readonly string[], { code, stdout, stderr }: Ended): string {
  assert.equal(code, 0, `kubectl ${args.join(' ')}\n${stdout}${stderr}`);
  return stdout;
}

/** The cells of a table that kubectl printed, each age as `AGE`. */
export function cellsOf(output: string): string[][] {
  return output
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/).map((cell) => cell.replace(/^(\d+[smhd])+$/, 'AGE')));
}
