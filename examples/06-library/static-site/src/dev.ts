/**
 * Runs a cluster in this process with the CRDs, the samples and the controllers, until Ctrl-C. Prints the status
 * of the samples. Takes the flags of `src/main.ts`. Use dev.kubeconfig for kubectl. The objects are kept in the folder
 * .cluster: `npm start` restarts this program when a file of it is saved. Delete the folder for an empty cluster.
 *
 * `npm start -- --cluster=CONTEXT` runs the controllers on the cluster of a context of your kubeconfig instead. It prints
 * what it changes there, and removes it at Ctrl-C.
 */
import { fileURLToPath } from 'node:url';
import { runOnCluster, runOnEmbeddedCluster } from 'crd-controller/program';
import { program } from './program.ts';

const crds = pathOf('deploy/crds');
if (process.argv.some((flag) => /^--cluster\b/.test(flag))) {
  await runOnCluster(program, { main: pathOf('src/main.ts'), crds });
} else {
  await runOnEmbeddedCluster(program, {
    crds,
    samples: pathOf('samples'),
    dataDir: pathOf('.cluster'),
    kubeconfig: pathOf('dev.kubeconfig'),
  });
}

function pathOf(path: string): string {
  return fileURLToPath(new URL(`../${path}`, import.meta.url));
}
