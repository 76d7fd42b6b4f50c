/**
 * Builds and runs a real control plane for tests and local experiments.
 *
 *   node hack/envtest/main.ts [COMPONENT…]   builds missing components and prints their folder
 *   node hack/envtest/main.ts start          runs etcd and kube-apiserver until Ctrl-C
 *
 * Components are etcd and kube-apiserver (the default), kube-controller-manager, kube-scheduler, kubectl and
 * kwok. If set, $KUBEBUILDER_ASSETS is a folder with these binaries.
 */
import { once } from 'node:events';
import { dirname } from 'node:path';
import { COMPONENTS, findOrBuild, isComponent } from './binaries.ts';
import { startRealControlPlane } from './real-control-plane.ts';

try {
  const args = process.argv.slice(2);
  await (args[0] === 'start' ? start() : printFolder(args));
} catch (error) {
  console.error('envtest:', error instanceof Error ? error.message : error);
  process.exitCode = 1;
}

async function printFolder(args: readonly string[]): Promise<void> {
  const components = args.filter(isComponent);
  if (components.length < args.length) {
    console.error(`envtest: expected start or components of ${COMPONENTS.join(', ')}`);
    process.exitCode = 2;
    return;
  }
  const wanted = components.length > 0 ? components : (['etcd', 'kube-apiserver'] as const);
  const [path = ''] = Object.values(await findOrBuild(wanted, report));
  console.log(dirname(path));
}

async function start(): Promise<void> {
  const controlPlane = await startRealControlPlane(report);
  console.log(`export KUBECONFIG=${controlPlane.kubeconfigPath}`);
  console.error('Press Ctrl-C to stop the control plane and remove its data');
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
  await controlPlane.stop();
}

function report(line: string): void {
  console.error(`envtest: ${line}`);
}
