import { execFile } from 'node:child_process';
import { existsSync, globSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** Errors of npm if there is no network or no registry. */
const UNREACHABLE =
  /\b(?:EAI_AGAIN|ECONNREFUSED|ECONNRESET|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|ENOTCACHED|ETIMEDOUT)\b/;

/** The packages of npm with the programs of other JavaScript runtimes and test runners. */
export class JavaScriptRuntimes {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Installs the packages once, into a folder outside the repository. Their install scripts do not run.
   *
   * @returns why they are not available, if npm cannot reach a registry
   */
  static async install(
    versions: Readonly<Record<string, string>>,
  ): Promise<JavaScriptRuntimes | string> {
    const name = Object.entries(versions)
      .map(([of, version]) => `${of}-${version}`)
      .join('_');
    const cache = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
    const folder = join(cache, 'crd-controller/javascript', name);
    if (existsSync(folder)) return new JavaScriptRuntimes(folder);
    const { node = '', ...others } = versions;
    const dependencies = {
      ...others,
      node: `npm:node-${process.platform}-${process.arch}@${node}`,
    };
    const building = `${folder}.${process.pid}`;
    mkdirSync(building, { recursive: true });
    writeFileSync(join(building, 'package.json'), JSON.stringify({ private: true, dependencies }));
    const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
    try {
      const args = ['install', ...flags, '--fetch-retries=0'];
      await promisify(execFile)('npm', args, { cwd: building });
      renameSync(building, folder);
    } catch (error) {
      rmSync(building, { recursive: true });
      const { stderr = '' } = error as { readonly stderr?: string };
      const [code] = UNREACHABLE.exec(stderr) ?? [];
      if (code === undefined) throw error;
      return `SKIPPED: npm cannot install other JavaScript runtimes and test runners: ${code}`;
    }
    return new JavaScriptRuntimes(folder);
  }

  /** The folder with the packages. */
  get modules(): string {
    return join(this.#folder, 'node_modules');
  }

  /** The executable of each runtime. Those in `.bin` are scripts, which do not pass on signals. */
  get executables(): Readonly<Record<'node' | 'bun' | 'deno', string>> {
    return {
      node: this.#file('node/bin/node'),
      bun: this.#file('@oven/bun-*/bin/bun'),
      deno: this.#file('@deno/*/deno'),
    };
  }

  #file(pattern: string): string {
    const [path] = globSync(pattern, { cwd: this.modules });
    if (path === undefined) throw new Error(`${this.modules} has no ${pattern}`);
    return join(this.modules, path);
  }
}
