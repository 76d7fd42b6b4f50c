import type { ClusterConfig } from '../../client/kube-config/cluster-config.ts';
import { KubeConfigMissingError } from '../../client/kube-config/kube-config-error.ts';
import { loadClusterConfig } from '../../client/kube-config/kube-config.ts';
import type { Clock } from '../../util/clock.ts';
import { goQuote } from '../../util/go-quote.ts';
import { UsageError } from '../common/errors.ts';
import type { OptionValues } from '../flags/option.ts';
import type { CLUSTER_OPTIONS } from '../flags/options.ts';
import { isLoopback } from '../../serving/bind-address.ts';
import type { CommandContext, ProgramOptions } from './program.ts';

/** Cluster and user of a command. */
export interface ClusterAccess {
  /** Path of a kubeconfig file; absent: the default search order of kubectl, or the Pod's ServiceAccount. */
  readonly kubeconfig: string | undefined;
  readonly context: string | undefined;
  /** URL of the API server; overrides the kubeconfig. */
  readonly master: string | undefined;
  readonly impersonate: { readonly user: string; readonly groups: readonly string[] } | undefined;
}

/**
 * Returns the cluster access of the flags.
 *
 * @throws {UsageError} if flags contradict each other, or an address would expose credentials
 */
export function clusterAccess(values: OptionValues<typeof CLUSTER_OPTIONS>): ClusterAccess {
  return Object.freeze({
    kubeconfig: values.kubeconfig || undefined,
    context: values.context || undefined,
    master: values.master ? serverUrl(values.master) : undefined,
    impersonate: impersonation(values.as, values['as-group']),
  });
}

/** Loads the address of the cluster and the credentials. */
export function loadCluster(
  { kubeconfig, context, master, impersonate }: ClusterAccess,
  { environment, log }: Pick<CommandContext, 'environment' | 'log'>,
): Promise<ClusterConfig> {
  return loadClusterConfig({
    kubeconfig,
    context,
    master,
    as: impersonate?.user,
    asGroups: impersonate?.groups,
    environment,
    onWarning: (warning) => log.info('Unsafe configuration', { warning }),
  });
}

/** Interval at which a missing kubeconfig is looked for, in milliseconds. */
const POLL_MS = 500;

/** Interval at which the waiting is logged again, in milliseconds. */
const LOG_MS = 60_000;

/**
 * Loads the address of the cluster and the credentials. Waits while the kubeconfig that was specified does not exist, as
 * for a server that does not respond: the tool that starts a cluster may write the file later.
 *
 * @returns undefined if the signal aborted first
 */
export async function waitForCluster(
  access: ClusterAccess,
  context: Pick<CommandContext, 'environment' | 'log' | 'signal'> & { readonly clock: Clock },
): Promise<ClusterConfig | undefined> {
  const { clock, log, signal } = context;
  let loggedAt = -Infinity;
  while (!signal.aborted) {
    try {
      return await loadCluster(access, context);
    } catch (error) {
      if (!(error instanceof KubeConfigMissingError)) throw error;
      if (clock.monotonic() - loggedAt >= LOG_MS) {
        log.info('Waiting for the kubeconfig', { reason: error.message });
        loggedAt = clock.monotonic();
      }
    }
    await clock.sleep(POLL_MS, signal);
  }
  return undefined;
}

/** Returns the User-Agent header of the program's requests. */
export function userAgent({ name, version }: Pick<ProgramOptions, 'name' | 'version'>): string {
  return `${name}/${version} (${process.platform}/${process.arch})`;
}

/** Credentials are not sent unencrypted: plain HTTP is permitted for a proxy on the same machine only. */
function serverUrl(text: string): string {
  const url = URL.parse(text);
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:') || url.hostname === '') {
    throw new UsageError(
      `invalid value ${goQuote(text)} for --master: must be a URL, as in https://10.0.0.1:6443`,
    );
  }
  if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
    throw new UsageError(
      `invalid value ${goQuote(text)} for --master: must be an https URL, unless the host is a loopback address`,
    );
  }
  return text;
}

function impersonation(user: string, groups: readonly string[]): ClusterAccess['impersonate'] {
  if (user) return Object.freeze({ user, groups: Object.freeze([...groups]) });
  if (groups.length > 0)
    throw new UsageError('--as-group requires --as: groups cannot be impersonated without a user');
  return undefined;
}

/**
 * Validates a namespace name.
 *
 * @throws {UsageError} naming the flag
 */
export function namespaceName(name: string, flag: string): string {
  if (name.length > 63 || !/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(name)) {
    throw new UsageError(
      `invalid value ${goQuote(name)} for ${flag}: a namespace consists of lower-case letters, digits and "-", at most 63 characters`,
    );
  }
  return name;
}
