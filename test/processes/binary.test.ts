import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { CUSTOM_RESOURCE_DEFINITIONS, PODS } from '../../src/api/builtin.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { ApiServer } from '../../src/apiserver/api-server.ts';
import type { Listening } from '../../src/apiserver/api-server-options.ts';
import type { Client } from '../../src/client/client.ts';
import { connectCluster } from '../../src/client/cluster-connection.ts';
import { HttpClient } from '../../src/client/http-client.ts';
import { loadClusterConfig } from '../../src/client/kube-config/kube-config.ts';
import { crdController } from '../support/program.ts';
import type { Program } from '../support/program.ts';
import { countCrd, countDraft } from '../support/test-cluster.ts';

/** Tests the program as processes with files and signals. */
describe('The program as a process', { concurrency: 2, timeout: 120_000 }, () => {
  it('serve in one terminal and the daemon in another reconcile a Count', async (context) => {
    const folder = folderFor(context);
    const kubeconfig = join(folder, 'dev.kubeconfig');
    const server = started(context, ['serve', `--write-kubeconfig=${kubeconfig}`]);
    await server.printed(/^export KUBECONFIG=\S+$/m);
    assert.match(
      server.stdout,
      /^Serving a Kubernetes API at https:\/\/127\.0\.0\.1:\d+\. Press Ctrl-C to stop\. For kubectl:\n\n/,
    );
    assert.ok(server.stdout.endsWith(`export KUBECONFIG=${kubeconfig}\n`));
    assert.equal(statSync(kubeconfig).mode & 0o777, 0o600);

    const args = [
      `--kubeconfig=${kubeconfig}`,
      '--controllers=count',
      '-v=4',
      '-alsologtostderr=true',
    ];
    const daemon = started(context, args);
    await daemon.printed(/"The server does not have the resource; waiting for it to appear"/);
    const connection = connectCluster(await loadClusterConfig({ kubeconfig }));
    const { client } = connection;
    context.after(() => connection.close());
    await client.create(CUSTOM_RESOURCE_DEFINITIONS, countCrd());
    await daemon.printed(/"Starting workers"/);
    await client.create(COUNTS, countDraft('default'));
    await daemon.printed(/"Count is healthy" .*count="default\/test-count" .*ready=3 desired=3/);
    assert.deepEqual(await podNames(client), ['test-count-0', 'test-count-1', 'test-count-2']);

    assert.deepEqual(await endBy('SIGTERM', daemon), { code: 0, stdout: '' });
    assert.ok(messagesOf(daemon).includes('Listed all objects'), '-v=4 logs more than -v=2');
    assert.deepEqual(messagesOf(daemon).slice(-4), [
      'Shutting down; a second signal exits immediately',
      'Shutting down workers',
      'Stopped controller',
      'Flushed events',
    ]);
    assert.doesNotMatch(daemon.stderr, /^E/m);
    await endBy('SIGINT', server);
    assert.equal(server.child.exitCode, 0, server.stderr);
    assert.deepEqual(messagesOf(server), ['Shutting down; a second signal exits immediately']);

    const again = started(context, ['serve', `--write-kubeconfig=${kubeconfig}`]);
    await again.printed(/^export KUBECONFIG=\S+$/m);
    assert.equal(statSync(kubeconfig).mode & 0o777, 0o600, 'overwrites its own file');
  });

  it('a healthy run logs a few lines, and more with -v=2', async (context) => {
    const { server, file } = await apiServer(context);
    const shown = async (verbosity: number) => {
      const daemon = started(context, [
        `--kubeconfig=${file()}`,
        '--controllers=count',
        `-v=${verbosity}`,
      ]);
      await daemon.printed(/"Starting workers"/);
      if (verbosity > 0) await daemon.printed(/"Read the version of the API server" version="v/);
      await endBy('SIGTERM', daemon);
      return messagesOf(daemon);
    };
    const [quiet, changes] = [await shown(0), await shown(2)];
    assert.deepEqual(quiet, [
      'Starting crd-controller',
      'Starting controller',
      'Starting workers',
      'Shutting down; a second signal exits immediately',
      'Shutting down workers',
      'Stopped controller',
    ]);
    assert.deepEqual(changes.filter((message) => !quiet.includes(message)).toSorted(), [
      'Caches populated',
      'Caches populated',
      'Flags',
      'Flushed events',
      'Read the version of the API server',
    ]);
    assert.ok(server.requests.count({ resource: 'counts' }) > 0);
  });

  it('the daemon continues after a restart of the API server, with a few log lines', async (context) => {
    const { client, listening, listenAgain, file } = await apiServer(context);
    const daemon = started(context, [
      `--kubeconfig=${file()}`,
      '--controllers=count',
      '--vmodule=owned-object-control=2',
    ]);
    await daemon.printed(/"Starting workers"/);
    await listening.close();
    await client.create(COUNTS, countDraft('default', { count: 1 }));
    await daemon.printed(/connection refused \(ECONNREFUSED\)\. Check that the server runs/);
    await listenAgain();
    await daemon.printed(/"Recovered" .* from="connection refused" failures=\d+ took="/);
    await daemon.printed(/"Created Pod" .*pod="default\/test-count-0"/);
    await endBy('SIGTERM', daemon);
    assert.equal(daemon.child.exitCode, 0, daemon.stderr);
    assert.deepEqual(await podNames(client), ['test-count-0']);
    assert.ok(messagesOf(daemon).length <= 14, daemon.stderr);
    requireNoStack(daemon);
  });

  it('a rejected token is logged with its solution, and a new token is used', async (context) => {
    const { server, token, file } = await apiServer(context);
    const tokenFile = join(folderFor(context), 'token');
    writeFileSync(tokenFile, 'expired');
    const args = [
      `--kubeconfig=${file({ tokenFile })}`,
      '--controllers=count',
      '--vmodule=failure-log=4',
    ];
    const daemon = started(context, args);
    await daemon.printed(/"Failed again"[^\n]*\n(.*\n)*.*"Failed again"/);
    const errors = daemon.stderr.split('\n').filter((line) => line.startsWith('E'));
    assert.equal(errors.length, 1, 'one line for both caches');
    for (const line of errors) {
      assert.match(line, /err="Unauthorized" .* fix="the server does not accept the credentials: /);
    }
    // An attempt is a watch and a list, each repeated after the token is read again; two caches, few
    // attempts.
    assert.ok(server.requests.count() <= 32, `${server.requests.count()} requests`);
    writeFileSync(tokenFile, token);
    await daemon.printed(/"Starting workers"/);
    await endBy('SIGTERM', daemon);
    assert.equal(daemon.child.exitCode, 0, daemon.stderr);
  });

  it('an HTML page in place of an API server is reported as such, and the request is retried', async (context) => {
    const page = `<!DOCTYPE html><html><body><h1>Sign in</h1>${'<p>Hello</p>'.repeat(10_000)}`;
    let requests = 0;
    const proxy = createServer((_request, response) => {
      requests++;
      response.writeHead(requests % 2 === 0 ? 503 : 200, { 'content-type': 'text/html' });
      response.end(page);
    }).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    context.after(() => proxy.close());
    const { port } = proxy.address() as AddressInfo;
    const { file } = await apiServer(context);
    const master = `--master=http://127.0.0.1:${port}`;
    const args = [
      `--kubeconfig=${file()}`,
      master,
      '--controllers=count',
      '--vmodule=failure-log=4',
    ];
    const daemon = started(context, args);
    await daemon.printed(
      /"Failed again"|"Failed to list"(.*\n)*.*"Failed to list"(.*\n)*.*"Failed/,
    );
    assert.match(daemon.stderr, /not a Kubernetes Status: Sign in Hello/);
    assert.match(daemon.stderr, /Check for a proxy or login page between client and server\./);
    for (const line of daemon.stderr.split('\n')) assert.ok(line.length < 700, line);
    assert.ok(requests <= 12, `${requests} requests`);
    await endBy('SIGTERM', daemon);
    assert.equal(daemon.child.exitCode, 0, daemon.stderr);
    requireNoStack(daemon);
  });
});

function folderFor(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'binary-story-'));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Starts a process that ends with its test. */
function started(context: TestContext, args: readonly string[]): Program {
  const program = crdController(args);
  context.after(async () => {
    program.child.kill('SIGKILL');
    await program.ended();
  });
  return program;
}

/** Starts an API server in this process, with the CRD, and writes kubeconfigs for it. */
async function apiServer(context: TestContext) {
  const server = new ApiServer();
  const client = new HttpClient({ handler: server.handler, server: 'in-process' });
  await client.create(CUSTOM_RESOURCE_DEFINITIONS, countCrd());
  const listening = await listenOnKeptPort(server);
  context.after(() => server.close());
  const folder = folderFor(context);
  return {
    server,
    client,
    listening,
    token: listening.token,
    listenAgain: () => server.listen({ port: listening.port }),
    /** Writes a kubeconfig, by default with the token of the server, and returns its path. */
    file: (user: object = { token: listening.token }) => {
      const path = join(folder, 'kubeconfig');
      const users = [{ name: 'crd-controller', user }];
      const kubeconfig = { ...listening.kubeconfig(), users };
      writeFileSync(path, JSON.stringify(kubeconfig), { mode: 0o600 });
      return path;
    },
  };
}

/**
 * Listens on a port below the ephemeral range, so that no other process uses it while the server is
 * down.
 */
async function listenOnKeptPort(server: ApiServer): Promise<Listening> {
  for (;;) {
    try {
      return await server.listen({ port: 20_000 + Math.floor(Math.random() * 10_000) });
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EADDRINUSE')) throw error;
    }
  }
}

async function podNames(client: Client): Promise<string[]> {
  const { items } = await client.list(PODS, { namespace: 'default' });
  return items.map(({ metadata }) => metadata.name).toSorted();
}

async function endBy(signal: 'SIGTERM' | 'SIGINT', program: Program) {
  program.child.kill(signal);
  const { code, stdout } = await program.ended();
  return { code, stdout };
}

/** Returns the messages of the log in order. */
function messagesOf({ stderr }: Program): string[] {
  return Array.from(
    stderr.matchAll(/^[IE]\d{4} [\d:.]+ +\d+ [\w.-]+:\d+\] "((?:[^"\\]|\\.)*)"/gm),
    ([, message = '']) => message,
  );
}

function requireNoStack({ output }: Program): void {
  assert.doesNotMatch(output, /^\s+at .*:\d+:\d+/m);
}
