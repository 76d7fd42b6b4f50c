/**
 * Writes src/api/generated from crds/: one module for each CustomResourceDefinition. With `--check` it writes
 * nothing and fails if a file is outdated.
 *
 * It replaces client-gen, lister-gen and informer-gen: the generic clients, listers and informers get their
 * types from the descriptor that each module exports.
 */
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { generateModules } from '../src/codegen/generate-modules.ts';

const root = join(import.meta.dirname, '..');
const folder = 'src/api/generated';
const modules = {
  Condition: '../conditions.ts',
  KubernetesObject: '../object.ts',
  ObjectMeta: '../object.ts',
  Resource: '../resource.ts',
};

const definitions = globSync('crds/*.yaml', { cwd: root })
  .toSorted()
  .map((source) => ({ source, text: readFileSync(join(root, source), 'utf8') }));
const wanted = new Map(
  generateModules(definitions, { command: '`npm run generate`', modules }).map(
    ({ fileName, text }): [path: string, text: string] => [join(folder, fileName), text],
  ),
);
const present = new Map(
  globSync(`${folder}/*.ts`, { cwd: root }).map((path): [path: string, text: string] => [
    path,
    readFileSync(join(root, path), 'utf8'),
  ]),
);
const stale = [...wanted].filter(([path, text]) => present.get(path) !== text);
const orphans = [...present.keys()].filter((path) => !wanted.has(path));

if (process.argv.includes('--check')) {
  for (const [path] of stale) console.error(`${path} is stale: run npm run generate`);
  for (const path of orphans) console.error(`${path} has no source in crds/: delete it`);
  process.exitCode = stale.length + orphans.length > 0 ? 1 : 0;
} else {
  mkdirSync(join(root, folder), { recursive: true });
  for (const path of orphans) rmSync(join(root, path));
  for (const [path, text] of stale) writeFileSync(join(root, path), text);
  const changed = [...stale.map(([path]) => path), ...orphans];
  console.log(changed.length === 0 ? `${folder} is up to date` : changed.join('\n'));
}
