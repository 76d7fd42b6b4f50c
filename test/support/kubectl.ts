import assert from 'node:assert/strict';
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { Ended } from './program.ts';
import { Program } from './program.ts';

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

/** It ends before it has used much memory: collecting garbage would be a quarter of its work. */
export const WITHOUT_COLLECTION: Readonly<Record<string, string>> = { GOGC: 'off' };

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
    const inherited = {
      PATH: process.env['PATH'] ?? '',
      HOME: this.#home,
      ...WITHOUT_COLLECTION,
    };
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
