import { join } from 'node:path';
import { NODES } from '../../src/api/builtin.ts';
import { connectCluster } from '../../src/client/cluster-connection.ts';
import { loadClusterConfig } from '../../src/client/kube-config/kube-config.ts';
import { findOrBuild } from './binaries.ts';
import { ChildProcess } from './child-process.ts';
import { freePorts, startRealControlPlane } from './real-control-plane.ts';
import type { RealControlPlane } from './real-control-plane.ts';

const NODE_READY_TIMEOUT_MS = 120_000;

/**
 * Starts a cluster without containers: the control plane with kube-controller-manager and kube-scheduler, and
 * kwok with one node in place of kubelets. stages.yaml defines the lifecycle of Pods.
 *
 * @param moreFlags of kube-apiserver
 * @throws {BinariesUnavailable} if this machine has no binaries and cannot build them
 */
export async function startRealCluster(
  report: (line: string) => void = () => undefined,
  moreFlags: readonly string[] = [],
): Promise<RealControlPlane> {
  const binaries = await findOrBuild(['kube-controller-manager', 'kube-scheduler', 'kwok'], report);
  const plane = await startRealControlPlane(report, moreFlags);
  const kubeconfig = `--kubeconfig=${plane.kubeconfigPath}`;
  const children: ChildProcess[] = [];
  const stop = async () => {
    await Promise.all(children.map((child) => child.kill()));
    await plane.stop();
  };
  const file = (name: string) => join(plane.folder, name);
  try {
    const ports = await freePorts(2);
    const serving = (name: string, port: number | undefined) => [
      kubeconfig,
      '--leader-elect=false',
      '--bind-address=127.0.0.1',
      `--secure-port=${port}`,
      `--cert-dir=${file(name)}`,
    ];
    children.push(
      new ChildProcess(binaries['kube-controller-manager'], [
        ...serving('controllers', ports[0]),
        `--service-account-private-key-file=${file('service-account-key-file')}`,
        `--root-ca-file=${file('client-ca-file')}`,
        `--cluster-signing-cert-file=${file('client-ca-file')}`,
        `--cluster-signing-key-file=${file('client-ca-key')}`,
      ]),
      new ChildProcess(binaries['kube-scheduler'], serving('scheduler', ports[1])),
      new ChildProcess(binaries.kwok, [
        kubeconfig,
        '--manage-all-nodes',
        '--node-lease-duration-seconds=40',
        `--config=${join(import.meta.dirname, 'stages.yaml')}`,
      ]),
    );
    await addNode(plane, children);
    return { ...plane, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Creates one node with large capacity; resolves when Pods can be bound to it. */
async function addNode(
  { kubeconfigPath }: RealControlPlane,
  children: readonly ChildProcess[],
): Promise<void> {
  const connection = connectCluster(await loadClusterConfig({ kubeconfig: kubeconfigPath }));
  const { client } = connection;
  const room = { cpu: '64', memory: '256Gi', pods: '10000' };
  try {
    await client.create(NODES, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'node-1', labels: { 'kubernetes.io/hostname': 'node-1' } },
      status: { allocatable: room, capacity: room },
    });
    const deadline = performance.now() + NODE_READY_TIMEOUT_MS;
    for (;;) {
      for (const child of children) child.requireRunning();
      const { spec, status } = await client.get(NODES, { name: 'node-1' });
      const isReady = status?.conditions?.some(
        ({ type, status: is }) => type === 'Ready' && is === 'True',
      );
      if (isReady && (spec?.taints ?? []).length === 0) return;
      if (performance.now() > deadline) {
        const logs = children.map((child) => child.log).join('\n');
        throw new Error(`The node is not ready after ${NODE_READY_TIMEOUT_MS} ms\n${logs}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  } finally {
    await connection.close();
  }
}
