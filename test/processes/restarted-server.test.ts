import assert from 'node:assert/strict';
import { createPrivateKey } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { parse } from 'yaml';
import { CUSTOM_RESOURCE_DEFINITIONS, SELF_SUBJECT_REVIEWS } from '../../src/api/builtin.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { connectCluster } from '../../src/client/cluster-connection.ts';
import { loadClusterConfig } from '../../src/client/kube-config/kube-config.ts';
import { temporaryKubeconfig } from '../../src/cli/embedded/kubeconfig-file.ts';
import { Kubectl, findKubectl } from '../support/kubectl.ts';
import { crdController, killAll } from '../support/program.ts';
import type { Program } from '../support/program.ts';
import { countCrd, countDraft } from '../support/test-cluster.ts';

/** Kills the API server of a running daemon and starts another one with its kubeconfig. */
describe('A daemon whose server is killed', { concurrency: 2, timeout: 120_000 }, () => {
  it('continues with a new server that has its data, and resumes its watches', async (context) => {
    const server = await started(context, { keepsData: true });
    const { kubeconfig, killServer, serve, reconcilesNewCount } = server;
    const connection = connectCluster(await loadClusterConfig({ kubeconfig }));
    context.after(() => connection.close());
    const { client } = connection;
    const first = { namespace: 'default', name: 'test-count' };
    const before = await client.get(COUNTS, first);
    await killServer();
    await serve();
    const after = await client.get(COUNTS, first);
    assert.deepEqual(after, before);
    const daemon = await reconcilesNewCount('second-count');
    assert.doesNotMatch(daemon.stderr, /x509|Unauthorized|Kubeconfig changed|Expired/);
    const { resourceVersion } = before.metadata;
    const events: string[] = [];
    for await (const event of await client.watch(COUNTS, { resourceVersion })) {
      if (event.type === 'bookmark' || event.type === 'error') continue;
      const { name } = event.object.metadata;
      events.push(`${event.type} ${name}`);
      if (name === 'second-count') break;
    }
    assert.equal(events.at(-1), 'added second-count');
    assert.ok(!events.includes('added test-count'), 'the watch starts at its resourceVersion');
    const kubectl = findKubectl();
    if (kubectl === undefined) return;
    const shell = new Kubectl({ program: kubectl, kubeconfig, namespace: 'default' });
    context.after(() => shell.close());
    assert.match(await shell.run('get', 'counts'), /second-count[^]*test-count/);
  });

  it('continues with a new server without data, first of the same identity, then with another CA and another token', async (context) => {
    const { kubeconfig, killServer, serve, reconcilesNewCount } = await started(context);
    const text = readFileSync(kubeconfig, 'utf8');
    await killServer();
    await serve();
    assert.equal(readFileSync(kubeconfig, 'utf8'), text, 'the CA, the credentials and the port');
    const [{ user }] = parse(text).users;
    const keyPem = Buffer.from(user['client-key-data'], 'base64');
    assert.equal(createPrivateKey(keyPem).asymmetricKeyType, 'rsa', 'as clients for Java need it');
    const { token, ...certificate } = user;
    for (const credentials of [{ token }, certificate]) {
      const document = { ...parse(text), users: [{ name: 'crd-controller', user: credentials }] };
      assert.equal(await userOf(document), 'admin', Object.keys(credentials).join());
    }
    const daemon = await reconcilesNewCount();
    assert.doesNotMatch(daemon.stderr, /x509|Unauthorized|Kubeconfig changed/);

    const before = await loadClusterConfig({ kubeconfig });
    await killServer();
    rmSync(`${kubeconfig}.ca-key`);
    await serve();
    const after = await loadClusterConfig({ kubeconfig });
    assert.notDeepEqual(after.ca, before.ca);
    assert.notDeepEqual(after.credentials, before.credentials);
    await reconcilesNewCount();
    assert.match(daemon.stderr, /"Kubeconfig changed; reconnecting"/);
  });
});

/** Returns the name of the user of a kubeconfig. */
async function userOf(document: object): Promise<string | undefined> {
  const file = await temporaryKubeconfig(document);
  const connection = connectCluster(await loadClusterConfig({ kubeconfig: file.path }));
  try {
    const { status } = await connection.client.create(SELF_SUBJECT_REVIEWS, {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'SelfSubjectReview',
      metadata: {},
    });
    return status?.userInfo?.username;
  } finally {
    await connection.close();
    await file.remove();
  }
}

/** Starts a server and a daemon as processes that share only a kubeconfig. */
async function started(context: TestContext, { keepsData = false } = {}) {
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
    const data = keepsData ? [`--data-dir=${join(folder, 'data')}`] : [];
    server = start('serve', `--write-kubeconfig=${kubeconfig}`, ...data);
    await server.printed(/^export KUBECONFIG=\S+$/m);
  };
  await serve();
  const daemon = start(
    `--kubeconfig=${kubeconfig}`,
    '--controllers=count',
    '--vmodule=controller=2',
  );
  const healthyLine = /"Count is healthy" .*ready=3 desired=3/g;
  /** Creates a Count, and the CRD if necessary. Resolves when the daemon has made the Count healthy. */
  const reconcilesNewCount = async (name: string = 'test-count'): Promise<Program> => {
    const times = [...daemon.output.matchAll(healthyLine)].length;
    const connection = connectCluster(await loadClusterConfig({ kubeconfig }));
    if (name === 'test-count') {
      await connection.client.create(CUSTOM_RESOURCE_DEFINITIONS, countCrd());
    }
    await connection.client.create(COUNTS, countDraft('default', {}, name));
    await connection.close();
    await daemon.printed(new RegExp(`(${healthyLine.source}[^]*){${times + 1}}`));
    return daemon;
  };
  await reconcilesNewCount();
  return {
    kubeconfig,
    serve,
    reconcilesNewCount,
    killServer: async () => {
      server.child.kill('SIGKILL');
      await server.ended();
      await daemon.printed(/connection refused \(ECONNREFUSED\)/);
    },
  };
}
