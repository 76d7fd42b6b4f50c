/**
 * Generates types from the CRDs of widely used projects and compiles them with strict options. Prints each
 * failure, and exits with code 1 if there is one, or if a module is not available. The modules come from the Go
 * module proxy; nothing that is fetched becomes part of the repository.
 *
 *   npm run corpus              every project
 *   npm run corpus -- flux      one project
 *   npm run corpus -- ./crds    your own files and folders
 */
import { spawnSync } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { BinariesUnavailable, download, userCache } from '../envtest/binaries.ts';

/** A folder or file with CRDs as plain YAML, in a Go module. */
interface Source {
  readonly module: string;
  readonly version: string;
  readonly path: string;
}

function flux(controller: string, version: string): Source {
  return { module: `github.com/fluxcd/${controller}`, version, path: 'config/crd/bases' };
}

function kyverno(folder: string): Source {
  return {
    module: 'github.com/kyverno/kyverno',
    version: '1.19.1',
    path: `config/crds/${folder}`,
  };
}

/** Releases that Go 1.26 can download. Each project gets a folder of generated modules. */
const PROJECTS: Readonly<Record<string, readonly Source[]>> = {
  'argo-cd': [
    { module: 'github.com/argoproj/argo-cd/v3', version: '3.2.0', path: 'manifests/crds' },
  ],
  'cert-manager': [
    { module: 'github.com/cert-manager/cert-manager', version: '1.21.2', path: 'deploy/crds' },
  ],
  'external-secrets': [
    {
      module: 'github.com/external-secrets/external-secrets',
      version: '1.3.2',
      path: 'config/crds/bases',
    },
  ],
  flux: [
    flux('source-controller', '1.7.0'),
    flux('helm-controller', '1.4.0'),
    flux('kustomize-controller', '1.7.0'),
    flux('notification-controller', '1.7.0'),
    flux('image-reflector-controller', '1.0.0'),
    flux('image-automation-controller', '1.0.0'),
  ],
  'gateway-api': [
    { module: 'sigs.k8s.io/gateway-api', version: '1.4.0', path: 'config/crd/experimental' },
  ],
  'gateway-api-standard': [
    { module: 'sigs.k8s.io/gateway-api', version: '1.4.0', path: 'config/crd/standard' },
  ],
  'knative-serving': [
    { module: 'knative.dev/serving', version: '0.51.0', path: 'config/core/300-resources' },
  ],
  kyverno: ['kyverno', 'policies.kyverno.io', 'policyreport', 'reports'].map(kyverno),
  'prometheus-operator': [
    {
      module: 'github.com/prometheus-operator/prometheus-operator',
      version: '0.85.0',
      path: 'example/prometheus-operator-crd-full',
    },
  ],
};

const ROOT = join(import.meta.dirname, '../..');
const OUT = userCache('corpus');

/** Our own options, which are stricter than `--strict`. */
const TSCONFIG = {
  extends: join(ROOT, 'tsconfig.json'),
  compilerOptions: {
    rootDir: '/',
    typeRoots: [join(ROOT, 'node_modules/@types')],
    noEmit: true,
    declaration: false,
    isolatedModules: true,
    // The entry points of the package, as its exports.
    paths: {
      'crd-controller': [join(ROOT, 'src/index.ts')],
      'crd-controller/*': [join(ROOT, 'src/*.ts')],
    },
  },
};

const arguments_ = process.argv.slice(2);
const projects = Object.keys(PROJECTS);
const wanted = arguments_.filter((argument) => projects.includes(argument));
const own = arguments_.filter((argument) => !projects.includes(argument));
const failures: string[] = [];

await rm(OUT, { recursive: true, force: true });
await mkdir(OUT, { recursive: true });
// Makes the generated modules ES modules.
await writeFile(join(OUT, 'package.json'), '{ "type": "module" }\n');
if (own.length > 0)
  generate(
    'own',
    own.map((path) => resolve(path)),
  );
for (const project of arguments_.length > 0 ? wanted : projects) {
  generate(project, await pathsOf(PROJECTS[project] ?? []));
}
await compile();
for (const failure of failures) console.error(`corpus: ${failure}`);
console.log(
  failures.length > 0 ? `corpus: ${failures.length} failed` : 'corpus: all types compile',
);
process.exitCode = failures.length > 0 ? 1 : 0;

async function pathsOf(sources: readonly Source[]): Promise<string[]> {
  const paths: string[] = [];
  for (const { module, version, path } of sources) {
    try {
      paths.push(join((await download('go', module, version, OUT)).source, path));
    } catch (error) {
      if (!(error instanceof BinariesUnavailable)) throw error;
      failures.push(`not tested: ${error.message}`);
    }
  }
  return paths;
}

/** Generates the modules of a project, and checks that a second run finds them up to date. */
function generate(project: string, paths: readonly string[]): void {
  if (paths.length === 0) return;
  const started = performance.now();
  const command = ['src/cli/main.ts', 'generate', ...paths, `--out=${join(OUT, project)}`];
  const printed = run(project, command);
  if (printed === undefined) return;
  if (run(`${project} --check`, [...command, '--check']) === undefined) return;
  const count = printed.split('\n').filter((line) => line.endsWith('.ts')).length;
  console.log(
    `corpus: ${project}: ${count} modules in ${Math.round(performance.now() - started)} ms`,
  );
}

async function compile(): Promise<void> {
  await writeFile(join(OUT, 'tsconfig.json'), JSON.stringify({ ...TSCONFIG, include: ['*/*.ts'] }));
  run('tsc', ['node_modules/typescript/bin/tsc', '-p', OUT, '--pretty', 'false']);
}

/** Runs a program of this repository; returns its stdout, or undefined if it failed. */
function run(name: string, args: readonly string[]): string | undefined {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  if (status === 0) return stdout;
  failures.push(`${name}: ${(stderr + stdout).trim().slice(0, 20_000)}`);
  return undefined;
}
