/**
 * Writes what hack/deploy has from elsewhere: the copies of crds/, which kustomize would not read
 * from there, and install.yaml, all resources of its kustomization in one file. With `--check` it
 * writes nothing and fails if what is there is not what would be written.
 */
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parse } from 'yaml';

const root = join(import.meta.dirname, '..');
const folder = 'hack/deploy';
const crds = globSync('crds/*.yaml', { cwd: root }).toSorted();

const wanted = new Map<string, string>();
for (const path of crds) wanted.set(`${folder}/crds/${basename(path)}`, read(path) ?? '');
wanted.set(
  `${folder}/crds/kustomization.yaml`,
  [
    'apiVersion: kustomize.config.k8s.io/v1beta1',
    'kind: Kustomization',
    'resources:',
    ...crds.map((path) => `  - ${basename(path)}`),
    '',
  ].join('\n'),
);
wanted.set(
  `${folder}/install.yaml`,
  `# All resources of this folder's kustomization, written by: npm run generate\n${resourcesOf(folder).join('---\n')}`,
);
const stale = [...wanted].filter(([path, text]) => read(path) !== text);
const orphans = globSync(`${folder}/crds/*`, { cwd: root }).filter((path) => !wanted.has(path));

if (process.argv.includes('--check')) {
  for (const [path] of stale) console.error(`${path} is stale: run npm run generate`);
  for (const path of orphans) console.error(`${path} comes from no file in crds/: delete it`);
  process.exitCode = stale.length + orphans.length > 0 ? 1 : 0;
} else {
  mkdirSync(join(root, folder, 'crds'), { recursive: true });
  for (const path of orphans) rmSync(join(root, path));
  for (const [path, text] of stale) writeFileSync(join(root, path), text);
  const changed = [...stale.map(([path]) => path), ...orphans];
  console.log(changed.length === 0 ? `${folder} is up to date` : changed.join('\n'));
}

/** The texts of the files that a kustomization names, directly or through others, in their order. */
function resourcesOf(path: string): string[] {
  const file = `${path}/kustomization.yaml`;
  const { apiVersion, kind, resources, ...others } = parse(textOf(file)) as {
    readonly apiVersion: string;
    readonly kind: string;
    readonly resources: readonly string[];
  };
  const [more] = Object.keys(others);
  if (more !== undefined) throw new Error(`${file} has ${more}: that takes a real kustomize`);
  return resources.flatMap((resource) =>
    resource.endsWith('.yaml') ? [textOf(join(path, resource))] : resourcesOf(join(path, resource)),
  );
}

/** What is wanted of the file, or what it has. */
function textOf(path: string): string {
  const text = wanted.get(path) ?? read(path);
  if (text === undefined) throw new Error(`${path} is missing`);
  return text;
}

function read(path: string): string | undefined {
  try {
    return readFileSync(join(root, path), 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
