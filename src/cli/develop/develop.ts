import type { Flags, ProgramOptions } from '../program/program.ts';
import type { RunOnClusterOptions } from './cluster-run.ts';
import type { RunOnEmbeddedClusterOptions } from './embedded-run.ts';

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
  // An installed program does not need them.
  const { exitWith } = await import('./watched-process.ts');
  const { clusterRun } = await import('./cluster-run.ts');
  await exitWith(() => clusterRun(program, options));
}

/**
 * Runs a program on a cluster in this process, with the CRDs and samples of the project, until SIGINT or SIGTERM. Prints the
 * status of the objects. The API server calls the webhooks without a connection.
 *
 * @experimental
 */
export async function runOnEmbeddedCluster<F extends Flags>(
  program: ProgramOptions<F>,
  options: RunOnEmbeddedClusterOptions,
): Promise<void> {
  const { exitWith } = await import('./watched-process.ts');
  const { embeddedRun } = await import('./embedded-run.ts');
  await exitWith(() => embeddedRun(program, options));
}
