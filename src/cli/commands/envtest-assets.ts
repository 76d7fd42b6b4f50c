import { existsSync } from 'node:fs';
import { chmod, copyFile, mkdir, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../program/package.ts';
import { EXIT_OK, pathError, UsageError } from '../common/errors.ts';
import { etcd } from '../envtest/etcd.ts';
import { kubeApiserver } from '../envtest/kube-apiserver.ts';
import type { EnvtestProgram } from '../envtest/program.ts';
import type { CommandContext } from '../program/program.ts';

const PROGRAMS: Readonly<Record<string, EnvtestProgram>> = {
  etcd,
  'kube-apiserver': kubeApiserver,
};

/**
 * Writes programs that stand in for etcd and kube-apiserver, and the kubectl of the path, to a folder for
 * `KUBEBUILDER_ASSETS`. Prints the folder.
 */
export async function envtestAssets(
  operands: readonly string[],
  { print, environment }: Pick<CommandContext, 'print' | 'environment'>,
): Promise<number> {
  const [given, stray] = operands;
  if (stray !== undefined) throw new UsageError('envtest-assets takes one FOLDER');
  const main = mainFile();
  const folder = resolve(given ?? defaultFolder(environment));
  try {
    await mkdir(folder, { recursive: true });
    for (const [name, program] of Object.entries(PROGRAMS)) {
      await writeFile(join(folder, `${name}.help`), await helpOf(program));
      await writeProgram(folder, name, main);
    }
    await copyKubectl(folder, environment);
  } catch (error) {
    throw pathError(`Could not write to ${folder}`, error);
  }
  print(folder);
  return EXIT_OK;
}

/** Returns the program that the scripts run. @throws {UsageError} in a bundle, which does not have it */
function mainFile(): string {
  const isSource = import.meta.url.endsWith('.ts');
  const path = isSource ? 'src/cli/envtest/main.ts' : 'dist/cli/envtest/main.js';
  const file = fileURLToPath(new URL(path, packageRoot()));
  if (existsSync(file)) return file;
  throw new UsageError('envtest-assets needs the npm package crd-controller: this is a bundle');
}

/** Returns a folder in the caches of the user, so that the programs outlive a temporary folder. */
function defaultFolder(environment: CommandContext['environment']): string {
  const { LOCALAPPDATA, XDG_CACHE_HOME } = environment;
  const caches = XDG_CACHE_HOME || LOCALAPPDATA || join(homedir(), '.cache');
  return join(caches, 'crd-controller', 'envtest-assets');
}

/** Returns the help of a program, which test environments read before each start. */
async function helpOf(program: EnvtestProgram): Promise<string> {
  const lines: string[] = [];
  const print = (line: string) => lines.push(line);
  await program(['--help'], { signal: new AbortController().signal, print, warn: print });
  return `${lines.join('\n')}\n`;
}

/**
 * Writes a program as a script. On Windows it is a batch file, which Go finds and starts for the name without its
 * extension. Node.js keeps its compiled code in the folder, for the next start.
 */
async function writeProgram(folder: string, name: string, main: string): Promise<void> {
  const cache = join(folder, 'compile-cache');
  const isWindows = process.platform === 'win32';
  const script = isWindows
    ? `@set "NODE_COMPILE_CACHE=${inBatch(cache)}"\r\n@"${inBatch(process.execPath)}" "${inBatch(main)}" ${name} %*\r\n`
    : `#!/bin/sh
export NODE_COMPILE_CACHE=${quote(cache)}
[ "$*" != --help ] || exec cat ${quote(join(folder, `${name}.help`))}
exec ${quote(process.execPath)} ${quote(main)} ${name} "$@"
`;
  const file = join(folder, isWindows ? `${name}.cmd` : name);
  await writeFile(file, script);
  await chmod(file, 0o755);
}

/** Escapes a path in a batch file. */
function inBatch(path: string): string {
  return path.replaceAll('%', '%%');
}

/** Quotes a word for a POSIX shell. */
function quote(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

async function copyKubectl(
  folder: string,
  { PATH = '' }: CommandContext['environment'],
): Promise<void> {
  const name = process.platform === 'win32' ? 'kubectl.exe' : 'kubectl';
  const found = PATH.split(delimiter)
    .map((directory) => join(directory, name))
    .find((file) => existsSync(file));
  if (found !== undefined && resolve(found) !== join(folder, name)) {
    await copyFile(found, join(folder, name));
  }
}
