import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { COMPILE_CACHE } from './compile-cache.ts';
import { Program } from './program.ts';

const ROOT = join(import.meta.dirname, '../..');

/** A change of the source in another release. */
export interface Change {
  /** Path of the source file in the repository. */
  readonly file: string;
  /** Text that occurs once in the file. */
  readonly from: string;
  readonly to: string;
}

/** A release of the program, bundled as in its image. */
export class Release {
  readonly version: string;
  readonly #folder: string;

  private constructor(version: string, folder: string) {
    this.version = version;
    this.#folder = folder;
  }

  /** Bundles this checkout with changes and another version. */
  static async bundle(version: string, changes: readonly Change[] = []): Promise<Release> {
    const folder = await mkdtemp(join(tmpdir(), 'crd-controller-release-'));
    await mkdir(join(folder, 'app'));
    await build({
      absWorkingDir: ROOT,
      entryPoints: ['src/cli/main.ts'],
      outfile: join(folder, 'app/crd-controller.mjs'),
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node22.19',
      minify: true,
      keepNames: true,
      legalComments: 'none',
      logLevel: 'warning',
      banner: {
        js: `import { createRequire } from 'node:module';\nconst require = createRequire(import.meta.url);`,
      },
      plugins: changes.map((change) => ({
        name: change.file,
        setup(bundling) {
          const filter = new RegExp(`${change.file.replaceAll('.', '\\.')}$`);
          bundling.onLoad({ filter }, async ({ path }) => ({
            loader: 'ts',
            contents: changed(await readFile(path, 'utf8'), change),
          }));
        },
      })),
    });
    const manifest: object = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
    await writeFile(join(folder, 'app/package.json'), JSON.stringify({ ...manifest, version }));
    await cp(join(ROOT, 'crds'), join(folder, 'app/crds'), { recursive: true });
    return new Release(version, folder);
  }

  run(args: readonly string[], environment: Readonly<Record<string, string>> = {}): Program {
    const bundle = join(this.#folder, 'app/crd-controller.mjs');
    return new Program(process.execPath, [bundle, ...args], {
      PATH: process.env['PATH'] ?? '',
      HOME: '/nonexistent',
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      ...environment,
    });
  }

  remove(): Promise<void> {
    return rm(this.#folder, { recursive: true, force: true });
  }
}

function changed(text: string, { file, from, to }: Change): string {
  if (text.split(from).length !== 2) throw new Error(`${file} does not have ${from} once`);
  return text.replace(from, () => to);
}
