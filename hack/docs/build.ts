/**
 * Builds the documentation site into dist/docs: the guides, the API reference of every entry point, and llms.txt. Fails
 * on a broken link and on an export without documentation.
 *
 * typedoc needs TypeScript 6, so it is a package of its own in this folder. It is installed at the first run.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CHAPTERS } from '../../test/support/book.ts';

const ROOT = join(import.meta.dirname, '../..');
const OUT = join(ROOT, 'dist/docs');

function run(program: string, args: readonly string[], cwd: string): void {
  const { status, error } = spawnSync(program, args, { cwd, stdio: 'inherit' });
  if (error) throw error;
  if (status !== 0) throw new Error(`${program} ${args[0]} failed with exit code ${status}`);
}

if (!existsSync(join(import.meta.dirname, 'node_modules/typedoc'))) {
  run('npm', ['ci', '--no-audit', '--no-fund'], import.meta.dirname);
}

interface Manifest {
  readonly exports: Readonly<Record<string, unknown>>;
}
const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Manifest;
const entryPoints = Object.keys(exports)
  .filter((path) => !path.endsWith('.json'))
  .map((path) => join(ROOT, 'src', path === '.' ? 'index.ts' : `${path.slice(2)}.ts`));

rmSync(OUT, { recursive: true, force: true });
const typedoc = join(import.meta.dirname, 'node_modules/typedoc/bin/typedoc');
const options = ['--options', join(import.meta.dirname, 'typedoc.json'), '--out', OUT];
run(process.execPath, [typedoc, ...options, ...entryPoints], ROOT);

/** Links of the README's table of guides, in its order. */
const guides = Array.from(
  readFileSync(join(ROOT, 'README.md'), 'utf8').matchAll(/\[([^\]]+)\]\((docs\/[\w/-]+\.md)\)/g),
  ([, title = '', path = '']) => ({ title, path }),
);
const text = (path: string) => readFileSync(join(ROOT, path), 'utf8').trim();
/** The book comes first, with its chapters. */
const book = ['README.md', ...CHAPTERS].map((name) => {
  const path = `docs/book/${name}`;
  return { title: /^# (.*)$/m.exec(text(path))?.[1] ?? '', path };
});
const pages = new Map([...book, ...guides].map(({ title, path }) => [path, title]));
const index = [
  '# crd-controller',
  '',
  '> A Kubernetes controller in TypeScript, and the library it is built on: client-go and controller-runtime for Node.js.',
  '',
  '## Guides',
  '',
  ...Array.from(pages, ([path, title]) => {
    const [, summary = ''] =
      /^(After this (?:page|chapter|book) .*?\.)(?:\s|$)/ms.exec(text(path)) ?? [];
    return `- [${title}](${path}): ${summary.replaceAll(/\s+/g, ' ')}`;
  }),
];
writeFileSync(join(OUT, 'llms.txt'), `${index.join('\n')}\n`);
writeFileSync(join(OUT, 'llms-full.txt'), `${[...pages.keys()].map(text).join('\n\n')}\n`);
console.log(`docs: dist/docs has ${pages.size} guides and ${entryPoints.length} entry points`);
