import { access, readFile, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { isIPv6 } from 'node:net';
import type { ClusterConfig, Impersonation } from './cluster-config.ts';
import { configOfContext, lookupOf } from './kube-config-context.ts';
import type { KubeConfigEntries } from './kube-config-decoder.ts';
import { decodeKubeConfig } from './kube-config-decoder.ts';
import { KubeConfigError, KubeConfigMissingError } from './kube-config-error.ts';
import { mergeKubeConfigs, readKubeConfigFile } from './kube-config-file.ts';
import { isRecord } from '../../util/values.ts';
import { isLoopbackHost, proxyFor } from './proxy-environment.ts';
import { checkOptions } from '../../util/check-options.ts';
import type { OptionNames } from '../../util/check-options.ts';

const OPTIONS: OptionNames<ClusterConfigOptions> = {
  kubeconfig: true,
  context: true,
  master: true,
  as: true,
  asGroups: true,
  environment: true,
  home: true,
  serviceAccountDirectory: true,
  onWarning: true,
};

/** Options of {@link loadClusterConfig}. */
export interface ClusterConfigOptions {
  /** Path of a kubeconfig. Otherwise: $KUBECONFIG, the service account of the Pod, ~/.kube/config. */
  readonly kubeconfig?: string | undefined;
  /**
   * Name of a context.
   * @default the kubeconfig's current context
   */
  readonly context?: string | undefined;
  /** URL of the API server; overrides that of the configuration. */
  readonly master?: string | undefined;
  /** User to impersonate. */
  readonly as?: string | undefined;
  /** Groups to impersonate; requires `as`. */
  readonly asGroups?: readonly string[] | undefined;
  /** @default the process's environment */
  readonly environment?: Environment | undefined;
  /** @default the user's home */
  readonly home?: string | undefined;
  /** @default `/var/run/secrets/kubernetes.io/serviceaccount` */
  readonly serviceAccountDirectory?: string | undefined;
  /** Called for insecure settings: a kubeconfig that others can read, certificates that are not verified. */
  readonly onWarning?: ((warning: string) => void) | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

const SERVICE_ACCOUNT_DIRECTORY = '/var/run/secrets/kubernetes.io/serviceaccount';

/**
 * Loads the configuration of a cluster from the first source that exists: the `kubeconfig` option, $KUBECONFIG
 * (several files are merged as in kubectl), the service account of the Pod, ~/.kube/config.
 *
 * @throws {KubeConfigError} with one line: the source, the problem and the next step
 */
export async function loadClusterConfig(
  options: ClusterConfigOptions = {},
): Promise<ClusterConfig> {
  checkOptions(options, OPTIONS, 'loadClusterConfig');
  const { environment = process.env, onWarning = () => undefined } = options;
  requireVerification(environment);
  const { config: found, context } = await find(options, environment, onWarning);
  const config = withProxy(
    { ...found, ...impersonationOf(options), server: serverOf(options, found) },
    environment,
  );
  if (config.insecureSkipTlsVerify) {
    onWarning(
      `${config.source}: insecure-skip-tls-verify is set: connections to ${config.server} can be intercepted. Set certificate-authority instead.`,
    );
  }
  if (context !== undefined) {
    // Pin the context: a change of the current context must not move a running program to another cluster.
    reloaders.set(config, () =>
      reload(config.source, { ...options, environment, context, onWarning: undefined }),
    );
  }
  return config;
}

/**
 * Returns the configuration of the current context of client-node's `KubeConfig`, for programs that already have one. Later
 * changes of `kubeConfig` have no effect. Files of certificates and tokens are read again when they change.
 *
 * @throws {KubeConfigError} if the current context, its cluster or its user is missing or invalid
 */
export function fromKubeConfig(kubeConfig: { exportConfig(): string }): ClusterConfig {
  requireVerification(process.env);
  const exported = JSON.parse(kubeConfig.exportConfig()) as Record<string, unknown>;
  const users = Array.isArray(exported['users']) ? (exported['users'] as unknown[]) : [];
  const entries = decodeKubeConfig({ ...exported, users: users.map(withTokenFile) }, KUBE_CONFIG);
  const choice = {
    source: KUBE_CONFIG,
    context: entries.currentContext,
    environment: process.env,
    storesTokens: false,
  };
  const config = configOfContext(lookupOf(entries), choice);
  return withProxy({ ...config, server: serverOf({}, config) }, process.env);
}

/** Source of configurations that are not from a file, for messages. */
const KUBE_CONFIG = 'KubeConfig';

/** Converts client-node's form of a service account to the one of kubeconfig files. */
function withTokenFile(entry: unknown): unknown {
  const user = isRecord(entry) ? entry['user'] : undefined;
  const provider = isRecord(user) ? user['auth-provider'] : undefined;
  if (!isRecord(entry) || !isRecord(user) || !isRecord(provider)) return entry;
  const { name, config } = provider;
  if (name !== 'tokenFile' || !isRecord(config)) return entry;
  return { ...entry, user: { ...user, 'auth-provider': null, ...config } };
}

/** Functions that read a configuration again. A changed copy of a configuration has none. */
const reloaders = new WeakMap<ClusterConfig, () => Promise<ClusterConfig>>();

/**
 * Returns the function that reads a configuration's kubeconfig again; undefined if `config` does not
 * come from one, or is a changed copy of one that does.
 */
export function reloaderOf(config: ClusterConfig): (() => Promise<ClusterConfig>) | undefined {
  return reloaders.get(config);
}

/** @throws {KubeConfigError} also if another source would be used now, which could be another cluster */
async function reload(source: string, options: ClusterConfigOptions): Promise<ClusterConfig> {
  const config = await loadClusterConfig(options);
  if (config.source === source) return config;
  throw new KubeConfigError(`The kubeconfig ${source} no longer exists. Restore it.`);
}

interface Found {
  readonly config: ClusterConfig;
  /**
   * The context that was used, if the configuration comes from regular files, which can be read again. A pipe
   * cannot: the second read returns nothing or blocks.
   */
  readonly context?: string | undefined;
}

async function find(
  options: ClusterConfigOptions,
  environment: Environment,
  onWarning: (warning: string) => void,
): Promise<Found> {
  const { home = homedir(), serviceAccountDirectory = SERVICE_ACCOUNT_DIRECTORY } = options;
  const load = (files: readonly string[]) => loadFiles(files, options, environment, onWarning);

  if (options.kubeconfig) {
    const found = await load([options.kubeconfig]);
    if (found) return found;
    throw new KubeConfigMissingError(
      `The kubeconfig ${options.kubeconfig} does not exist. Check the path in --kubeconfig.`,
    );
  }
  const listed = environment['KUBECONFIG']?.split(delimiter).filter((file) => file !== '') ?? [];
  if (listed.length > 0) {
    const found = await load(listed);
    if (found) return found;
    throw new KubeConfigMissingError(
      `KUBECONFIG is set to ${environment['KUBECONFIG']}, which does not exist. Correct or unset it.`,
    );
  }
  const pod = await inCluster(serviceAccountDirectory, environment);
  if (pod) return { config: pod };
  const found = await load([join(home, '.kube', 'config')]);
  if (found) return found;
  if (options.master) return { config: bareConfig(options.master) };
  throw new KubeConfigError(
    `No cluster is configured: no --kubeconfig, no KUBECONFIG, no service account in ${serviceAccountDirectory}, no ${join(home, '.kube', 'config')}. Specify a kubeconfig with --kubeconfig, or start a local cluster: crd-controller serve.`,
  );
}

async function loadFiles(
  files: readonly string[],
  options: ClusterConfigOptions,
  environment: Environment,
  onWarning: (warning: string) => void,
): Promise<Found | undefined> {
  const read = await Promise.all(files.map((file) => readKubeConfigFile(file, onWarning)));
  const present: KubeConfigEntries[] = read.filter((file) => file !== undefined);
  if (present.length === 0) return undefined;
  const entries = mergeKubeConfigs(present);
  const { KubeConfig } = await import('./client-node.ts');
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromOptions(entries);
  const source = files.join(delimiter);
  const context = options.context || kubeConfig.getCurrentContext();
  const areRegular = await Promise.all(files.map(isRegularOrMissing));
  const storesTokens = !areRegular.includes(false);
  const choice = { source, context, environment, storesTokens };
  const config = configOfContext(kubeConfig, choice);
  return storesTokens ? { config, context } : { config };
}

async function isRegularOrMissing(file: string): Promise<boolean> {
  return stat(file).then(
    (found) => found.isFile(),
    () => true,
  );
}

/** Returns the configuration of a Pod with a mounted service account, or undefined. */
async function inCluster(
  directory: string,
  environment: Environment,
): Promise<ClusterConfig | undefined> {
  const host = environment['KUBERNETES_SERVICE_HOST'];
  const port = environment['KUBERNETES_SERVICE_PORT'];
  const tokenPath = join(directory, 'token');
  if (!host || !port || !(await exists(tokenPath))) return undefined;
  const named = await readFile(join(directory, 'namespace'), 'utf8').catch(() => '');
  return {
    source: 'in-cluster',
    server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
    ca: { kind: 'file', path: join(directory, 'ca.crt') },
    insecureSkipTlsVerify: false,
    credentials: { kind: 'tokenFile', path: tokenPath },
    ...(named.trim()
      ? { namespace: named.trim() }
      : { namespace: 'default', namespaceIsAssumed: true }),
  };
}

function bareConfig(server: string): ClusterConfig {
  return {
    source: '--master',
    server,
    insecureSkipTlsVerify: false,
    credentials: { kind: 'none' },
    namespace: 'default',
    namespaceIsAssumed: true,
  };
}

/** Returns the server's URL in a normal form. Permits plain HTTP only for this machine, to protect credentials. */
function serverOf({ master }: ClusterConfigOptions, { server, source }: ClusterConfig): string {
  const where = master ? '--master' : source;
  const given = master || server;
  // As in Go: what can be no URL is not corrected, and an address without a scheme is one of plain HTTP.
  const hasScheme = /^[a-z][a-z0-9+.-]*:\/\/[^/]/i.test(given);
  // eslint-disable-next-line no-control-regex
  const url = /[\s\\\x00-\x1f\x7f]/.test(given)
    ? null
    : URL.parse(hasScheme ? given : `http://${given}`);
  if (!url || !/^https?:$/.test(url.protocol) || (!hasScheme && url.pathname !== '/')) {
    throw new KubeConfigError(
      `${where}: ${JSON.stringify(withoutUserInfo(given))} is not a server address. Expected https://HOST:PORT.`,
    );
  }
  // client-go ignores them, too.
  url.search = '';
  url.hash = '';
  if (url.username || url.password) {
    throw new KubeConfigError(
      `${where}: the server address must not contain a user or password. Set them in the kubeconfig's user.`,
    );
  }
  if (url.protocol === 'http:' && !isLoopbackHost(url.hostname)) {
    throw new KubeConfigError(
      `${where}: ${url.origin} would send credentials unencrypted. Use https://; http:// is for this machine only.`,
    );
  }
  return url.href.replace(/\/+$/, '');
}

function withProxy(config: ClusterConfig, environment: Environment): ClusterConfig {
  const proxyUrl = config.proxyUrl ?? proxyFor(new URL(config.server), environment);
  if (proxyUrl === undefined) return config;
  const url = URL.parse(proxyUrl);
  // client-go knows socks5h in the environment only.
  const protocols = config.proxyUrl === undefined ? /^(https?|socks5h?):$/ : /^(https?|socks5):$/;
  if (!url?.host || !protocols.test(url.protocol)) {
    throw new KubeConfigError(
      `${config.source}: the proxy ${withoutUserInfo(proxyUrl)} is not supported. Expected http://HOST:PORT, https:// or socks5://.`,
    );
  }
  return { ...config, proxyUrl };
}

function impersonationOf({ as, asGroups = [] }: ClusterConfigOptions): {
  readonly impersonation?: Impersonation;
} {
  if (as) return { impersonation: { user: as, groups: asGroups, extra: new Map() } };
  if (asGroups.length === 0) return {};
  throw new KubeConfigError('--as-group requires a user to impersonate. Add --as.');
}

function requireVerification(environment: Environment): void {
  if (environment['NODE_TLS_REJECT_UNAUTHORIZED'] === '0') {
    throw new KubeConfigError(
      'NODE_TLS_REJECT_UNAUTHORIZED=0 disables the verification of all TLS connections of this process. Unset it; trust a CA with certificate-authority in the kubeconfig, or with NODE_EXTRA_CA_CERTS.',
    );
  }
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** Removes user and password, also from malformed URLs: a password can contain any character. */
function withoutUserInfo(url: string): string {
  const scheme = /^[a-z][a-z0-9+.-]{0,20}:\/\//i.exec(url)?.[0] ?? '';
  return scheme + url.slice(Math.max(scheme.length, url.lastIndexOf('@') + 1));
}
