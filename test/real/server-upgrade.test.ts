import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { COUNTS } from '../../src/api/generated/count.ts';
import { connectCluster } from '../../src/client/cluster-connection.ts';
import type { ClusterConnection } from '../../src/client/cluster-connection.ts';
import { serverVersion } from '../../src/client/discovery.ts';
import { isBuilt, KUBERNETES_VERSIONS } from '../../hack/envtest/binaries.ts';
import { startControlPlane } from '../support/control-plane.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { EveryKind } from '../support/every-kind.ts';
import { needsReal } from '../support/skip.ts';
import { TlsCluster } from '../support/tls-cluster.ts';

/** Oldest first: versions built on this machine, and the default version. */
const versions = KUBERNETES_VERSIONS.toReversed().filter((version) =>
  isBuilt(['kube-apiserver'], version),
);
const skip =
  needsReal('a kube-apiserver to replace') ||
  (versions.length < 2 &&
    `SKIPPED: needs an older release too: KUBERNETES_VERSION=1.35 node hack/envtest/main.ts`);

describe('A daemon whose kube-apiserver is upgraded', { skip, timeout: 480_000 }, () => {
  const [first = '', ...later] = versions;
  let plane: ControlPlane;
  let cluster: TlsCluster;
  let kinds: EveryKind;
  let connection: ClusterConnection;
  /** Complete lists that the daemon has requested. */
  let lists: string[] = [];

  before(async () => {
    plane = await startControlPlane({
      cluster: { kubelet: { terminationMs: 0 } },
      kubernetes: first,
    });
    cluster = await TlsCluster.create(plane);
    kinds = new EveryKind(cluster);
    await kinds.install();
    connection = connectCluster(plane.config, {
      wrapTransport: (handler) => (request) => {
        const { pathname, searchParams } = new URL(request.path, 'https://server');
        // Before it resumes a watch, the reflector lists one object to learn the server's state.
        const isProbe = searchParams.get('limit') === '1';
        if ((searchParams.has('limit') && !isProbe) || searchParams.has('sendInitialEvents'))
          lists.push(pathname);
        return handler(request);
      },
    });
  });
  after(async () => {
    await cluster.end();
    await connection.close();
    await plane.close();
  });

  const gitVersion = async () =>
    (await serverVersion(plane.client, AbortSignal.timeout(10_000))).gitVersion;

  it(`from ${versions.join(' to ')}: re-creates no object, and repeats no write and no event`, async () => {
    assert.equal(await gitVersion(), `v${first}`);
    cluster.startDaemon(
      {
        controllers: ['count', 'webapp', 'foo', 'at'],
        namespaces: [cluster.namespace],
      },
      connection.client,
    );
    await kinds.create('old');
    await kinds.untilSettled();
    const before = await kinds.state();
    for (const [index, version] of later.entries()) {
      const from = cluster.lines.length;
      await plane.processes?.terminate('kube-apiserver');
      await plane.processes?.restart('kube-apiserver', version);
      assert.equal(await gitVersion(), `v${version}`);
      lists = [];
      // All existing watches receive the next changes.
      await kinds.create(`new-${index}`);
      await kinds.untilSettled();
      const after = await kinds.state();
      for (const [name, state] of before)
        assert.equal(after.get(name), state, `${version}: ${name}`);
      // A new process has no history from before its start, so each cache lists once.
      assert.deepEqual(lists.toSorted(), [...new Set(lists)].toSorted());
      const errors = cluster.lines.slice(from).filter(({ level }) => level === 'error');
      for (const { message, error } of errors) {
        assert.match(
          `${message}: ${String(error)}`,
          /Cannot reach the API server|not retrying a terminal error/,
        );
      }
    }
    const at = { namespace: cluster.namespace, name: 'old-count' };
    await cluster.client.patch(COUNTS, at, { type: 'merge', body: { spec: { count: 3 } } });
    await kinds.untilSettled();
    await kinds.removeAll();
  });
});
