/**
 * Writes src/api/generated from crds/: one module per CustomResourceDefinition. With `--check` it
 * writes nothing and fails if what is there is not what would be written.
 *
 * This stands in for a script that generates typed clients, listers and informers: here the
 * generic ones become typed by the descriptor that each module exports.
 */
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseCustomResources } from '../src/codegen/custom-resource.ts';
import { generateTypes, moduleNameOf } from '../src/codegen/generate-types.ts';

const root = join(import.meta.dirname, '..');
const folder = 'src/api/generated';
const modules = {
  Condition: '../conditions.ts',
  KubernetesObject: '../object.ts',
  ObjectMeta: '../object.ts',
  Resource: '../resource.ts',
};

const wanted = new Map(
  globSync('crds/*.yaml', { cwd: root })
    .toSorted()
    .flatMap((source) =>
      parseCustomResources(readFileSync(join(root, source), 'utf8')).map(
        (resource): [path: string, text: string] => [
          join(folder, `${moduleNameOf(resource)}.ts`),
          generateTypes(resource, { source, command: '`npm run generate`', modules }),
        ],
      ),
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
  for (const path of orphans) console.error(`${path} comes from no file in crds/: delete it`);
  process.exitCode = stale.length + orphans.length > 0 ? 1 : 0;
} else {
  mkdirSync(join(root, folder), { recursive: true });
  for (const path of orphans) rmSync(join(root, path));
  for (const [path, text] of stale) writeFileSync(join(root, path), text);
  const changed = [...stale.map(([path]) => path), ...orphans];
  console.log(changed.length === 0 ? `${folder} is up to date` : changed.join('\n'));
}
