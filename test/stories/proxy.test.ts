import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { commandLine } from '../../src/cli/command-line.ts';
import { temporaryKubeconfig } from '../../src/cli/embedded/kubeconfig-file.ts';
import { startControlPlane } from '../support/control-plane.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { ForwardProxy } from '../support/forward-proxy.ts';
import { TlsCluster } from '../support/tls-cluster.ts';
import { PROGRAM } from '../support/own-program.ts';

/** A host name that only the proxy can resolve. */
const HOST = 'cluster.invalid';
const USER = 'jane:canary%2Fsecret';

describe('A cluster behind a proxy', { timeout: 60_000 }, () => {
  let plane: ControlPlane;
  let cluster: TlsCluster;
  let proxy: ForwardProxy;
  let kubeconfig: Awaited<ReturnType<typeof temporaryKubeconfig>>;
  let port: string;

  before(async () => {
    plane = await startControlPlane({ cluster: { kubelet: { terminationMs: 0 } } });
    cluster = await TlsCluster.create(plane);
    await cluster.installCrd();
    proxy = await ForwardProxy.start({ user: USER, resolve: () => '127.0.0.1' });
    ({ port } = new URL(plane.config.server));
    kubeconfig = await temporaryKubeconfig({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'test',
      contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
      clusters: [
        {
          name: 'test',
          cluster: {
            server: `https://${HOST}:${port}`,
            'tls-server-name': 'localhost',
            'certificate-authority-data': Buffer.from(caOf(plane)).toString('base64'),
          },
        },
      ],
      users: [{ name: 'test', user: { token: tokenOf(plane) } }],
    });
  });
  after(async () => {
    await kubeconfig.remove();
    await proxy.close();
    await cluster.end();
    await plane.close();
  });

  it('all requests use the proxy in HTTPS_PROXY, and no log line contains its password', async () => {
    await cluster.applyCount({ count: 2 });
    let output = '';
    const print = (text: string) => (output += `${text}\n`);
    const code = await commandLine(
      PROGRAM,
      [
        `--kubeconfig=${kubeconfig.path}`,
        `--namespaces=${cluster.namespace}`,
        '--controllers=count',
        '--once',
        '-v=10',
      ],
      { HTTPS_PROXY: proxy.url, NO_PROXY: '10.0.0.0/8,.svc,.cluster.local' },
      {
        print,
        warn: print,
        colour: false,
        logging: { write: print, now: Date.now, pid: 1 },
      },
    );
    assert.equal(code, 0, output);
    assert.equal((await cluster.pods()).length, 2);
    const host = new URL(proxy.url).host;
    assert.ok(output.includes(`server="https://${HOST}:${port}" proxy="${host}"`), output);
    // Requests and watches have separate connections.
    assert.ok(proxy.tunnels.length >= 2, proxy.tunnels.join());
    assert.deepEqual(new Set(proxy.tunnels), new Set([`${HOST}:${port}`]));
    assert.equal(proxy.refused, 0);
    assert.doesNotMatch(output, /canary/);
    for (const secret of [USER, decodeURIComponent(USER)]) {
      assert.ok(!output.includes(Buffer.from(secret).toString('base64')));
    }
  });
});

function caOf({ config: { ca } }: ControlPlane): string {
  assert.ok(ca?.kind === 'data');
  return ca.pem;
}

function tokenOf({ config: { credentials } }: ControlPlane): string {
  assert.ok(credentials.kind === 'token');
  return credentials.token;
}
