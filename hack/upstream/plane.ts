import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findOrBuild, output } from '../envtest/binaries.ts';
import { ChildProcess } from '../envtest/child-process.ts';
import { startRealCluster } from '../envtest/real-cluster.ts';
import { startRealControlPlane } from '../envtest/real-control-plane.ts';

/** `crd-controller serve`, and Kubernetes' own programs. */
export const PLANES = ['ours', 'real'] as const;
export type PlaneName = (typeof PLANES)[number];

export interface Plane {
  /** Variables by which tests find the server (`KUBECONFIG`) or its programs (`KUBEBUILDER_ASSETS`). */
  readonly environment: Readonly<Record<string, string>>;
  /** A folder for test data, removed by `stop`. */
  readonly folder: string;
  stop(): Promise<void>;
}

const READY_TIMEOUT_MS = 60_000;
const TERMINATION_TIMEOUT_MS = 10_000;

/** The program `crd-controller`, from source. */
const PROGRAM = join(import.meta.dirname, '../../src/cli/main.ts');

/** As in a cluster, Pods need their ServiceAccount. */
const ADMISSION = '--enable-admission-plugins=ServiceAccount';

/** @param isCluster runs the controllers of a cluster too */
export async function startPlane(
  name: PlaneName,
  isCluster: boolean,
  report: (line: string) => void,
): Promise<Plane> {
  if (name === 'ours') return startOurs(isCluster ? [] : ['--no-cluster-controllers']);
  const cluster = isCluster
    ? await startRealCluster(report, [ADMISSION])
    : await startRealControlPlane(report);
  const { kubeconfigPath, folder } = cluster;
  return { environment: environmentOf(kubeconfigPath), folder, stop: () => cluster.stop() };
}

/** Returns the programs of a plane, for tests that start them. */
export async function assetsOf(name: PlaneName, report: (line: string) => void): Promise<Plane> {
  const folder = await mkdtemp(join(tmpdir(), 'crd-controller-upstream-'));
  const stop = () => rm(folder, { recursive: true, force: true });
  const assets = join(folder, 'assets');
  if (name === 'ours') {
    await output(process.execPath, [PROGRAM, 'envtest-assets', assets], folder);
    return { environment: { KUBEBUILDER_ASSETS: assets }, folder, stop };
  }
  const { etcd } = await findOrBuild(['etcd', 'kube-apiserver'], report);
  return { environment: { KUBEBUILDER_ASSETS: dirname(etcd) }, folder, stop };
}

function environmentOf(kubeconfig: string): Plane['environment'] {
  return { KUBECONFIG: kubeconfig, USE_EXISTING_CLUSTER: 'true' };
}

/** Runs `crd-controller serve` from source. */
async function startOurs(flags: readonly string[]): Promise<Plane> {
  const folder = await mkdtemp(join(tmpdir(), 'crd-controller-upstream-'));
  const kubeconfig = join(folder, 'kubeconfig');
  const server = new ChildProcess(process.execPath, [
    PROGRAM,
    'serve',
    `--write-kubeconfig=${kubeconfig}`,
    ...flags,
  ]);
  const stop = async () => {
    await server.terminate(TERMINATION_TIMEOUT_MS);
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const deadline = performance.now() + READY_TIMEOUT_MS;
    while ((await readFile(kubeconfig, 'utf8').catch(() => '')) === '') {
      server.requireRunning();
      if (performance.now() > deadline) throw new Error(`serve is not ready:\n${server.log}`);
      await sleep(50);
    }
    return { environment: environmentOf(kubeconfig), folder, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
