import assert from 'node:assert/strict';
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { Ended } from './program.ts';
import { Program } from './program.ts';

/** Returns the path of `$KUBECTL` or of kubectl in the PATH, or undefined. */
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

/** Disables garbage collection, which takes a quarter of the time of a short process. */
export const WITHOUT_COLLECTION: Readonly<Record<string, string>> = { GOGC: 'off' };

export interface KubectlOptions {
  /** Path of kubectl. */
  readonly program: string;
  readonly kubeconfig: string;
  /** Default namespace. */
  readonly namespace: string;
}

/** The standard kubectl with its own home, so without cache, preferences and plugins of this machine. */
export class Kubectl {
  readonly #options: KubectlOptions;
  readonly #home: string = mkdtempSync(join(tmpdir(), 'kubectl-home-'));

  constructor(options: KubectlOptions) {
    this.#options = options;
  }

  close(): void {
    rmSync(this.#home, { recursive: true, force: true });
  }

  /** Starts a command that does not end by itself, such as `get --watch`. */
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

  /** Runs a command that must succeed. Returns its standard output. */
  async run(...args: readonly string[]): Promise<string> {
    return success(args, await this.start(args).ended());
  }

  /** Runs a command with an object as JSON on standard input: `apply -f -`. */
  async send(object: unknown, ...args: readonly string[]): Promise<string> {
    const ended = await this.start(args, { stdin: JSON.stringify(object) }).ended();
    return success(args, ended);
  }

  /** Like `send`, but must fail with exit code 1. Returns its standard error. */
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

/** Returns the cells of a table of kubectl, with ages replaced by `AGE`. */
export function cellsOf(output: string): string[][] {
  return output
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/).map((cell) => cell.replace(/^(\d+[smhd])+$/, 'AGE')));
}
