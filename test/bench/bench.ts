/**
 * Runs benchmarks: `npm run bench -- NAME [--option=value...]`. Packages that only benchmarks need have
 * their own package.json here and are installed at the first run.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, globSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Benchmark } from './benchmark.ts';

const here = import.meta.dirname;
const programs = globSync('*/main.ts', { cwd: here, exclude: ['node_modules'] })
  .map((file) => dirname(file))
  .sort();
const workloads = globSync('workloads/*.ts', { cwd: here }).map((file) => basename(file, '.ts'));

const [name, ...rest] = process.argv.slice(2);
const names = [...workloads, ...programs].sort();
if (name === undefined) {
  console.log(
    ['npm run bench -- NAME [--json] [...args], where NAME is one of', ...names].join('\n  '),
  );
} else if (!names.includes(name)) {
  console.error(`bench: unknown benchmark ${name}; known: ${names.join(', ')}`);
  process.exitCode = 2;
} else if (workloads.includes(name)) {
  installPackages();
  const { runCommand } = await import('./support/command.ts');
  await runCommand(name, rest);
} else {
  installPackages();
  const { main } = (await import(`./${name}/main.ts`)) as { main: Benchmark };
  await main({ args: rest.filter((arg) => arg !== '--json'), json: rest.includes('--json') });
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
