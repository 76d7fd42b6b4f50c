/**
 * Runs the tests of the files that changed since the merge base with main, or since the given revision, also those
 * that are not committed: `npm run test:changed [-- REVISION]`.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { testsOfChanges } from './mutants/tests-of.ts';

const root = join(import.meta.dirname, '..');

function git(...args: readonly string[]): string[] {
  const { status, stdout, stderr } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  if (status !== 0) throw new Error(`git ${args.join(' ')}: ${stderr.trim()}`);
  return stdout.split('\n').filter((line) => line !== '');
}

function mergeBase(): string {
  const branches = git('branch', '--all', '--list', 'main', 'origin/main', '--format=%(refname)');
  const [branch] = branches.toReversed();
  if (branch === undefined) throw new Error('There is no branch main: give a revision');
  return git('merge-base', 'HEAD', branch)[0] ?? 'HEAD';
}

const revision = process.argv[2] ?? mergeBase();
const changed = [
  ...git('diff', '--name-only', revision),
  ...git('ls-files', '--others', '--exclude-standard'),
].filter((file) => existsSync(join(root, file)));
const tests = testsOfChanges(changed);
console.log(`${changed.length} changed files, ${tests.length} test files`);
if (tests.length > 0) {
  const node = ['--import', './test/support/preload.ts', '--test', '--test-reporter=spec'];
  const { status } = spawnSync(
    process.execPath,
    [...node, '--test-concurrency=3', '--test-timeout=300000', ...tests],
    { cwd: root, stdio: 'inherit' },
  );
  process.exitCode = status ?? 1;
}
