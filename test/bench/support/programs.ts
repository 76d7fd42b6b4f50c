import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const root = join(import.meta.dirname, '../../..');
const bench = join(import.meta.dirname, '..');

/** A command line. */
export interface Program {
  readonly file: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** A program cannot run on this machine. The tables show the message. */
export class Unavailable extends Error {
  override readonly name = 'Unavailable';
}

/** Returns a program of this folder that Node.js runs from source. */
export function nodeProgram(file: string, flags: readonly string[] = []): Program {
  return { file: process.execPath, args: [...flags, join(bench, file)] };
}

/** The daemon from source. */
export const daemonFromSource: Program = {
  file: process.execPath,
  args: [join(root, 'src/cli/main.ts')],
};

/** Bundles the daemon, and returns the command of the image: its flags of Node.js and its environment. */
export const daemonFromBundle = once(async (): Promise<Program> => {
  const folder = mkdtempSync(join(tmpdir(), 'bench-bundle-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  await run(process.execPath, [join(root, 'hack/bundle.ts'), folder]);
  await run(process.execPath, [join(root, 'hack/image/code-cache.ts'), folder]);
  const dockerfile = readFileSync(join(root, 'Dockerfile'), 'utf8');
  const [, entrypoint = ''] = /^ENTRYPOINT (\[.*?\])/ms.exec(dockerfile) ?? [];
  const [, ...flags] = JSON.parse(entrypoint.replaceAll(/\\\n/g, '')) as string[];
  const variable = (name: string) =>
    new RegExp(`\\b${name}=(?:"(.*?)"|(\\S+))`).exec(dockerfile)?.slice(1).join('') ?? '';
  const env = Object.fromEntries(
    ['NODE_ENV', 'NODE_OPTIONS', 'MALLOC_ARENA_MAX'].map((name) => [name, variable(name)]),
  );
  return {
    file: process.execPath,
    args: [...flags.slice(0, -1), join(folder, 'crd-controller.mjs')],
    env,
  };
});

const goFolder = join(bench, 'client-go');

/** Builds a command of the folder client-go. @throws {Unavailable} without Go */
export const goProgram = once(async (name: 'controller' | 'informer'): Promise<Program> => {
  const file = await built('client-go', goFolder, '**/{*.go,go.mod,go.sum}', async (folder) => {
    await requireTool('go', 'version', 'Go');
    console.error('bench: building the programs on client-go');
    await run('go', ['build', '-o', `${folder}/`, './...'], { cwd: goFolder });
  });
  return { file: join(file, name), args: [] };
});

const rustFolder = join(bench, 'kube-rs');

/** Builds a binary of the folder kube-rs. @throws {Unavailable} without Rust */
export const rustProgram = once(async (name: 'controller' | 'informer'): Promise<Program> => {
  const pattern = '{src/**/*.rs,Cargo.toml,Cargo.lock}';
  const file = await built('kube-rs', rustFolder, pattern, async (folder) => {
    await requireTool('cargo', '--version', 'Rust');
    console.error('bench: building the programs on kube-rs, which takes minutes the first time');
    const target = join(cacheFolder(), 'cargo');
    const args = ['install', '--locked', '--path=.', '--root', folder, '--target-dir', target];
    await run('cargo', args, { cwd: rustFolder, maxBuffer: 64 * 1024 * 1024 });
  });
  return { file: join(file, 'bin', name), args: [] };
});

/** Returns a folder outside the repository with the output of a build, made again after a change of its source. */
async function built(
  name: string,
  source: string,
  pattern: string,
  build: (folder: string) => Promise<void>,
): Promise<string> {
  const hash = createHash('sha256');
  for (const file of globSync(pattern, { cwd: source }).sort()) {
    hash.update(file).update(readFileSync(join(source, file)));
  }
  const folder = join(cacheFolder(), `${name}-${hash.digest('hex').slice(0, 16)}`);
  const isComplete = join(folder, 'complete');
  if (existsSync(isComplete)) return folder;
  mkdirSync(folder, { recursive: true });
  await build(folder);
  mkdirSync(isComplete);
  return folder;
}

async function requireTool(command: string, argument: string, name: string): Promise<void> {
  try {
    await run(command, [argument]);
  } catch (cause) {
    throw new Unavailable(`${name} is not installed`, { cause });
  }
}

function cacheFolder(): string {
  const base = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  return join(base, 'crd-controller', 'bench');
}

/** Remembers the promise of each call by its arguments. */
function once<A extends readonly string[], T>(
  work: (...args: A) => Promise<T>,
): (...args: A) => Promise<T> {
  const results = new Map<string, Promise<T>>();
  return (...args) => {
    const key = args.join(' ');
    const result = results.get(key) ?? work(...args);
    results.set(key, result);
    return result;
  };
}
