import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { CUSTOM_RESOURCE_DEFINITIONS, PODS } from '../../src/api/builtin.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { ApiServer } from '../../src/apiserver/api-server.ts';
import type { Client } from '../../src/client/client.ts';
import { HttpClient } from '../../src/client/http-client.ts';
import { crdController, crdControllerTo, killAll, Program } from '../support/program.ts';
import { until } from '../support/until.ts';
import { countCrd, countDraft } from '../support/test-cluster.ts';

/** Standard streams and files that cannot be written or are not read. */
describe('The program', { concurrency: 2, timeout: 60_000 }, () => {
  for (const [format, redirections] of [
    ['text', '2>/dev/full'],
    ['json', '>/dev/full 2>/dev/full'],
  ] as const) {
    test(`continues if its log in the format ${format} cannot be written`, async (context) => {
      const { client, kubeconfig } = await cluster(context);
      const program = kept(
        context,
        crdControllerTo(redirections, [
          `--kubeconfig=${kubeconfig}`,
          '--controllers=count',
          `--logging-format=${format}`,
          ...(format === 'json' ? ['--log-json-split-stream'] : []),
        ]),
      );
      await client.create(COUNTS, countDraft('default', { count: 1 }));
      await pods(client);
      program.child.kill('SIGTERM');
      assert.equal((await program.ended()).code, 0);
    });
  }

  test('continues if its log is not read', async (context) => {
    const { client, kubeconfig } = await cluster(context);
    const { path, keepOpen } = fifo(context);
    keepOpen();
    const program = kept(
      context,
      crdControllerTo(`2>${path}`, [`--kubeconfig=${kubeconfig}`, '--controllers=count', '-v=10']),
    );
    await client.create(COUNTS, countDraft('default', { count: 20 }));
    await pods(client, 20);
    program.child.kill('SIGTERM');
    assert.equal((await program.ended()).code, 0);
  });

  test('reports an error and fails if its output cannot be written', async () => {
    for (const args of [['version'], ['serve', '--no-cluster-controllers']]) {
      const { code, stderr } = await crdControllerTo('>/dev/full', args).ended();
      assert.equal(code, 1, stderr);
      assert.match(stderr, /^Error: Cannot write to standard output: .*ENOSPC/m);
    }
  });

  test('keeps its exit code if its error message cannot be written', async () => {
    assert.equal((await crdControllerTo('2>/dev/full', ['--no-such-flag']).ended()).code, 2);
  });

  test('does not write a kubeconfig to a FIFO', async (context) => {
    const { path } = fifo(context);
    const { code, stderr } = await crdController(['serve', `--write-kubeconfig=${path}`]).ended();
    assert.equal(code, 2);
    assert.match(stderr, /is not a regular file/);
  });

  test('reads a kubeconfig and manifests from a FIFO as soon as it has a writer', async (context) => {
    const { kubeconfig } = await cluster(context);
    const { path } = fifo(context);
    const args = ['apply', `--kubeconfig=${kubeconfig}`, '-f', path];
    const program = kept(context, crdController(args));
    const manifest = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`;
    spawnSync('sh', ['-c', `printf %s '${manifest}' >"${path}"`]);
    assert.deepEqual(await program.ended(), {
      code: 0,
      stdout: 'configmap/a created\n',
      stderr: '',
    });
  });

  for (const [wait, location] of [
    ['standard input', '-'],
    ['a FIFO', undefined],
  ] as const) {
    test(`stops at the first signal while it waits for ${wait}`, async (context) => {
      const { kubeconfig } = await cluster(context);
      const { path } = fifo(context);
      const args = ['apply', `--kubeconfig=${kubeconfig}`, '-v=1', '-f', location ?? path];
      const program = kept(context, crdControllerTo(location ? `<>${path}` : '', args));
      await program.printed(/"Flags"/);
      program.child.kill('SIGTERM');
      assert.equal((await program.ended()).code, 1);
    });
  }

  test('exits with code 1 at the second signal, also while a thread is blocked', async (context) => {
    const { path } = fifo(context);
    const signals = new URL('../../src/manager/signals.ts', import.meta.url).href;
    const script = `
      import { readFile } from 'node:fs';
      import { terminationSignal } from '${signals}';
      const log = { info: (message) => console.log(message) };
      terminationSignal(process, log);
      readFile(${JSON.stringify(path)}, () => undefined);
      console.log('Waiting');`;
    const args = ['--input-type=module', '--eval', script];
    const program = kept(context, new Program(process.execPath, args, {}));
    await program.printed(/Waiting/);
    program.child.kill('SIGTERM');
    await program.printed(/Shutting down/);
    program.child.kill('SIGINT');
    const { code, stderr } = await program.ended();
    assert.equal(code, 1, stderr);
  });
});

/** Kills the process at the end of the test. */
function kept(context: TestContext, program: Program): Program {
  context.after(() => killAll([program]));
  return program;
}

/** Starts an API server in this process that serves Counts, and writes a kubeconfig for it. */
async function cluster(context: TestContext) {
  const server = new ApiServer();
  const client = new HttpClient({ handler: server.handler, server: 'in-process' });
  await client.create(CUSTOM_RESOURCE_DEFINITIONS, countCrd());
  const listening = await server.listen();
  context.after(() => server.close());
  const kubeconfig = join(folderFor(context), 'kubeconfig');
  writeFileSync(kubeconfig, JSON.stringify(listening.kubeconfig()), { mode: 0o600 });
  return { client, kubeconfig };
}

/** Creates a FIFO without a writer; after `keepOpen` it has a reader that does not read. */
function fifo(context: TestContext) {
  const path = join(folderFor(context), 'fifo');
  assert.equal(spawnSync('mkfifo', [path]).status, 0);
  return {
    path,
    keepOpen: () => {
      const fd = openSync(path, constants.O_RDWR);
      context.after(() => closeSync(fd));
    },
  };
}

function folderFor(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'streams-'));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Resolves when `count` Pods exist. */
function pods(client: Client, count = 1): Promise<boolean> {
  return until(`${count} Pods`, async () => {
    const { items } = await client.list(PODS, { namespace: 'default' });
    return items.length === count || undefined;
  });
}
