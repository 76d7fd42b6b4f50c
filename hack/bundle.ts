/**
 * Writes the content of the container image to dist/image/, or to the given folder. The program and its
 * dependencies are one file, which starts faster and contains less code than a tree of packages. The folder
 * also contains the licences of the bundled packages, an SBOM, and the source locations of log lines.
 *
 * The output is reproducible and does not depend on the folder. `$REVISION`, the commit, and
 * `$SOURCE_DATE_EPOCH`, its time, are recorded if set.
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

// A given folder may contain other files.
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
  // Logs and stack traces contain names of classes and functions.
  keepNames: true,
  sourcemap: true,
  sourcesContent: false,
  legalComments: 'none',
  metafile: true,
  logLevel: 'warning',
  // CommonJS packages call `require`, which an ES module does not have.
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
