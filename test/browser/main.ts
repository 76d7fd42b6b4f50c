/**
 * Runs the tests of the debug page in Chromium: `npm run test:browser`. Packages that only these tests need are
 * installed at the first run. `$CHROMIUM` is the browser's program; by default it is searched for in the usual places.
 * Without one, nothing is tested. Screenshots are written to dist/screenshots. `npm run test:browser -- --pictures`
 * writes the pictures of the documentation instead.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { join } from 'node:path';
import { CHROMIUM } from './chromium.ts';

const here = import.meta.dirname;

if (CHROMIUM === undefined) {
  console.log(
    'test:browser: SKIPPED: Chromium is not installed. Run apt-get install chromium, or set $CHROMIUM.',
  );
} else {
  if (!existsSync(join(here, 'node_modules/playwright-core'))) {
    run('npm', ['ci', '--no-audit', '--no-fund']);
  }
  run(join(here, '../../node_modules/.bin/tsc'), ['--noEmit', '-p', here]);
  if (process.argv.includes('--pictures')) {
    const { writePictures } = await import('./pictures.ts');
    await writePictures();
    process.exit();
  }
  const files = globSync('*.test.ts', { cwd: here }).map((file) => join(here, file));
  const given = process.argv.slice(2);
  const limits = ['--test-concurrency=1', '--test-timeout=240000', '--test-reporter=spec'];
  run(process.execPath, ['--test', ...limits, ...(given.length > 0 ? given : files)]);
}

function run(program: string, args: readonly string[]): void {
  const { status, error } = spawnSync(program, args, {
    cwd: program === 'npm' ? here : join(here, '../..'),
    stdio: 'inherit',
  });
  if (error) throw error;
  if (status !== 0) process.exit(1);
}
