import type { Flags, ProgramOptions } from '../program/program.ts';
import type { RunOnClusterOptions } from './cluster-run.ts';

/**
 * Runs a program from this machine on the cluster of a context of the kubeconfig, which `--cluster` names. It first prints
 * what it changes there: it applies the CRDs, and registers the webhooks with a URL of this machine. At the end it removes
 * what it added, except CRDs that existed before or have objects. `node --watch` restarts it without removing anything.
 *
 * @experimental
 */
export async function runOnCluster<F extends Flags>(
  program: ProgramOptions<F>,
  options: RunOnClusterOptions,
): Promise<void> {
  // An installed program does not need it.
  const { clusterRun } = await import('./cluster-run.ts');
  process.exitCode = await clusterRun(program, options);
}
