import type { ClusterConfig } from './cluster-config.ts';
import type {
  ClusterEntry,
  ContextEntry,
  KubeConfigEntries,
  UserEntry,
} from './kube-config-decoder.ts';
import { NEXT_STEP, pemSource, wrongIn } from './kube-config-entry.ts';
import { KubeConfigError } from './kube-config-error.ts';
import type { Environment } from './kube-config-user.ts';
import { credentialsOfUser, impersonationOfUser } from './kube-config-user.ts';

export interface ContextChoice {
  /** Name of the kubeconfig in messages: one file, or several. */
  readonly source: string;
  readonly context: string;
  /** Environment for exec plugins and proxies. */
  readonly environment: Environment;
  /** Whether new tokens of an OpenID Connect provider can be stored in the files of the entries. */
  readonly storesTokens: boolean;
}

/** Looks up entries by name; client-node's `KubeConfig` is one. */
export interface KubeConfigLookup {
  getContexts(): readonly ContextEntry[];
  getClusters(): readonly ClusterEntry[];
  getUsers(): readonly UserEntry[];
  getContextObject(name: string): ContextEntry | null;
  getCluster(name: string): ClusterEntry | null;
  getUser(name: string): UserEntry | null;
}

/** Returns a lookup of entries, without client-node. */
export function lookupOf({ contexts, clusters, users }: KubeConfigEntries): KubeConfigLookup {
  const find = <T extends { readonly name: string }>(entries: readonly T[], name: string) =>
    entries.find((entry) => entry.name === name) ?? null;
  return {
    getContexts: () => contexts,
    getClusters: () => clusters,
    getUsers: () => users,
    getContextObject: (name) => find(contexts, name),
    getCluster: (name) => find(clusters, name),
    getUser: (name) => find(users, name),
  };
}

/**
 * Returns the configuration of one context of a kubeconfig.
 *
 * @throws {KubeConfigError} with the name of the entry that is missing or wrong
 */
export function configOfContext(
  kubeConfig: KubeConfigLookup,
  choice: ContextChoice,
): ClusterConfig {
  const { source, context: name } = choice;
  const missing = (kind: string, entry: string, entries: readonly { readonly name: string }[]) =>
    new KubeConfigError(
      `${source}: there is no ${kind} ${JSON.stringify(entry)}${namesOf(entries)}. ${NEXT_STEP}.`,
    );
  const context = kubeConfig.getContextObject(name);
  if (!context) {
    if (name !== '') throw missing('context', name, kubeConfig.getContexts());
    throw new KubeConfigError(
      `${source}: no current context is set. Choose one with --context${namesOf(kubeConfig.getContexts())}.`,
    );
  }
  const cluster = kubeConfig.getCluster(context.cluster);
  if (!cluster) {
    if (context.cluster !== '') throw missing('cluster', context.cluster, kubeConfig.getClusters());
    throw wrongIn(context, 'context')('cluster is missing');
  }
  const user = kubeConfig.getUser(context.user);
  if (!user && context.user !== '') throw missing('user', context.user, kubeConfig.getUsers());
  return {
    source,
    ...endpointOf(cluster),
    credentials: user ? credentialsOfUser(user, cluster, choice) : { kind: 'none' },
    ...(user && impersonationOfUser(user)),
    ...(context.namespace
      ? { namespace: context.namespace }
      : { namespace: 'default', namespaceIsAssumed: true }),
  };
}

type Endpoint = Pick<
  ClusterConfig,
  'server' | 'ca' | 'tlsServerName' | 'insecureSkipTlsVerify' | 'proxyUrl'
>;

function endpointOf(cluster: ClusterEntry): Endpoint {
  const { server, tlsServerName, proxyUrl, skipTLSVerify: insecureSkipTlsVerify } = cluster;
  const wrong = wrongIn(cluster, 'cluster');
  if (server === '') throw wrong('server is missing');
  const { caFile = '', caData = '' } = cluster;
  const ca = pemSource(cluster, 'cluster', 'certificate-authority', caFile, caData);
  if (ca && insecureSkipTlsVerify) {
    throw wrong('certificate-authority and insecure-skip-tls-verify exclude each other');
  }
  return {
    server,
    insecureSkipTlsVerify,
    ...(ca && { ca }),
    ...(tlsServerName && { tlsServerName }),
    ...(proxyUrl && { proxyUrl }),
  };
}

function namesOf(entries: readonly { readonly name: string }[]): string {
  const names = entries.slice(0, 10).map(({ name }) => name);
  return names.length === 0 ? ' (it has none)' : ` (it has ${names.join(', ')})`;
}
