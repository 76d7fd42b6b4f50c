import type { CommandContext } from '../command.ts';
import { startEmbeddedCluster } from '../embedded-cluster.ts';
import { EXIT_OK } from '../errors.ts';
import {
  newIdentity,
  readOwnKubeconfig,
  temporaryKubeconfig,
  writeKubeconfig,
} from '../kubeconfig-file.ts';
import { createLogger } from '../logs/logging.ts';
import type { OptionValues } from '../flags/option.ts';
import type { SERVE_OPTIONS } from '../flags/options.ts';
import { untilAborted } from '../../util/abort.ts';

/**
 * Serves until the process is stopped. Listens only after the kubeconfig file was validated. If the
 * kubeconfig exists, the CA, the token and, if free, the port are reused, so that clients can continue.
 */
export async function serve(
  flags: OptionValues<typeof SERVE_OPTIONS>,
  { logging, signal, print }: CommandContext,
): Promise<number> {
  const target = flags['write-kubeconfig'];
  const previous = target ? await readOwnKubeconfig(target) : undefined;
  const identity = previous?.identity ?? (await newIdentity());
  // The log of the cluster controllers is less verbose, because users watch their own controllers.
  const log = createLogger({ ...logging, verbosity: logging.verbosity - 2 });
  const { host, port } = flags;
  const previousPort = Number(previous?.server?.port) || undefined;
  const cluster = await startEmbeddedCluster({ host, port, previousPort, identity }, log);
  try {
    const file = target
      ? {
          path: await writeKubeconfig(target, cluster.kubeconfig, identity.authority),
          remove: async () => undefined,
        }
      : await temporaryKubeconfig(cluster.kubeconfig);
    try {
      print(`Serving a Kubernetes API at ${cluster.url}. Press Ctrl-C to stop. For kubectl:\n`);
      print(exportLine(file.path));
      await (flags['no-cluster-controllers']
        ? untilAborted(signal)
        : cluster.runControllers(signal));
    } finally {
      await file.remove();
    }
  } finally {
    await cluster.close();
  }
  return EXIT_OK;
}

/** Returns the shell command that makes kubectl use the kubeconfig at `path`. */
export function exportLine(path: string): string {
  const word = /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", String.raw`'\''`)}'`;
  return `export KUBECONFIG=${word}`;
}
