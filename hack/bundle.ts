/**
 * Writes dist/image/, or the folder that is given: what a container image needs besides Node.js. The
 * program and all it depends on are one file, which starts faster and holds less than a tree of
 * packages does. Beside it are the licences of what is in it, a list of that for programs (an SBOM),
 * and where the places come from that its log lines name.
 *
 * The same tree gives the same bytes, wherever it is. `$REVISION`, the commit, and
 * `$SOURCE_DATE_EPOCH`, its time, are noted where they are given.
 */
import { build } from 'esbuild';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { SourceMapPayload } from 'node:module';
import { join, resolve } from 'node:path';
import { CALLERS_SUFFIX } from '../src/cli/logs/caller.ts';
import { callersIn } from './callers.ts';
import { licences } from './image/licences.ts';
import { bundledPackages } from './image/packages.ts';
import { sbom } from './image/sbom.ts';

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
const packages = bundledPackages(root, metafile);
const {
  name,
  version,
  license,
  dependencies,
}: {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly dependencies: Readonly<Record<string, string>>;
} = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const { REVISION: gitHead, SOURCE_DATE_EPOCH: sourceDateEpoch } = process.env;
const program = { name, version, license };
const imports = Object.keys(dependencies);
const made = sourceDateEpoch ? Number(sourceDateEpoch) : undefined;
const manifest = { ...program, type: 'module', ...(gitHead ? { gitHead } : {}) };
writeFileSync(join(image, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
writeFileSync(join(image, 'THIRD-PARTY-LICENSES'), licences(root, packages));
writeFileSync(
  join(image, 'sbom.cdx.json'),
  sbom(packages, { ...program, imports, sourceDateEpoch: made }),
);
for (const path of ['LICENSE', 'crds', 'examples', 'hack/deploy']) {
  cpSync(join(root, path), join(image, path), { recursive: true });
}
