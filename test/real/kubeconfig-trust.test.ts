import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { CertificateChain } from '../support/certificate-chains.ts';
import { certificateChains, ChainServer } from '../support/certificate-chains.ts';
import { findKubectl, Kubectl } from '../support/kubectl.ts';
import { needsReal } from '../support/skip.ts';

const skip = needsReal('with kubectl');

test('kubectl trusts the chains of our table', { skip, timeout: 120_000 }, async (t) => {
  const server = await ChainServer.start((_request, response) => response.end('reached'));
  const folder = mkdtempSync(join(tmpdir(), 'trust-'));
  const kubeconfig = join(folder, 'config');
  const kubectl = new Kubectl({ program: findKubectl() ?? '', kubeconfig, namespace: 'default' });
  t.after(async () => {
    kubectl.close();
    rmSync(folder, { recursive: true });
    await server.close();
  });
  for (const chain of certificateChains()) {
    server.use(chain);
    writeFileSync(kubeconfig, JSON.stringify(kubeconfigOf(chain, server.port)));
    const { stdout, stderr } = await kubectl.start(['get', '--raw', '/']).ended();
    const { title, refused } = chain;
    if (refused === undefined) assert.equal(stdout, 'reached', `${title}: ${stderr}`);
    else assert.ok(stderr.includes(`x509: ${refused}`), `${title}: ${stdout}${stderr}`);
  }
});

function kubeconfigOf({ anchors, host }: CertificateChain, port: number): object {
  const cluster = {
    server: `https://127.0.0.1:${port}`,
    'certificate-authority-data': Buffer.from(anchors).toString('base64'),
    ...(isIP(host) === 0 && { 'tls-server-name': host }),
  };
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user: { token: 'x' } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
}
