import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { CUSTOM_RESOURCE_DEFINITIONS } from '../../src/api/builtin.ts';
import { ApiServer } from '../../src/apiserver/api-server.ts';
import { HttpClient } from '../../src/client/http-client.ts';
import { COMPILE_CACHE } from '../support/compile-cache.ts';
import { bareEnvironment, killAll, Program } from '../support/program.ts';

const ROOT = join(import.meta.dirname, '../..');
const PROJECT = join(ROOT, 'examples/06-library/static-site');

describe('npm start -- --cluster', () => {
  const folder = mkdtempSync(join(tmpdir(), 'run-on-cluster-'));
  const kubeconfig = join(folder, 'kubeconfig');
  const server = new ApiServer();
  const programs: Program[] = [];
  after(async () => {
    await killAll(programs);
    await server.close();
    rmSync(folder, { recursive: true });
  });

  function start(...flags: readonly string[]): Program {
    const args = ['--import', join(ROOT, 'hack/import-from-source.ts')];
    const dev = join(PROJECT, 'src/dev.ts');
    const environment = {
      ...bareEnvironment(),
      NODE_OPTIONS: args.join(' '),
      NODE_COMPILE_CACHE: COMPILE_CACHE,
    };
    const program = new Program(process.execPath, [dev, ...flags], environment);
    programs.push(program);
    return program;
  }

  it('requires the name of a context', async () => {
    const { code, stderr } = await start('--cluster').ended();
    assert.deepEqual([code, /--cluster=CONTEXT names the context/.test(stderr)], [2, true]);
  });

  async function startOnCluster() {
    const listening = await server.listen();
    const text = JSON.stringify(listening.kubeconfig());
    writeFileSync(kubeconfig, text, { mode: 0o600 });
    const { 'current-context': context }: { readonly 'current-context': string } = JSON.parse(text);
    const client = new HttpClient({ handler: server.handler, server: listening.url });
    const definitions = async () => (await client.list(CUSTOM_RESOURCE_DEFINITIONS)).items.length;
    const program = start(`--cluster=${context}`, `--kubeconfig=${kubeconfig}`, '-v=2');
    await program.printed(/create CustomResourceDefinition staticsites[^]*Starting workers/);
    assert.equal(await definitions(), 1);
    return { program, definitions, context };
  }

  it('runs the program once with the CRDs of the project, and removes them at the end', async () => {
    const { program, definitions, context } = await startOnCluster();
    const second = await start(`--cluster=${context}`, `--kubeconfig=${kubeconfig}`).ended();
    assert.equal(second.code, 2, second.stderr);
    assert.match(second.stderr, new RegExp(`^Error: The process ${program.child.pid} runs .*\\n$`));
    // Ctrl-C with `node --watch` sends two.
    program.child.kill('SIGINT');
    program.child.kill('SIGINT');
    const { code, stdout } = await program.ended();
    assert.equal(code, 0, program.output);
    assert.match(stdout, /removed CustomResourceDefinition staticsites/);
    assert.equal(await definitions(), 0);
  });

  it('removes the CRDs when its terminal is closed', async () => {
    const { program, definitions } = await startOnCluster();
    program.child.stdout?.destroy();
    program.child.stderr?.destroy();
    program.child.kill('SIGHUP');
    await program.ended();
    assert.equal(await definitions(), 0);
  });

  it('stops the program if it is killed', async () => {
    const { program } = await startOnCluster();
    program.child.kill('SIGKILL');
    // The program has the same output, which ends with it.
    await program.ended();
    assert.match(program.output, /Stopped controller/);
  });
});
