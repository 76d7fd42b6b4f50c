import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { after, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { CHAPTERS, followChapter } from '../support/book.ts';
import { COMPILE_CACHE } from '../support/compile-cache.ts';

const ROOT = join(import.meta.dirname, '../..');

describe('A reader of the book', () => {
  const scratch = mkdtempSync(join(tmpdir(), 'book-'));
  after(() => rmSync(scratch, { recursive: true, force: true }));
  const project = join(scratch, 'tenants');
  const bin = installFromSource();
  for (const chapter of CHAPTERS) {
    it(`gets to the end of ${chapter}`, () =>
      followChapter(chapter, project, (command) => run(command, chapter)));
  }

  /** Prepares what `npm install` does, with the package of this checkout. */
  function installFromSource(): string {
    const modules = join(project, 'node_modules');
    mkdirSync(modules, { recursive: true });
    for (const name of readdirSync(join(ROOT, 'node_modules'))) {
      symlinkSync(join(ROOT, 'node_modules', name), join(modules, name));
    }
    const command = join(scratch, 'crd-controller');
    writeFileSync(command, `#!/bin/sh\nexec node "${join(ROOT, 'src/cli/main.ts')}" "$@"\n`);
    chmodSync(command, 0o755);
    return scratch;
  }

  async function run(command: string, chapter: string): Promise<void> {
    // hack/try-package.sh runs the tests of each chapter, with the built package. Here, the last chapter does.
    const isLast = chapter === CHAPTERS.at(-1);
    if (command === 'npm run types' || (!isLast && /npm (?:test|run rbac)/.test(command))) return;
    // `npm test` checks the role that is written here.
    await execute(command.replace('rbac -- --check', 'rbac'));
  }

  async function execute(command: string): Promise<void> {
    // The command that creates the project runs beside its folder.
    const isFirst = command.includes('--dir=');
    await promisify(execFile)('sh', ['-c', command.replace(/^npx /, '')], {
      cwd: isFirst ? scratch : project,
      env: {
        ...process.env,
        PATH: [bin, join(ROOT, 'node_modules/.bin'), process.env['PATH']].join(delimiter),
        NODE_OPTIONS: `--import=${join(ROOT, 'hack/import-from-source.ts')}`,
        NODE_COMPILE_CACHE: COMPILE_CACHE,
        NODE_TEST_CONTEXT: undefined,
      },
    }).catch((error: unknown) => assert.fail(outputOf(error)));
  }
});

/** The output of a command that failed. */
function outputOf(error: unknown): string {
  const { message, stdout = '' } = error as { readonly message: string; readonly stdout?: string };
  return `${message}\n${stdout}`;
}
