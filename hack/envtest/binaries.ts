import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import {
  appendFile,
  mkdir,
  mkdtemp,
  open,
  readFile,
  rename,
  rm,
  writeFile,
} from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** The tested Kubernetes releases: the newest minor version and the two before it. */
export const KUBERNETES_VERSIONS = ['1.37.2', '1.36.3', '1.35.4'] as const;

const KWOK_VERSION = '0.8.0';

/** Version in the go.mod of Kubernetes. An older Go that may download toolchains is sufficient. */
const GO_VERSION = [1, 26] as const;

/** Go package of each program of a control plane. */
const PACKAGES = {
  etcd: 'go.etcd.io/etcd/server/v3',
  'kube-apiserver': 'k8s.io/kubernetes/cmd/kube-apiserver',
  'kube-controller-manager': 'k8s.io/kubernetes/cmd/kube-controller-manager',
  'kube-scheduler': 'k8s.io/kubernetes/cmd/kube-scheduler',
  kubectl: 'k8s.io/kubernetes/cmd/kubectl',
  kwok: 'sigs.k8s.io/kwok/cmd/kwok',
} as const;

export type Component = keyof typeof PACKAGES;

export const COMPONENTS: readonly string[] = Object.keys(PACKAGES);

export function isComponent(name: string): name is Component {
  return COMPONENTS.includes(name);
}

/**
 * Returns the release that tests use: the newest, or `$KUBERNETES_VERSION` as a minor (`1.35`) or full version.
 */
export function kubernetesVersion(
  wanted: string | undefined = process.env['KUBERNETES_VERSION'],
): string {
  if (!wanted) return KUBERNETES_VERSIONS[0];
  const known = KUBERNETES_VERSIONS.find((version) => version.startsWith(`${wanted}.`));
  if (!known && !/^1\.\d+\.\d+$/.test(wanted)) {
    throw new Error(
      `KUBERNETES_VERSION: expected ${KUBERNETES_VERSIONS.join(', ')} or another release, got ${wanted}`,
    );
  }
  return known ?? wanted;
}

/** The binaries do not exist and cannot be built on this machine. The tested code is not at fault. */
export class BinariesUnavailable extends Error {
  override readonly name = 'BinariesUnavailable';
}

/**
 * Returns the paths of the wanted programs: those in `$KUBEBUILDER_ASSETS` if it is set, otherwise those built
 * from their Go modules. The first build takes minutes and is cached outside the repository. Concurrent
 * processes wait for one build.
 *
 * @param version of Kubernetes; ignored with `$KUBEBUILDER_ASSETS`
 * @throws {BinariesUnavailable} if they do not exist and cannot be built on this machine
 */
export async function findOrBuild<C extends Component>(
  wanted: readonly C[],
  report: (line: string) => void,
  version: string = kubernetesVersion(),
): Promise<Record<C, string>> {
  const cache = cacheFolder(version);
  const folder = folderOf(version);
  const missing = () => wanted.filter((component) => !existsSync(join(folder, component)));
  if (missing().length > 0) {
    if (!folder.startsWith(cache)) {
      throw new Error(`KUBEBUILDER_ASSETS (${folder}) lacks ${missing().join(', ')}`);
    }
    const go = await findGo();
    await withLock(join(cache, 'lock'), report, async () => {
      if (missing().length > 0) await build(missing(), { go, cache, version, report });
    });
  }
  const paths = wanted.map((component) => [component, join(folder, component)]);
  return Object.fromEntries(paths) as Record<C, string>;
}

/** Returns whether the programs of a release are available without a build. */
export function isBuilt(wanted: readonly Component[], version: string): boolean {
  return wanted.every((component) => existsSync(join(folderOf(version), component)));
}

function folderOf(version: string): string {
  const assets = version === kubernetesVersion() ? process.env['KUBEBUILDER_ASSETS'] : undefined;
  return assets ?? join(cacheFolder(version), 'bin');
}

/**
 * Returns `$CRD_CONTROLLER_ENVTEST` or a folder in the user's cache. Its name contains everything that affects
 * the content.
 */
function cacheFolder(version: string): string {
  const root = process.env['CRD_CONTROLLER_ENVTEST'] ?? userCache('envtest');
  return join(root, `${version}-${process.platform}-${process.arch}`);
}

/** Returns this project's folder of that name in the user's cache. */
export function userCache(name: string): string {
  const caches = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  return join(caches, 'crd-controller', name);
}

/** @throws {BinariesUnavailable} without a Go that can build Kubernetes */
export async function findGo(): Promise<string> {
  const hint = `set KUBEBUILDER_ASSETS, or install Go ${GO_VERSION.join('.')}`;
  let found: string;
  try {
    found = await output('go', ['env', 'GOVERSION', 'GOTOOLCHAIN'], process.cwd());
  } catch (cause) {
    throw new BinariesUnavailable(`no control plane available: ${hint}`, { cause });
  }
  const [version = '', toolchain] = found.trim().split('\n');
  const [, major, minor] = /^go(\d+)\.(\d+)/.exec(version) ?? [];
  const recent = Number(major) > GO_VERSION[0] || Number(minor) >= GO_VERSION[1];
  if (!recent && toolchain === 'local') {
    throw new BinariesUnavailable(`${version} is too old to build a control plane: ${hint}`);
  }
  return 'go';
}

export interface Building {
  readonly go: string;
  readonly cache: string;
  /** Version of Kubernetes. */
  readonly version: string;
  readonly report: (line: string) => void;
}

/**
 * Writes Kubernetes' own go.mod into a folder, with its staging modules replaced by the published modules of the same release.
 * These are the dependencies that Kubernetes ships with; etcd is one of them.
 */
export async function kubernetesModule(
  folder: string,
  { go, version }: Pick<Building, 'go' | 'version'>,
): Promise<{ ldflags: string }> {
  const own = await goMod(go, 'k8s.io/kubernetes', version, folder);
  const published = `v0${version.slice(version.indexOf('.'))}`;
  const module = own
    .replace(/^module .*$/m, 'module envtest')
    .replaceAll(/(\S+) => \.\/staging\/src\/\S+/g, `$1 => $1 ${published}`);
  await writeFile(join(folder, 'go.mod'), `${module}\nrequire k8s.io/kubernetes v${version}\n`);
  const [major, minor] = version.split('.');
  const stamp = 'k8s.io/component-base/version';
  return {
    ldflags: `-X ${stamp}.gitVersion=v${version} -X ${stamp}.gitMajor=${major} -X ${stamp}.gitMinor=${minor}`,
  };
}

async function goMod(go: string, module: string, version: string, folder: string): Promise<string> {
  return readFile((await download(go, module, version, folder)).goMod, 'utf8');
}

/** Downloads a module into Go's cache; returns the folder of its source and the path of its go.mod. */
export async function download(
  go: string,
  module: string,
  version: string,
  cwd: string,
): Promise<{ readonly source: string; readonly goMod: string }> {
  try {
    const args = ['mod', 'download', '-json', `${module}@v${version}`];
    const answer: unknown = JSON.parse(await output(go, args, cwd));
    if (typeof answer === 'object' && answer && 'GoMod' in answer && 'Dir' in answer) {
      return { source: String(answer.Dir), goMod: String(answer.GoMod) };
    }
    throw new Error(`go mod download returned no GoMod for ${module}`);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const line = `cannot download ${module}: ${reason}`.replaceAll(/\s+/g, ' ');
    throw new BinariesUnavailable(line, { cause });
  }
}

/** Builds programs into the cache. A rename makes each one appear atomically. */
async function build(components: readonly Component[], building: Building): Promise<void> {
  const { go, cache, report } = building;
  const bin = join(cache, 'bin');
  await mkdir(bin, { recursive: true });
  for (const component of components) {
    report(`building ${component} (${PACKAGES[component]}): this takes minutes, once`);
    const folder = await mkdtemp(join(cache, 'build-'));
    try {
      const { ldflags } = await kubernetesModule(folder, building);
      const own = component === 'kwok' ? await addKwok(folder) : '';
      const target = join(folder, component);
      const flags = ['-mod=mod', '-trimpath', `-ldflags=-s -w ${ldflags} ${own}`, '-o', target];
      await output(go, ['build', ...flags, PACKAGES[component]], folder);
      await rename(target, join(bin, component));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }
}

/**
 * Adds kwok, which is not part of Kubernetes, to the go.mod in a folder, and returns its linker flags. With the modules of
 * Kubernetes, most packages are built already.
 */
async function addKwok(folder: string): Promise<string> {
  await appendFile(join(folder, 'go.mod'), `require sigs.k8s.io/kwok v${KWOK_VERSION}\n`);
  return `-X sigs.k8s.io/kwok/pkg/consts.Version=v${KWOK_VERSION}`;
}

/**
 * Runs `work` while holding a lock file, to avoid duplicate builds. If a lock is taken over by mistake, two
 * builds run, and the later rename replaces the first.
 */
export async function withLock(
  path: string,
  report: (line: string) => void,
  work: () => Promise<void>,
): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  for (let waited = false; ; waited = true) {
    try {
      const file = await open(path, 'wx');
      await file.writeFile(String(process.pid));
      await file.close();
      break;
    } catch (error) {
      if (!hasCode(error, 'EEXIST')) throw error;
    }
    const holder = Number(await readFile(path, 'utf8').catch(() => ''));
    if (holder > 0 && !isAlive(holder)) await rm(path, { force: true });
    else if (!waited && holder > 0) report(`waiting for process ${holder}, which builds it`);
    await sleep(500);
  }
  try {
    await work();
  } finally {
    await rm(path, { force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return hasCode(error, 'EPERM');
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

/** Returns the stdout of a command; rejects with the end of its stderr. */
export function output(command: string, args: readonly string[], cwd: string): Promise<string> {
  const env = { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-buildvcs=false', GOWORK: 'off' };
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (stdout += chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (stderr += chunk));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      if (code === 0) resolve(stdout);
      else reject(new Error(`${command} ${args[0]} failed: ${(stderr || stdout).slice(-4000)}`));
    });
  });
}
