import { execFile, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Lines, LogCall } from './call.ts';

/** Returns why the program in this folder cannot be built on this machine; undefined if it can. */
export async function whyNoKlog(): Promise<string | undefined> {
  try {
    await go('mod', 'download');
    return undefined;
  } catch (error) {
    return `cannot download its Go modules: ${error instanceof Error ? error.message.trim() : String(error)}`;
  }
}

/** Builds the program, and removes it after `use`. */
export async function withRealKlog<T>(use: (klog: RealKlog) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'klog-'));
  try {
    const program = join(folder, 'klog');
    await go('build', '-trimpath', '-o', program, '.');
    return await use(new RealKlog(program));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function go(...args: readonly string[]): Promise<void> {
  await promisify(execFile)('go', args, {
    cwd: import.meta.dirname,
    env: { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-buildvcs=false', GOWORK: 'off' },
  });
}

/** Runs the program. */
export class RealKlog {
  readonly #program: string;

  constructor(program: string) {
    this.#program = program;
  }

  /** Returns klog's lines for `calls`, and the process id in them. */
  async lines(calls: readonly LogCall[]): Promise<{ pid: number; lines: readonly Lines[] }> {
    const input = calls.map((call) => `${JSON.stringify(call)}\n`).join('');
    const [head, ...answers] = (await this.#run([], input)).split('\n').filter(Boolean);
    const { pid }: { pid: number } = JSON.parse(head ?? '{}');
    const lines = answers.map((answer): Lines => JSON.parse(answer));
    if (lines.length !== calls.length)
      throw new Error(`${lines.length} answers to ${calls.length}`);
    return { pid, lines };
  }

  /** Returns the code points that Go does not escape in a quoted string, and its version of Unicode. */
  async printable(): Promise<{
    readonly unicode: string;
    readonly ranges: readonly (readonly [first: number, last: number])[];
  }> {
    return JSON.parse(await this.#run(['printable'], ''));
  }

  async #run(args: readonly string[], input: string): Promise<string> {
    const child = spawn(this.#program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    child.stdin.on('error', () => undefined).end(input);
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
    return new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code) => {
        if (code === 0) resolve(output);
        else reject(new Error(`klog ended with ${code}`));
      });
    });
  }
}
