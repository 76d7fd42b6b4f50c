import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';

/** Returns why the Go program in a folder cannot be built on this machine; undefined if it can. */
export async function whyNoProgram(source: string): Promise<string | undefined> {
  try {
    await go(source, 'mod', 'download');
    return undefined;
  } catch (error) {
    return `cannot download its Go modules: ${error instanceof Error ? error.message.trim() : String(error)}`;
  }
}

/** A Go program that was built from its folder, and answers on standard output. The first build takes minutes. */
export class GoProgram {
  readonly #name: string;
  readonly #folder: string;

  private constructor(name: string, folder: string) {
    this.#name = name;
    this.#folder = folder;
  }

  static async build(source: string): Promise<GoProgram> {
    const name = basename(source);
    const folder = await mkdtemp(join(tmpdir(), `${name}-`));
    const program = new GoProgram(name, folder);
    try {
      await go(source, 'build', '-trimpath', '-o', program.#path, '.');
    } catch (error) {
      await program.remove();
      throw error;
    }
    return program;
  }

  /** Returns the output for an input. @throws {Error} if the program fails */
  async run(args: readonly string[], input: string): Promise<string> {
    const child = spawn(this.#path, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    // A program that ends early does not read its input; its exit code says why.
    child.stdin.on('error', () => undefined).end(input);
    const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
    if (code !== 0) throw new Error(`${this.#name} ended with ${code}`);
    return output;
  }

  async remove(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }

  get #path(): string {
    return join(this.#folder, this.#name);
  }
}

async function go(source: string, ...args: readonly string[]): Promise<void> {
  await promisify(execFile)('go', args, {
    cwd: source,
    env: { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-buildvcs=false', GOWORK: 'off' },
  });
}
