/**
 * Follows the book as its reader does, with the package that is installed in a folder: creates the project there, writes the
 * files of each chapter, and runs their commands, with the tests of each. Types are checked at the end only. hack/try-package.sh
 * does this.
 *
 *   node hack/docs/follow-book.ts FOLDER
 */
import { spawnSync } from 'node:child_process';
import { join, resolve } from 'node:path';
import { CHAPTERS, followChapter } from '../../test/support/book.ts';

const [folder = '.'] = process.argv.slice(2);
const project = join(resolve(folder), 'tenants');

for (const chapter of CHAPTERS) {
  await followChapter(chapter, project, run);
  console.log(`book: ${chapter} ok`);
}
execute('npm run types', project);
console.log('book: types ok');

async function run(command: string): Promise<void> {
  const isFirst = command.includes('--dir=');
  if (command === 'npm run types') return;
  execute(command, isFirst ? folder : project);
  if (isFirst) execute('npm install --no-audit --no-fund --loglevel=error', project);
}

function execute(command: string, cwd: string): void {
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command], { cwd, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} failed\n${stdout}${stderr}`);
}
