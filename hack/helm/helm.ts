import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';

/** A release to render. */
export interface Release {
  readonly name: string;
  readonly namespace: string;
  /** Values that replace those of the chart. */
  readonly values?: object;
}

export interface Rendered {
  /** The rendered templates by their paths, which start with the name of the chart. */
  readonly files?: Readonly<Record<string, string>>;
  /** Why they could not be rendered, such as a value that the schema rejects. */
  readonly error?: string;
}

interface Answer {
  readonly version: string;
  /** Warnings and errors of `helm lint`. */
  readonly messages: readonly string[];
  readonly rendered: readonly Rendered[] | null;
}

/** Returns why the program in this folder cannot be built on this machine; undefined if it can. */
export async function whyNoHelm(): Promise<string | undefined> {
  try {
    await go('mod', 'download');
    return undefined;
  } catch (error) {
    return `cannot download its Go modules: ${error instanceof Error ? error.message.trim() : String(error)}`;
  }
}

/** Helm's code that lints and renders charts, as a program built from its Go module. The first build takes minutes. */
export class Helm {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async build(): Promise<Helm> {
    const folder = await mkdtemp(join(tmpdir(), 'helm-'));
    await go('build', '-trimpath', '-o', join(folder, 'helm'), '.');
    return new Helm(folder);
  }

  /** Returns the warnings and errors of `helm lint` about the chart in a folder. */
  async lint(chart: string): Promise<readonly string[]> {
    const { messages } = await this.#run({ chart, lint: true });
    return messages;
  }

  /** Renders releases of the chart in a folder, or of a packaged chart. */
  async render(chart: string, ...releases: readonly Release[]): Promise<readonly Rendered[]> {
    const { rendered } = await this.#run({ chart, releases });
    return rendered ?? [];
  }

  async remove(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #run(request: object): Promise<Answer> {
    const child = spawn(join(this.#folder, 'helm'), [], { stdio: ['pipe', 'pipe', 'inherit'] });
    child.stdin.end(JSON.stringify(request));
    const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
    if (code !== 0) throw new Error(`The program ended with ${code}`);
    return JSON.parse(output) as Answer;
  }
}

async function go(...args: readonly string[]): Promise<void> {
  await promisify(execFile)('go', args, {
    cwd: import.meta.dirname,
    env: { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-buildvcs=false', GOWORK: 'off' },
  });
}
