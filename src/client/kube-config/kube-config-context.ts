import type { Cluster, Context } from '@kubernetes/client-node/dist/config_types.js';
import { newClusters, newContexts } from '@kubernetes/client-node/dist/config_types.js';
import type { ClusterConfig } from './cluster-config.ts';
import { isRecord } from '../../util/values.ts';
import { EntryReader, parse } from './kube-config-entry.ts';
import { KubeConfigError } from './kube-config-error.ts';
import type { KubeConfigEntry, KubeConfigFile } from './kube-config-file.ts';
import { UserReader } from './kube-config-user.ts';

export interface ContextChoice {
  /** What messages call the kubeconfig: a file, or several. */
  readonly source: string;
  /** Absent: none was named, and the kubeconfig has no current one. */
  readonly context: string | undefined;
  /** What an exec plugin inherits. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/**
 * The configuration one context of a kubeconfig stands for.
 *
 * @throws {KubeConfigError} naming the entry that is missing or wrong
 */
export function configOfContext(kubeconfig: KubeConfigFile, choice: ContextChoice): ClusterConfig {
  const { source, context: contextName } = choice;
  if (!contextName) {
    throw new KubeConfigError(
      `${source}: no context is chosen. Name one by --context${known(kubeconfig.contexts)}.`,
    );
  }
  const contextEntry = entry(kubeconfig.contexts, 'context', contextName, source);
  const context = parse<Context>(newContexts, contextEntry, 'context');
  const clusterEntry = entry(kubeconfig.clusters, 'cluster', context.cluster, source);
  const cluster = new ClusterReader(clusterEntry);
  const userEntry = context.user
    ? entry(kubeconfig.users, 'user', context.user, source)
    : undefined;
  const user = userEntry && new UserReader(userEntry);
  return {
    source,
    ...cluster.read(),
    credentials: user?.credentials(choice.environment, cluster.pluginSettings()) ?? {
      kind: 'none',
    },
    ...user?.impersonation(),
    ...(context.namespace
      ? { namespace: context.namespace }
      : { namespace: 'default', namespaceIsAssumed: true }),
  };
}

class ClusterReader extends EntryReader {
  readonly #cluster: Cluster;

  constructor(entry: KubeConfigEntry) {
    super(entry, 'cluster');
    this.#cluster = parse<Cluster>(newClusters, entry, 'cluster');
  }

  read(): Pick<
    ClusterConfig,
    'server' | 'ca' | 'tlsServerName' | 'insecureSkipTlsVerify' | 'proxyUrl'
  > {
    const ca = this.pem('certificate-authority');
    const tlsServerName = this.text('tls-server-name');
    const proxyUrl = this.text('proxy-url');
    const insecureSkipTlsVerify = this.#cluster.skipTLSVerify;
    if (ca && insecureSkipTlsVerify) {
      throw this.wrong('certificate-authority and insecure-skip-tls-verify exclude each other');
    }
    return {
      server: this.#cluster.server,
      insecureSkipTlsVerify,
      ...(ca === undefined ? {} : { ca }),
      ...(tlsServerName === undefined ? {} : { tlsServerName }),
      ...(proxyUrl === undefined ? {} : { proxyUrl }),
    };
  }

  /** What the cluster keeps for exec plugins. */
  pluginSettings(): unknown {
    const { extensions } = this.fields;
    const found = (Array.isArray(extensions) ? (extensions as unknown[]) : []).find(
      (extension) =>
        isRecord(extension) && extension['name'] === 'client.authentication.k8s.io/exec',
    );
    return isRecord(found) ? found['extension'] : undefined;
  }
}

function entry(
  entries: ReadonlyMap<string, KubeConfigEntry>,
  kind: string,
  name: string,
  source: string,
): KubeConfigEntry {
  const found = entries.get(name);
  if (found) return found;
  throw new KubeConfigError(
    `${source}: there is no ${kind} ${JSON.stringify(name)}${known(entries)}. Correct the kubeconfig, or choose another context by --context.`,
  );
}

function known(entries: ReadonlyMap<string, KubeConfigEntry>): string {
  const names = [...entries.keys()].slice(0, 10);
  return names.length === 0 ? ' (it has none)' : ` (it has ${names.join(', ')})`;
}
