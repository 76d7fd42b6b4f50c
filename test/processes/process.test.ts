import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { CUSTOM_RESOURCE_DEFINITIONS, PODS } from '../../src/api/builtin.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { ApiServer } from '../../src/apiserver/api-server.ts';
import { HttpClient } from '../../src/client/http-client.ts';
import { Deferred } from '../../src/util/deferred.ts';
import type { Ended } from '../support/program.ts';
import { crdController, killAll } from '../support/program.ts';
import { countCrd } from '../support/test-cluster.ts';

const HINT = "Run 'crd-controller --help' for usage.\n";

function run(...args: readonly string[]): Promise<Ended> {
  return crdController(args).ended();
}

function folderFor(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'cli-process-'));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

// The demo waits most of the time; the other tests run meanwhile.
describe('The program', { concurrency: 3 }, () => {
  test('the demo completes and all its checks pass', { timeout: 60_000 }, async () => {
    const { code, stdout, stderr } = await run('demo', '--only=count');
    assert.equal(code, 0, stdout + stderr);
    assert.equal(stderr, '');
    assert.ok(!stdout.includes('✗'));
    assert.ok(!stdout.includes('\u001b'), 'no colours without a terminal');
    assert.match(
      stdout,
      /\n\d+ checks passed, 6 Pods created, \d+ events, \d+ requests, [\d.]+s\n$/,
    );
  });

  describe('The command line', { concurrency: 2 }, () => {
    test('--help and --version print to standard output and succeed', async () => {
      const [help, version] = await Promise.all([run('--help'), run('-version')]);
      assert.equal(help.code, 0);
      assert.match(help.stdout, /Usage: crd-controller \[run\] \[flags\]/);
      assert.equal(help.stderr, '');
      assert.equal(version.code, 0);
      assert.match(version.stdout, /^crd-controller v\d+\.\d+\.\d+ \(.*node v\d+.*\)\n$/);
    });

    test('serve --load applies manifests before it is announced, or fails', async (context) => {
      const folder = folderFor(context);
      writeFileSync(join(folder, 'crd.json'), JSON.stringify(countCrd()));
      const serve = (...args: readonly string[]) =>
        crdController(['serve', ...args], {}, JSON.stringify(draft));
      // It needs the ServiceAccount that a cluster controller creates.
      const draft = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'loaded' },
        spec: { containers: [{ name: 'web', image: 'nginx' }] },
      };
      const server = serve(`--load=${folder}`, '--load=-');
      context.after(() => killAll([server]));
      await server.printed(/^export KUBECONFIG=\S+$/m);
      assert.match(
        server.stdout,
        /^customresourcedefinition[^\n]* created\npod\/loaded created\nServing/,
      );
      const missing = await serve(`--load=${folder}/missing.yaml`).ended();
      assert.equal(missing.code, 2);
      assert.match(missing.stderr, /missing\.yaml/);
      // Clients can connect while manifests are applied and controllers start.
      const kubeconfig = join(folderFor(context), 'kubeconfig');
      writeFileSync(join(folder, 'crd.json'), JSON.stringify({ ...countCrd(), spec: {} }));
      const rejected = await serve(`--load=${folder}`, `--write-kubeconfig=${kubeconfig}`).ended();
      assert.notEqual(rejected.code, 0);
      assert.ok(existsSync(kubeconfig));
    });

    test('an unknown flag and an invalid value print one line and a hint, with exit code 2', async () => {
      const [unknown, bad] = await Promise.all([run('--no-such-flag'), run('-v=loud')]);
      assert.deepEqual(unknown, {
        code: 2,
        stdout: '',
        stderr: `Error: unknown flag: --no-such-flag\n${HINT}`,
      });
      assert.deepEqual(bad, {
        code: 2,
        stdout: '',
        stderr: `Error: invalid value "loud" for -v: must be a whole number, 0 or more\n${HINT}`,
      });
    });

    test('it does not start with certificate verification disabled', async () => {
      const program = crdController([], { NODE_TLS_REJECT_UNAUTHORIZED: '0' });
      const { code, stderr } = await program.ended();
      assert.equal(code, 2);
      assert.match(
        stderr,
        /^Error: NODE_TLS_REJECT_UNAUTHORIZED=0 disables certificate verification/,
      );
    });

    test('names a missing kubeconfig, and exits with code 2', async () => {
      const { code, stderr } = await run('check', '--kubeconfig=/nonexistent/kubeconfig');
      assert.equal(code, 2);
      assert.match(stderr, /^Error: .*\/nonexistent\/kubeconfig.*\n$/);
    });
  });

  describe('A signal', { concurrency: 2 }, () => {
    test('lets requests in flight complete, and the process exits with code 0', async (context) => {
      const { program, reached, release, client } = await daemonCreatingPod(context);
      await reached;
      program.child.kill('SIGTERM');
      await program.printed(/"Shutting down workers".* inFlight=1/);
      release();
      const { code, stderr } = await program.ended();
      assert.equal(code, 0, stderr);
      const { items } = await client.list(PODS, { namespace: 'default' });
      assert.equal(items.length, 1);
      assert.doesNotMatch(stderr, /^E/m);
    });

    test('that is repeated ends the process at once with exit code 1', async (context) => {
      const { program, reached } = await daemonCreatingPod(context);
      await reached;
      program.child.kill('SIGTERM');
      await program.printed(/"Shutting down workers"/);
      program.child.kill('SIGINT');
      const { code, stderr } = await program.ended();
      assert.equal(code, 1, stderr);
      assert.match(stderr, /"Exiting immediately" signal="SIGINT"/);
    });
  });
});

/** Starts a daemon whose request to create a Pod waits for `release`. */
async function daemonCreatingPod(context: TestContext) {
  const server = new ApiServer();
  const client = new HttpClient({ handler: server.handler, server: 'in-process' });
  await client.create(CUSTOM_RESOURCE_DEFINITIONS, countCrd());
  await client.create(COUNTS, {
    apiVersion: 'demo.mark8s.io/v1',
    kind: 'Count',
    metadata: { name: 'one', namespace: 'default' },
    spec: { name: 'nginx', count: 1 },
  });
  const reached = new Deferred();
  const released = new Deferred();
  server.faults.beforeRequest(async ({ method, info }) => {
    if (method !== 'POST' || info?.resource !== 'pods') return;
    reached.resolve();
    await released.promise;
  });
  const listening = await server.listen();
  const kubeconfig = join(folderFor(context), 'kubeconfig');
  writeFileSync(kubeconfig, JSON.stringify(listening.kubeconfig()), { mode: 0o600 });
  const program = crdController([`--kubeconfig=${kubeconfig}`]);
  context.after(async () => {
    program.child.kill('SIGKILL');
    released.resolve();
    await server.close();
  });
  return { program, client, reached: reached.promise, release: () => released.resolve() };
}

test('serve runs a command with a kubeconfig, and ends with its exit code', async () => {
  const script = 'test -f "$KUBECONFIG" && test "$USE_EXISTING_CLUSTER" = true && exit 7';
  const { code, stdout } = await crdController(['serve', '--', 'sh', '-c', script]).ended();
  assert.deepEqual([code, stdout], [7, '']);
  assert.equal((await crdController(['serve', '--', 'no-such-command']).ended()).code, 127);
});

test('serve passes SIGTERM to its command, and waits for it', async (context) => {
  const script = 'trap "echo stopped; exit 5" TERM; echo ready; while :; do sleep 0.1; done';
  const program = crdController(['serve', '--', 'sh', '-c', script]);
  context.after(() => program.child.kill('SIGKILL'));
  await program.printed(/ready/);
  program.child.kill('SIGTERM');
  const { code, stdout } = await program.ended();
  assert.deepEqual([code, stdout], [5, 'ready\nstopped\n']);
});
