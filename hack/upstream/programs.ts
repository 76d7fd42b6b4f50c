import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import {
  chmod,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  writeFile,
} from 'node:fs/promises';
import { basename, join } from 'node:path';
import {
  download,
  findGo,
  kubernetesModule,
  output,
  userCache,
  withLock,
} from '../envtest/binaries.ts';

type Report = (line: string) => void;

const CACHE = userCache('upstream');

/** Strips symbols, which halves the time of the linker. */
const LINK = '-s -w';

/** Kubernetes' own tests and the runner that executes them in several processes. */
export interface KubernetesPrograms {
  readonly e2e: string;
  readonly ginkgo: string;
}

/** Builds the end-to-end tests of a release of Kubernetes once, which takes minutes. */
export async function buildKubernetesTests(
  version: string,
  report: Report,
): Promise<KubernetesPrograms> {
  const folder = join(CACHE, `kubernetes-${version}`);
  const programs = { e2e: join(folder, 'e2e.test'), ginkgo: join(folder, 'ginkgo') };
  await once(folder, Object.values(programs), report, async () => {
    const go = await findGo();
    const work = await mkdtemp(join(folder, 'build-'));
    try {
      const { ldflags } = await kubernetesModule(work, { go, version });
      const flags = ['-mod=mod', '-trimpath', `-ldflags=${LINK} ${ldflags}`];
      const build = async (command: readonly string[], program: string, from: string) => {
        report(`building ${basename(program)}: this takes minutes, once`);
        const target = join(work, basename(program));
        await output(go, [...command, ...flags, '-o', target, from], work);
        await rename(target, program);
      };
      await build(['test', '-c'], programs.e2e, 'k8s.io/kubernetes/test/e2e');
      await build(['build'], programs.ginkgo, 'github.com/onsi/ginkgo/v2/ginkgo');
    } finally {
      await rm(work, { recursive: true, force: true });
    }
  });
  return programs;
}

/** A Go module with packages of tests. */
export interface TestModule {
  readonly module: string;
  readonly version: string;
  readonly packages: readonly string[];
  /** Files of the module, and their replacements in `hack/upstream/apiextensions`. */
  readonly replacements?: Readonly<Record<string, string>>;
}

/**
 * Builds the tests of packages of a module once. Returns the path of each program, which is in the folder of its
 * package, because the tests read files from there, and has the name that Go gives it.
 */
export async function buildModuleTests(
  { module, version, packages, replacements = {} }: TestModule,
  report: Report,
): Promise<ReadonlyMap<string, string>> {
  const contents = new Map<string, string>();
  const hash = createHash('sha256');
  for (const [path, name] of Object.entries(replacements)) {
    const content = await readFile(join(import.meta.dirname, 'apiextensions', name), 'utf8');
    contents.set(path, content);
    hash.update(content);
  }
  const variant = contents.size > 0 ? `-${hash.digest('hex').slice(0, 8)}` : '';
  const folder = join(CACHE, `${basename(module)}-${version}${variant}`);
  const programs = new Map(
    packages.map((name) => [name, join(folder, 'source', name, `${basename(name)}.test`)]),
  );
  await once(folder, [...programs.values()], report, async () => {
    const go = await findGo();
    const source = join(folder, 'source');
    if (!existsSync(source)) {
      const copy = await mkdtemp(join(folder, 'copy-'));
      const original = await download(go, module, version, folder);
      await cp(original.source, copy, { recursive: true });
      await makeWritable(copy);
      for (const [path, content] of contents) {
        await rm(join(copy, path));
        await writeFile(join(copy, path), content);
      }
      await rename(copy, source);
    }
    for (const [name, program] of programs) {
      report(`building the tests of ${name}: this takes minutes, once`);
      const target = `${program}.new`;
      await output(
        go,
        ['test', '-c', '-vet=off', '-trimpath', `-ldflags=${LINK}`, '-o', target, `./${name}`],
        source,
      );
      await rename(target, program);
    }
  });
  return programs;
}

/** Runs `build` if one of the files is missing, in one process at a time. */
async function once(
  folder: string,
  files: readonly string[],
  report: Report,
  build: () => Promise<void>,
): Promise<void> {
  const isBuilt = () => files.every((file) => existsSync(file));
  if (isBuilt()) return;
  await mkdir(folder, { recursive: true });
  await withLock(join(folder, 'lock'), report, async () => {
    if (!isBuilt()) await build();
  });
}

/** Files in Go's module cache are read-only. */
async function makeWritable(folder: string): Promise<void> {
  await chmod(folder, 0o755);
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const folders = entries.filter((entry) => entry.isDirectory());
  for (const { parentPath, name } of folders) await chmod(join(parentPath, name), 0o755);
}
