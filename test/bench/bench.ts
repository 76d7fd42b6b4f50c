/**
 * Runs a benchmark: `npm run bench -- NAME [--json] [...args]`; without a name it lists them. A
 * benchmark is a folder beside this file whose `main.ts` exports `main`. Packages that only
 * benchmarks need are installed here, in a package of their own, when the first one runs.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, globSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Benchmark } from './benchmark.ts';

const here = import.meta.dirname;
const names = globSync('*/main.ts', { cwd: here, exclude: ['node_modules'] })
  .map((file) => dirname(file))
  .sort();

const [name, ...rest] = process.argv.slice(2);
if (name === undefined) {
  console.log(
    ['npm run bench -- NAME [--json] [...args], where NAME is one of', ...names].join('\n  '),
  );
} else if (!names.includes(name)) {
  console.error(`bench: there is no ${name}; there are ${names.join(', ')}`);
  process.exitCode = 2;
} else {
  installPackages();
  const { main } = (await import(`./${name}/main.ts`)) as { main: Benchmark };
  await main({ args: rest.filter((arg) => arg !== '--json'), json: rest.includes('--json') });
}

/** As the lock file has them; again whenever that has changed. */
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
  throw new Error('The packages of test/bench could not be installed', { cause: error });
}
