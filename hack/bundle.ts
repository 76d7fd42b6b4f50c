/**
 * Writes dist/image/, or the folder that is given: what a container image needs besides Node.js. The
 * program and all it depends on are one file, which starts faster and holds less than a tree of
 * packages does. Beside it are the licences of what is in it, and where the places come from that its
 * log lines name.
 */
import { build } from 'esbuild';
import type { Metafile } from 'esbuild';
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { SourceMapPayload } from 'node:module';
import { join, resolve } from 'node:path';
import { CALLERS_SUFFIX } from '../src/cli/caller.ts';
import { callersIn } from './callers.ts';

const root = join(import.meta.dirname, '..');
const [given] = process.argv.slice(2);
const image = resolve(given ?? join(root, 'dist/image'));
const bundle = join(image, 'crd-controller.mjs');

// What was given may hold more than we put there.
if (given === undefined) rmSync(image, { recursive: true, force: true });
mkdirSync(image, { recursive: true });
const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: ['src/cli/main.ts'],
  outfile: bundle,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node22.19',
  minify: true,
  // Names of classes and functions show in logs and stack traces.
  keepNames: true,
  sourcemap: true,
  sourcesContent: false,
  legalComments: 'none',
  metafile: true,
  logLevel: 'warning',
  // What CommonJS packages call; an ES module has none of its own.
  banner: {
    js: `import { createRequire } from 'node:module';\nconst require = createRequire(import.meta.url);`,
  },
});
const map: SourceMapPayload = JSON.parse(readFileSync(`${bundle}.map`, 'utf8'));
const callers = callersIn(readFileSync(bundle, 'utf8'), map);
writeFileSync(`${bundle}${CALLERS_SUFFIX}`, JSON.stringify(callers));
writeFileSync(join(image, 'THIRD-PARTY-LICENSES'), licences(metafile));
for (const path of ['LICENSE', 'package.json', 'crds', 'examples', 'hack/deploy']) {
  cpSync(join(root, path), join(image, path), { recursive: true });
}

/** One section for each package in the bundle. */
function licences({ inputs }: Metafile): string {
  const folders = new Set(
    Object.keys(inputs).flatMap((path) => {
      const [folder] = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? [];
      return folder === undefined ? [] : [join(root, folder)];
    }),
  );
  return [...folders]
    .toSorted()
    .map(section)
    .join(`\n${'-'.repeat(78)}\n\n`);
}

function section(folder: string): string {
  const manifest: unknown = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const { name, version, license } = manifest as Record<'name' | 'version' | 'license', unknown>;
  const texts = globSync('{licen[cs]e,LICEN[CS]E,notice,NOTICE}*', { cwd: folder })
    .toSorted()
    .map((file) => readFileSync(join(folder, file), 'utf8').trim());
  return `${[`${String(name)} ${String(version)} (${String(license)})`, ...texts].join('\n\n')}\n`;
}
