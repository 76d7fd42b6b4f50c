import { join } from 'node:path';
import type { CommandContext } from '../program.ts';
import type { Manifest } from '../../client/apply/manifest.ts';
import type { EmbeddedCluster } from '../embedded-cluster.ts';
import { startEmbeddedCluster } from '../embedded-cluster.ts';
import { applyTo, manifestsOf } from './apply.ts';
import { CLUSTER_CONTROLLERS, STORAGE_PROTECTION } from '../../cluster/cluster.ts';
import { selectControllers } from '../run-config.ts';
import { auditOptions } from '../audit-log.ts';
import { EXIT_OK, EXIT_USAGE } from '../errors.ts';
import {
  newIdentity,
  readOwnKubeconfig,
  temporaryKubeconfig,
  writeKubeconfig,
} from '../kubeconfig-file.ts';
import type { ServerIdentity } from '../kubeconfig-file.ts';
import { createLogger } from '../logs/logging.ts';
import type { OptionValues } from '../flags/option.ts';
import type { SERVE_OPTIONS } from '../flags/options.ts';
import { apiServerMetrics } from '../../metrics/api-server-metrics.ts';
import { createRegistry } from '../../metrics/registry.ts';
import { HttpServer } from '../../serving/http-server.ts';
import { debugPage } from '../../serving/page/debug-page.ts';
import { untilAborted } from '../../util/abort.ts';
import type { Logger } from '../../util/logger.ts';
import { runAll } from '../../util/runnable.ts';
import { withUsageErrors } from '../endpoints.ts';

/**
 * Serves until the process is stopped. Listens only after the kubeconfig files were validated. If a
 * kubeconfig exists, the CA, the token and, if free, the port are reused, so that clients can continue.
 */
export async function serve(
  flags: OptionValues<typeof SERVE_OPTIONS>,
  context: CommandContext,
): Promise<number> {
  const { logging, signal, print } = context;
  const { host, port, 'kubernetes-version': kubernetesVersion } = flags;
  const controllers = selectControllers(flags.controllers, CLUSTER_CONTROLLERS);
  const manifests =
    flags.load.length === 0
      ? []
      : await manifestsOf({ filename: flags.load, recursive: false }, context);
  if (!manifests) return EXIT_USAGE;
  const dataDir = flags['data-dir'] || undefined;
  // The identity in the data folder is preferred, because it belongs to the stored objects.
  const targets = [
    dataDir === undefined ? '' : join(dataDir, 'kubeconfig'),
    flags['write-kubeconfig'],
  ].filter((target) => target !== '');
  const found = await Promise.all(targets.map((target) => readOwnKubeconfig(target)));
  const previous = found.find((kubeconfig) => kubeconfig?.identity) ?? found.find(Boolean);
  const identity = previous?.identity ?? (await newIdentity());
  // The log of the cluster controllers is less verbose, because users watch their own controllers.
  const log = createLogger({ ...logging, verbosity: logging.verbosity - 2 });
  const previousPort = Number(previous?.server?.port) || undefined;
  const withoutControllers = flags['no-cluster-controllers'];
  const serviceAccounts = !withoutControllers && controllers.includes('serviceaccount');
  const storageProtection =
    !withoutControllers && STORAGE_PROTECTION.every((name) => controllers.includes(name));
  const audit = await auditOptions(flags['audit-policy-file'], flags['audit-log-path'], log);
  const metrics = apiServerMetrics(createRegistry({ processMetrics: true }));
  const cluster = await startEmbeddedCluster(
    {
      host,
      port,
      previousPort,
      identity,
      dataDir,
      kubernetesVersion,
      serviceAccounts,
      storageProtection,
      metrics,
      audit,
    },
    log,
  );
  const stop = new AbortController();
  const ended = AbortSignal.any([signal, stop.signal]);
  // Controllers run while manifests are loaded, because Pods need ServiceAccounts.
  const running = runAll(
    [
      (end) =>
        withoutControllers ? untilAborted(end) : cluster.runControllers(end, { controllers }),
      ...(flags.web ? [(end: AbortSignal) => runPage(cluster, flags, { log, print }, end)] : []),
    ],
    ended,
  );
  running.catch(() => stop.abort());
  try {
    const code = manifests.length === 0 ? EXIT_OK : await load(manifests, cluster, context);
    if (code !== EXIT_OK) return code;
    const file = await writeFiles(targets, cluster.kubeconfig, identity);
    try {
      print(`Serving a Kubernetes API at ${cluster.url}. Press Ctrl-C to stop. For kubectl:\n`);
      print(exportLine(file.path));
      await running;
    } finally {
      await file.remove();
    }
  } finally {
    stop.abort();
    await running;
    await cluster.close();
  }
  return EXIT_OK;
}

/** Serves the page about the cluster, and prints its address. */
async function runPage(
  cluster: EmbeddedCluster,
  { 'web-port': port }: Pick<OptionValues<typeof SERVE_OPTIONS>, 'web-port'>,
  { log, print }: { readonly log: Logger; readonly print: (text: string) => void },
  signal: AbortSignal,
): Promise<void> {
  const { pages, settings } = cluster.debugRoutes();
  const routes = { pages: new Map([...pages, ...debugPage(['cluster'])]), settings };
  const server = new HttpServer(
    { log },
    { name: 'page', bindAddress: `127.0.0.1:${port}`, routes },
  );
  void server.listening.then((address) =>
    print(`The cluster in a browser: http://${address}/debug/`),
  );
  await withUsageErrors(server).run(signal);
}

/** Applies manifests like `apply`, and takes over fields of other managers. */
async function load(
  manifests: readonly Manifest[],
  cluster: EmbeddedCluster,
  { print, warn, signal }: CommandContext,
): Promise<number> {
  const connection = cluster.connect('crd-controller-serve');
  const flags = {
    'field-manager': 'crd-controller-serve',
    'force-conflicts': true,
    'dry-run': 'none',
    validate: 'strict',
    namespace: '',
    timeout: 60_000,
  } as const;
  try {
    return await applyTo(connection.client, manifests, flags, {
      print,
      warn,
      signal,
      namespace: 'default',
    });
  } finally {
    await connection.close();
  }
}

/** Writes the kubeconfig to `targets`, or to a temporary file. Returns the last file. */
async function writeFiles(
  targets: readonly string[],
  kubeconfig: object,
  { authority }: ServerIdentity,
): Promise<{ readonly path: string; remove(): Promise<void> }> {
  if (targets.length === 0) return temporaryKubeconfig(kubeconfig);
  let path = '';
  for (const target of targets) path = await writeKubeconfig(target, kubeconfig, authority);
  return { path, remove: async () => undefined };
}

/** Returns the shell command that makes kubectl use the kubeconfig at `path`. */
export function exportLine(path: string): string {
  const word = /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", String.raw`'\''`)}'`;
  return `export KUBECONFIG=${word}`;
}
