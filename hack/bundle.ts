/**
 * Writes the content of the container image to dist/image/, or to the given folder. The program and its
 * dependencies are one file, which starts faster and contains less code than a tree of packages;
 * crd-controller.mjs loads it. The folder also contains the licences of the bundled packages, an SBOM, and the
 * source locations of log lines. `hack/image/code-cache.ts` adds a code cache.
 *
 * The output is reproducible and does not depend on the folder. `$REVISION`, the commit, and
 * `$SOURCE_DATE_EPOCH`, its time, are recorded if set.
 */
import { build } from 'esbuild';
import type { BuildOptions, Plugin } from 'esbuild';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { SourceMapPayload } from 'node:module';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { DESCRIPTIONS } from '../src/apiserver/generated/descriptions.ts';
import { CALLERS_SUFFIX } from '../src/cli/logs/caller.ts';
import { clientNodeBundle } from './client-node-bundle.ts';
import { callersIn } from './callers.ts';
import { generatedModules } from './generated-modules.ts';
import { builtAssets } from './page-assets.ts';
import { licences } from './image/licences.ts';
import { PROGRAM_ENCODING, PROGRAM_FILE, WRAPPER } from './image/program.ts';
import { bundledPackages } from './image/packages.ts';
import { sbom } from './image/sbom.ts';

const root = join(import.meta.dirname, '..');
const [given] = parseArgs({ allowPositionals: true }).positionals;
const image = resolve(given ?? join(root, 'dist/image'));
const program = join(image, PROGRAM_FILE);

// A given folder may contain other files.
if (given === undefined) rmSync(image, { recursive: true, force: true });
mkdirSync(image, { recursive: true });
const page = builtAssets();
// The list of licences names what the bundle of client-node imports.
const generated = generatedModules({
  page: page.code,
  clientNode: await clientNodeBundle(['rfc4648']),
});
/**
 * The packages of the command line create a segmenter when they are loaded. It takes milliseconds and 2 MiB, and only the help
 * needs it.
 */
const lazySegmenter: Plugin = {
  name: 'lazy-segmenter',
  setup: (builder) =>
    builder.onLoad({ filter: /[\\/]string-width[\\/]index\.js$/ }, ({ path }) => {
      const code = readFileSync(path, 'utf8');
      const lazy = code.replace(
        'const segmenter = new Intl.Segmenter();',
        'let made; const segmenter = { segment: (text) => (made ??= new Intl.Segmenter()).segment(text) };',
      );
      if (lazy === code) throw new Error(`${path} creates its segmenter in another way`);
      return { contents: lazy, loader: 'js' };
    }),
};
/** Descriptions of built-in types, which only OpenAPI documents need: a file that is read when one is requested. */
const DESCRIPTIONS_FILE = 'descriptions.json';
const separateDescriptions: Plugin = {
  name: 'separate-descriptions',
  setup: (builder) =>
    builder.onLoad({ filter: /[\\/]generated[\\/]descriptions\.ts$/ }, () => {
      writeFileSync(join(image, DESCRIPTIONS_FILE), DESCRIPTIONS);
      const contents = `import { readFileSync } from 'node:fs';
        export const DESCRIPTIONS = readFileSync(new URL('${DESCRIPTIONS_FILE}', import.meta.url), 'utf8');`;
      return { contents, loader: 'js' };
    }),
};
/**
 * Identifiers are not minified, because logs, stack traces and profiles contain names of classes and functions. The option
 * `keepNames` would define them at run time, for a closure at each of its calls.
 */
const common = {
  absWorkingDir: root,
  bundle: true,
  platform: 'node',
  target: 'node22.19',
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'none',
  logLevel: 'warning',
} satisfies BuildOptions;
await build({
  ...common,
  entryPoints: ['hack/image/start.ts'],
  outfile: join(image, 'crd-controller.mjs'),
  format: 'esm',
  // The tsconfig.json of this folder extends one that the build context of the image does not contain.
  tsconfigRaw: '{}',
});
const { metafile } = await build({
  ...common,
  entryPoints: ['src/cli/crd-controller.ts'],
  outfile: program,
  format: 'cjs',
  sourcemap: 'external',
  sourcesContent: false,
  metafile: true,
  plugins: [generated, lazySegmenter, separateDescriptions],
  define: { 'import.meta.url': 'importMetaUrl' },
  banner: { js: WRAPPER.start },
  footer: { js: WRAPPER.end },
});
const code = readFileSync(program, 'utf8');
const [wide] = /[^\0-\xff]/.exec(code) ?? [];
if (wide !== undefined) {
  // One such character doubles the memory of the source. esbuild escapes them in strings.
  throw new Error(
    `A regular expression of the bundle contains the character ${wide}: write it as an escape`,
  );
}
writeFileSync(program, code, PROGRAM_ENCODING);
const map: SourceMapPayload = JSON.parse(readFileSync(`${program}.map`, 'utf8'));
const callers = callersIn(code, map);
writeFileSync(`${program}${CALLERS_SUFFIX}`, JSON.stringify(callers));
const outputs = { ...metafile.outputs, ...page.metafile.outputs };
const packages = bundledPackages(root, { ...metafile, outputs });
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
const about = { name, version, license };
const ofPage = bundledPackages(root, page.metafile).map(({ name: ofPackage }) => ofPackage);
const imports = [...Object.keys(dependencies), ...ofPage];
const made = sourceDateEpoch ? Number(sourceDateEpoch) : undefined;
const manifest = { ...about, type: 'module', ...(gitHead ? { gitHead } : {}) };
writeFileSync(join(image, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
writeFileSync(join(image, 'THIRD-PARTY-LICENSES'), licences(root, packages));
writeFileSync(
  join(image, 'sbom.cdx.json'),
  sbom(packages, { ...about, imports, sourceDateEpoch: made }),
);
for (const path of ['LICENSE', 'crds', 'examples', 'hack/deploy']) {
  cpSync(join(root, path), join(image, path), { recursive: true });
}
