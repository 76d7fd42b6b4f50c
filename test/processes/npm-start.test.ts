import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { COMPILE_CACHE } from '../support/compile-cache.ts';
import { bareEnvironment, killAll, Program } from '../support/program.ts';

const ROOT = join(import.meta.dirname, '../..');

describe('npm start', () => {
  const folder = mkdtempSync(join(tmpdir(), 'npm-start-'));
  const programs: Program[] = [];
  after(async () => {
    await killAll(programs);
    rmSync(folder, { recursive: true });
  });
  cpSync(join(ROOT, 'examples/06-library/static-site'), folder, { recursive: true });

  function start(...flags: readonly string[]): Program {
    const environment = {
      ...bareEnvironment(),
      NODE_OPTIONS: `--import ${join(ROOT, 'hack/import-from-source.ts')}`,
      NODE_COMPILE_CACHE: COMPILE_CACHE,
    };
    const args = ['--watch', '--watch-preserve-output', join(folder, 'src/dev.ts'), ...flags];
    const program = new Program(process.execPath, args, environment);
    programs.push(program);
    return program;
  }

  it('runs the program on an embedded cluster, and removes its kubeconfig at the end', async () => {
    const program = start();
    await program.printed(/StaticSite default\/static-site-sample: 2 of 2 replicas are available/);
    assert.ok(existsSync(join(folder, 'dev.kubeconfig')));
    program.child.kill('SIGTERM');
    await program.ended();
    assert.ok(!existsSync(join(folder, 'dev.kubeconfig')));
  });

  it('ends with one line if another process has the folder of the objects', async () => {
    mkdirSync(join(folder, '.cluster'), { recursive: true });
    const lock = join(folder, '.cluster/lock');
    writeFileSync(lock, `${process.pid}\n`);
    const { code, stderr } = await start().ended();
    assert.equal(code, 2, stderr);
    assert.match(stderr, new RegExp(`^Error: .*used by the process ${process.pid}\\b.*\\n$`));
    assert.ok(existsSync(lock));
    rmSync(lock);
  });

  for (const flag of ['--unknown', '--cluster'])
    it(`ends after the flag ${flag} without what it needs, which no change of a file corrects`, async () => {
      const { code, stderr } = await start(flag).ended();
      assert.equal(code, 2, stderr);
      assert.match(stderr, new RegExp(`^Error: .*${flag}`, 'm'));
    });
});
