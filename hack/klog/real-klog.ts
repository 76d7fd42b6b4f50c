import { GoProgram, whyNoProgram } from '../go-program.ts';
import type { Lines, LogCall } from './call.ts';

/** Returns why the program in this folder cannot be built on this machine; undefined if it can. */
export const whyNoKlog = (): Promise<string | undefined> => whyNoProgram(import.meta.dirname);

/** Builds the program, and removes it after `use`. */
export async function withRealKlog<T>(use: (klog: RealKlog) => Promise<T>): Promise<T> {
  const program = await GoProgram.build(import.meta.dirname);
  try {
    return await use(new RealKlog(program));
  } finally {
    await program.remove();
  }
}

/** Runs the program. */
export class RealKlog {
  readonly #program: GoProgram;

  constructor(program: GoProgram) {
    this.#program = program;
  }

  /** Returns klog's lines for `calls`, and the process id in them. */
  async lines(calls: readonly LogCall[]): Promise<{ pid: number; lines: readonly Lines[] }> {
    const input = calls.map((call) => `${JSON.stringify(call)}\n`).join('');
    const [head, ...answers] = (await this.#program.run([], input)).split('\n').filter(Boolean);
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
    return JSON.parse(await this.#program.run(['printable'], ''));
  }
}
