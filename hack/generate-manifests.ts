/**
 * Writes the generated files of hack/deploy: the copies of crds/, which kustomize cannot read from outside its
 * folder, the component webhooks, a configuration file with all options, and install.yaml, the output of `crd-controller manifests`.
 * With `--check` it writes nothing and fails if a file is outdated.
 */
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { stringify } from 'yaml';
import { configSample } from './config-sample.ts';
import { crdController } from '../src/cli/crd-controller.ts';
import { runOptions } from '../src/cli/program/run-options.ts';
import { installation } from '../src/cli/program/installation.ts';
import { declaredWebhooks } from '../src/cli/program/declared-webhooks.ts';
import { webhookObjects } from '../src/webhook/install.ts';
import { webhookNames, webhookRoles, webhookRules } from '../src/webhook/manifests.ts';

const FORMAT = { aliasDuplicateObjects: false, lineWidth: 100, singleQuote: true };

const program = crdController();
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
  installation(program.name, (path) => textOf(join(folder, path))),
);
wanted.set(`${folder}/webhooks/webhooks.yaml`, webhookManifests());
wanted.set(`${folder}/configuration/config.yaml`, configSample(runOptions(program)));
const stale = [...wanted].filter(([path, text]) => read(path) !== text);
const orphans = globSync(`${folder}/crds/*`, { cwd: root }).filter((path) => !wanted.has(path));

if (process.argv.includes('--check')) {
  for (const [path] of stale) console.error(`${path} is stale: run npm run generate`);
  for (const path of orphans) console.error(`${path} has no source in crds/: delete it`);
  process.exitCode = stale.length + orphans.length > 0 ? 1 : 0;
} else {
  mkdirSync(join(root, folder, 'crds'), { recursive: true });
  for (const path of orphans) rmSync(join(root, path));
  for (const [path, text] of stale) writeFileSync(join(root, path), text);
  const changed = [...stale.map(([path]) => path), ...orphans];
  console.log(changed.length === 0 ? `${folder} is up to date` : changed.join('\n'));
}

/** Returns the objects of the webhooks, which are off by default. */
function webhookManifests(): string {
  const entries = declaredWebhooks(program) ?? { admission: [], conversions: [], rules: [] };
  const names = webhookNames(program.name, `${program.name}-system`);
  const roles = webhookRoles(webhookRules(entries, names), names);
  return [...roles, ...webhookObjects(entries, names)]
    .map((each) => stringify(each, FORMAT))
    .join('---\n');
}

/** Returns the generated or the existing text of the file. */
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
