import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { KubeConfigError } from '../../../../src/client/kube-config/kube-config-error.ts';
import { loadCluster, waitForCluster } from '../../../../src/cli/program/cluster-access.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';
import { recordingLogger } from '../../../support/recording-logger.ts';

const KUBECONFIG = `
current-context: dev
contexts: [{ name: dev, context: { cluster: dev, user: dev } }]
clusters: [{ name: dev, cluster: { server: 'https://127.0.0.1:6443' } }]
users: [{ name: dev, user: { token: secret } }]
`;

describe('waitForCluster', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'cluster-access-'));
  });
  after(() => rm(folder, { recursive: true }));

  function start(kubeconfig: string) {
    const access = { kubeconfig, context: undefined, master: undefined, impersonate: undefined };
    const clock = new FakeClock();
    const stop = new AbortController();
    const { log, lines } = recordingLogger();
    const context = { environment: {}, log, clock, signal: stop.signal };
    return { cluster: waitForCluster(access, context), clock, stop, lines };
  }

  it('waits for a kubeconfig that does not exist yet', async () => {
    const file = join(folder, 'late');
    const { cluster, clock, lines } = start(file);
    while (lines.length === 0) await clock.advance(0);
    await writeFile(file, KUBECONFIG, { mode: 0o600 });
    await clock.advance(1_000);
    assert.equal((await cluster)?.server, 'https://127.0.0.1:6443');
    assert.equal(lines.length, 1);
  });

  it('logs once a minute that it waits', async () => {
    const { clock, stop, lines } = start(join(folder, 'never'));
    for (let passedMs = 0; passedMs < 121_000; passedMs += 500) {
      while (clock.pending === 0) await new Promise((next) => setImmediate(next));
      await clock.advance(500);
    }
    assert.equal(lines.length, 3);
    stop.abort();
  });

  it('impersonates the user with the groups', async () => {
    const kubeconfig = join(folder, 'config');
    await writeFile(kubeconfig, KUBECONFIG, { mode: 0o600 });
    const impersonate = { user: 'jane', groups: ['dev', 'ops'] };
    const access = { kubeconfig, context: undefined, master: undefined, impersonate };
    const { log } = recordingLogger();
    const { impersonation } = await loadCluster(access, { environment: {}, log });
    assert.deepEqual([impersonation?.user, impersonation?.groups], ['jane', ['dev', 'ops']]);
  });

  it('stops waiting when the signal aborts', async () => {
    const { cluster, clock, stop, lines } = start(join(folder, 'never'));
    while (lines.length === 0) await clock.advance(0);
    stop.abort();
    assert.equal(await cluster, undefined);
  });

  it('does not wait for a kubeconfig that is wrong', async () => {
    const file = join(folder, 'wrong');
    await writeFile(file, 'clusters: 1', { mode: 0o600 });
    await assert.rejects(start(file).cluster, KubeConfigError);
  });
});
