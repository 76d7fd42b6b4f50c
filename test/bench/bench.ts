/**
 * Runs benchmarks: `npm run bench -- NAME [--option=value...]`; without a name all workloads, and writes their
 * tables and charts to the documentation. Packages that only benchmarks need have their own package.json here and are
 * installed at the first run.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, globSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Benchmark } from './benchmark.ts';

const here = import.meta.dirname;
const programs = globSync('*/main.ts', { cwd: here, exclude: ['node_modules'] }).map((file) =>
  dirname(file),
);

const [first, ...rest] = process.argv.slice(2);
const isName = first !== undefined && !first.startsWith('-');
const name = isName ? first : 'all';
const args = isName ? rest : process.argv.slice(2);

installPackages();
// The harness needs the packages.
const { COMMANDS, runCommand, workloadNames } = await import('./support/command.ts');
const workloads = workloadNames();
const known = [...Object.keys(COMMANDS), ...workloads, ...programs].toSorted().join(', ');
if (process.argv.includes('--help')) {
  console.log(`Usage: npm run bench -- [NAME] [--option=value...]\n\nNAME: ${known}`);
  console.log('Options: test/bench/README.md');
} else if (name in COMMANDS) {
  await COMMANDS[name]?.(args);
} else if (workloads.includes(name)) {
  await runCommand(name, args);
} else if (programs.includes(name)) {
  const { main } = (await import(`./${name}/main.ts`)) as { main: Benchmark };
  await main({ args: args.filter((arg) => arg !== '--json'), json: args.includes('--json') });
} else {
  console.error(`bench: unknown benchmark ${name}; known: ${known}`);
  process.exitCode = 2;
}

/** Installs the packages of the lock file, again after a change of the lock file. */
function installPackages(): void {
  const wanted = join(here, 'package-lock.json');
  const installed = join(here, 'node_modules', '.package-lock.json');
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(wanted).mtimeMs) return;
  console.error('bench: installing the packages of test/bench');
  const { status, error } = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], {
    cwd: here,
    stdio: ['ignore', 2, 2],
  });
  if (status === 0) return;
  throw new Error('Could not install the packages of test/bench; see the output of npm ci', {
    cause: error,
  });
}
