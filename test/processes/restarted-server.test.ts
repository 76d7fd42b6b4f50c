import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { CUSTOM_RESOURCE_DEFINITIONS } from '../../src/api/builtin.ts';
import { connectCluster } from '../../src/client/cluster-connection.ts';
import { loadClusterConfig } from '../../src/client/kube-config/kube-config.ts';
import { crdController, killAll } from '../support/program.ts';
import type { Program } from '../support/program.ts';
import { countCrd } from '../support/world.ts';

/** The API server is killed under a running daemon, and another one is started with its kubeconfig. */
describe('given a daemon and a server that is killed', { concurrency: 2, timeout: 120_000 }, () => {
  it('it goes on with a server of the same identity', async (context) => {
    const { kubeconfig, killServer, serve, recovered } = await started(context);
    const before = readFileSync(kubeconfig, 'utf8');
    await killServer();
    await serve();
    assert.equal(readFileSync(kubeconfig, 'utf8'), before, 'the CA, the token and the port');
    const daemon = await recovered();
    assert.doesNotMatch(daemon.stderr, /x509|Unauthorized|Kubeconfig changed/);
  });

  it('it goes on with a server that has another CA and another token', async (context) => {
    const { kubeconfig, killServer, serve, recovered } = await started(context);
    const before = await loadClusterConfig({ kubeconfig });
    await killServer();
    rmSync(`${kubeconfig}.ca-key`);
    await serve();
    const after = await loadClusterConfig({ kubeconfig });
    assert.notDeepEqual(after.ca, before.ca);
    assert.notDeepEqual(after.credentials, before.credentials);
    const daemon = await recovered();
    assert.match(daemon.stderr, /"Kubeconfig changed; reconnecting"/);
  });
});

/** A server and a daemon, as processes, which have nothing in common but a kubeconfig. */
async function started(context: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'restarted-server-'));
  const kubeconfig = join(folder, 'dev.kubeconfig');
  const programs: Program[] = [];
  context.after(async () => {
    await killAll(programs);
    rmSync(folder, { recursive: true, force: true });
  });
  const start = (...args: string[]) => {
    const program = crdController(args);
    programs.push(program);
    return program;
  };
  let server: Program;
  const serve = async () => {
    server = start('serve', `--write-kubeconfig=${kubeconfig}`);
    await server.printed(/^export KUBECONFIG=\S+$/m);
  };
  await serve();
  const daemon = start(`--kubeconfig=${kubeconfig}`, '--controllers=count');
  const install = async () => {
    const connection = connectCluster(await loadClusterConfig({ kubeconfig }));
    await connection.client.create(CUSTOM_RESOURCE_DEFINITIONS, countCrd());
    await connection.close();
  };
  await install();
  await daemon.printed(/"Starting workers"/);
  return {
    kubeconfig,
    serve,
    /** Resolves once every cache of the daemon watches the new server. */
    recovered: async (): Promise<Program> => {
      await install();
      await daemon.printed(/"Recovered" .*resource="counts/);
      await daemon.printed(/"Recovered" .*resource="pods/);
      return daemon;
    },
    killServer: async () => {
      server.child.kill('SIGKILL');
      await server.ended();
      await daemon.printed(/connection refused \(ECONNREFUSED\)/);
    },
  };
}
