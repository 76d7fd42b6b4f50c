import { connectCluster } from '../../client/cluster-connection.ts';
import { systemClock } from '../../util/clock.ts';
import { silentLogger } from '../../util/logger.ts';
import {
  allPassed,
  failed,
  formatResults,
  ok,
  resultsJson,
  skipped,
  warning,
} from '../check/check-result.ts';
import { checkServer, ServerClock } from '../check/server-check.ts';
import { loadCluster, userAgent } from '../program/cluster-access.ts';
import { errorText, EXIT_FAILURE, EXIT_OK } from '../common/errors.ts';
import { installCommand } from '../common/own-command.ts';
import type { OptionValues } from '../flags/option.ts';
import { leaseNamespace, runConfig } from '../program/run-config.ts';
import { isNonLoopback } from '../../serving/bind-address.ts';
import { readerOf } from '../program/installation.ts';
import type { ManifestPart } from '../flags/options.ts';
import type { CheckOptions } from '../program/run-options.ts';
import { declaredWebhooks } from '../program/declared-webhooks.ts';
import { checkWebhooks } from '../check/webhook-check.ts';
import type { WebhookPlan } from '../check/webhook-check.ts';
import { needsServer } from '../../webhook/install.ts';
import { webhookNames, webhookRules } from '../../webhook/manifests.ts';
import { isClusterScoped } from '../program/program.ts';
import type { CommandContext, ProgramOptions } from '../program/program.ts';
import type { RunConfig } from '../program/run-config.ts';
import type { Resource } from '../../api/resource.ts';
import type { Client } from '../../client/client.ts';
import type { Clock } from '../../util/clock.ts';
import type { ReadManifest } from '../program/installation.ts';
import {
  checkPermissions,
  requiredPermissions,
  webhookPermissions,
} from '../check/permission-check.ts';
import type { PermissionPlan } from '../check/permission-check.ts';
import type { CheckResult } from '../check/check-result.ts';
import { isApiError } from '../../api/api-error.ts';
import { CUSTOM_RESOURCE_DEFINITIONS, LEASES } from '../../api/builtin.ts';
import type { CustomResourceDefinition, Lease } from '../../api/builtin.ts';
import { objectKey } from '../../api/object-key.ts';
import { formatDuration } from '../../util/duration.ts';
import { groupResourceOf } from '../../api/resource.ts';
import { isRecord } from '../../util/values.ts';

/** Shorter than the program's timeout, because a user waits for the result. */
const REQUEST_TIMEOUT_MS = 10_000;

/**
 * Checks whether a program with these flags could run, and prints the results. Changes nothing.
 *
 * @returns 1 if a check failed
 * @throws {UsageError} on flags that the program rejects too
 */
export async function check(
  program: ProgramOptions,
  flags: OptionValues<CheckOptions>,
  context: Pick<CommandContext, 'environment' | 'log' | 'print' | 'signal'>,
): Promise<number> {
  const config = runConfig(flags, program);
  const clock = systemClock;
  const cluster = await loadCluster(config.cluster, context);
  const serverClock = new ServerClock(clock);
  const { timeoutMs = REQUEST_TIMEOUT_MS } = config.requests;
  const connection = connectCluster(cluster, {
    clock,
    // Failed requests are results with next steps. They are not logged in addition.
    log: context.log.v(4).enabled ? context.log.named('client') : silentLogger,
    userAgent: `${userAgent(program)}/check`,
    requestTimeoutMs: Math.min(timeoutMs, REQUEST_TIMEOUT_MS),
    wrapTransport: (handler) => serverClock.around(handler),
  });
  const leaseAt = config.leaderElection && leaseNamespace(config.leaderElection, cluster);
  try {
    const { client, server } = connection;
    const { name, deploy } = program;
    const read = deploy && readerOf(deploy);
    const install = (part: ManifestPart) => installCommand(name, part, context.environment);
    const deps = { client, server, clock, serverClock, read, install };
    const installedIn =
      leaseAt ?? (cluster.namespaceIsAssumed ? `${name}-system` : cluster.namespace);
    const plan = {
      ...planOf(program, config, leaseAt),
      webhooks: webhookPlan(program, config, installedIn),
    };
    const results = await preflight(deps, plan, context.signal);
    const print = flags.output === 'json' ? [resultsJson(results)] : formatResults(results);
    for (const line of print) context.print(line);
    return allPassed(results) ? EXIT_OK : EXIT_FAILURE;
  } finally {
    await connection.close();
  }
}

/** Returns undefined if the program does not serve webhooks and has no rules in CEL. */
function webhookPlan(
  program: ProgramOptions,
  { webhooks, namespaces }: RunConfig,
  namespace: string,
): WebhookPlan | undefined {
  const entries = webhooks && declaredWebhooks(program, namespaces);
  if (!entries) return undefined;
  const names = webhookNames(program.name, namespace, namespaces);
  return { entries, names, managesCertificate: webhooks.certificate === undefined };
}

function planOf(
  program: ProgramOptions,
  {
    controllers,
    namespaces,
    eventApiVersion,
    leaderElection,
    metricsBindAddress,
    debugBindAddress,
    profilerAddress,
    serving,
  }: RunConfig,
  leaseAt: string | undefined,
): PreflightPlan {
  return {
    controllers: Object.entries(program.controllers)
      .filter(
        ([name, controller]) =>
          controllers.includes(name) && !(namespaces.length > 0 && isClusterScoped(controller)),
      )
      .map(([name, { isOnByDefault = true, resource }]) => ({
        name,
        isOnByDefault,
        resource,
        isBuiltin: !resource.group.includes('.'),
      })),
    namespaces,
    eventGroup: eventApiVersion === 'v1' ? '' : 'events.k8s.io',
    hasProtectedEndpoints:
      (metricsBindAddress !== undefined && serving.isMetricsSecure) ||
      [debugBindAddress, profilerAddress].some(isNonLoopback),
    leases:
      leaderElection && leaseAt !== undefined
        ? { namespace: leaseAt, names: leaseNames(leaderElection) }
        : undefined,
  };
}

function leaseNames({ name, shards = 1 }: { name: string; shards?: number }): string[] {
  return shards === 1 ? [name] : Array.from({ length: shards }, (_, shard) => `${name}-${shard}`);
}

/** Dependencies of `preflight`. */
export interface PreflightDeps {
  readonly client: Client;
  /** Address of the server, for messages. */
  readonly server: string;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Wraps the transport of `client`. */
  readonly serverClock: ServerClock;
  /** Reads a manifest of an installation; undefined if the program has none. */
  readonly read: ReadManifest | undefined;
  /** Returns the command that installs a part of the manifests. */
  readonly install: (part: ManifestPart) => string;
}

export interface PreflightPlan extends PermissionPlan {
  readonly controllers: readonly {
    readonly name: string;
    readonly isOnByDefault: boolean;
    readonly resource: Resource;
    readonly isBuiltin: boolean;
  }[];
  /** @default no webhooks */
  readonly webhooks?: WebhookPlan | undefined;
}

/**
 * Checks the prerequisites of the program without changing anything. Returns one result for each check. If
 * the server cannot be reached, there is one result.
 */
export async function preflight(
  { client, server, clock, serverClock, read, install }: PreflightDeps,
  plan: PreflightPlan,
  signal: AbortSignal,
): Promise<CheckResult[]> {
  const { results, isUnreachable, user } = await checkServer(client, server, clock, signal);
  if (isUnreachable) return [...results];
  const definitions = await Promise.all(
    plan.controllers
      .filter(({ isBuiltin }) => !isBuiltin)
      .map(({ resource }) => checkDefinition(client, resource, installStep(install, read), signal)),
  );
  const permissions: CheckResult[] = [];
  for (const required of read ? requiredPermissions(read, plan) : []) {
    permissions.push(...(await checkPermissions(client, required, user, signal)));
  }
  const { webhooks } = plan;
  if (webhooks?.managesCertificate && needsServer(webhooks.entries)) {
    const { entries, names } = webhooks;
    const required = webhookPermissions(webhookRules(entries, names), names.namespace);
    permissions.push(...(await checkPermissions(client, required, user, signal)));
  }
  const reviews = webhooks
    ? await checkWebhooks(
        {
          client,
          now: () => serverClock.now(),
          install: installStep(install, read, 'webhook'),
          signal,
        },
        webhooks,
      )
    : [];
  const leases = await Promise.all(
    (plan.leases?.names ?? []).map((name) =>
      checkLease(
        client,
        { namespace: plan.leases?.namespace ?? '', name },
        () => serverClock.now(),
        signal,
      ),
    ),
  );
  return [...results, serverClock.result(), ...definitions, ...permissions, ...reviews, ...leases];
}

/**
 * Checks who holds a Lease, and whether the holder renews it.
 *
 * @param now returns the time of the server's clock, in milliseconds
 */
async function checkLease(
  client: Client,
  at: { readonly namespace: string; readonly name: string },
  now: () => number,
  signal: AbortSignal,
): Promise<CheckResult> {
  const check = `Lease ${objectKey(at.namespace, at.name)}`;
  try {
    return leaseResult(check, await client.get(LEASES, at, { signal }), now());
  } catch (error) {
    signal.throwIfAborted();
    if (isApiError(error, 'notFound')) return ok(check, 'not held yet');
    // The missing permission has a result of its own.
    if (isApiError(error, 'forbidden')) return skipped(check, 'no permission to read it');
    return failed(check, errorText(error));
  }
}

function leaseResult(check: string, { spec = {} }: Lease, nowMs: number): CheckResult {
  const { holderIdentity: holder = '', acquireTime, renewTime, leaseDurationSeconds = 0 } = spec;
  if (holder === '') return ok(check, 'not held');
  const agoMs = nowMs - Date.parse(renewTime ?? '');
  const since = acquireTime === undefined ? '' : ` since ${acquireTime}`;
  const held = `held by ${JSON.stringify(holder)}${since}`;
  if (Number.isNaN(agoMs)) return warning(check, `${held}, without a renewal time`);
  const ago = formatDuration(1000 * Math.max(0, Math.round(agoMs / 1000)));
  if (agoMs <= leaseDurationSeconds * 1000) return ok(check, `${held}, renewed ${ago} ago`);
  return warning(
    check,
    `${held}, not renewed for ${ago}: another replica acquires it`,
    `If the holder was not stopped on purpose, find its Pod: kubectl get pods -A | grep ${podOf(holder)}`,
  );
}

/** Identities start with the name of the Pod or host. */
function podOf(holder: string): string {
  const [name = ''] = holder.split('_');
  return /^[\w.-]+$/.test(name) ? name : 'crd-controller';
}

/** Returns how to install the CRDs or the webhooks of this version. */
function installStep(
  install: PreflightDeps['install'],
  read: ReadManifest | undefined,
  part: ManifestPart = 'crds',
): string {
  return read ? `Install it: ${install(part)}` : 'Install it by kubectl apply';
}

/**
 * Checks that the CRD of `resource` exists, is Established and serves the required version. A user who
 * cannot read CRDs, such as the program's own ServiceAccount, learns only whether the version is served.
 */
async function checkDefinition(
  client: Client,
  resource: Resource,
  install: string,
  signal: AbortSignal,
): Promise<CheckResult> {
  const name = groupResourceOf(resource);
  const check = `CRD ${name}`;
  try {
    const crd = await client.get(CUSTOM_RESOURCE_DEFINITIONS, { name }, { signal });
    return crdResult(check, crd, resource.version, install);
  } catch (error) {
    signal.throwIfAborted();
    if (isApiError(error, 'notFound')) return failed(check, 'not installed', install);
    if (!isApiError(error, 'forbidden')) return failed(check, errorText(error));
    return checkServed(client, resource, check, install, signal);
  }
}

function crdResult(
  check: string,
  crd: CustomResourceDefinition,
  version: string,
  install: string,
): CheckResult {
  const { conditions = [] } = crd.status ?? {};
  const refusal = conditions.find(
    ({ type, status }) => (type === 'Established' || type === 'NamesAccepted') && status !== 'True',
  );
  if (refusal) {
    return failed(
      check,
      `not served: condition ${refusal.type} is ${refusal.status}, ${refusal.reason ?? ''}: ${refusal.message ?? ''}`,
      'Another CRD may use the same names. List them: kubectl get crds',
    );
  }
  if (!conditions.some(({ type }) => type === 'Established')) {
    return failed(check, 'not Established yet', 'Wait a few seconds and run the check again');
  }
  if (crd.metadata.deletionTimestamp !== undefined) {
    return failed(
      check,
      'being deleted: waits until its objects are deleted',
      'Wait until it is deleted, then install it again',
    );
  }
  const served = crd.spec.versions.filter((each) => each.served).map((each) => each.name);
  if (served.includes(version)) return ok(check, `Established, serves ${version}`);
  return failed(
    check,
    `serves ${served.join(', ') || 'no version'}, but this release requires ${version}`,
    install,
  );
}

async function checkServed(
  client: Client,
  { group, version, plural }: Resource,
  check: string,
  install: string,
  signal: AbortSignal,
): Promise<CheckResult> {
  try {
    const answer = await client.raw({ path: `/apis/${group}/${version}`, signal });
    const resources = isRecord(answer) ? answer['resources'] : undefined;
    const isServed =
      Array.isArray(resources) &&
      resources.some((each: unknown) => isRecord(each) && each['name'] === plural);
    if (isServed) return ok(check, `serves ${version}`);
  } catch (error) {
    signal.throwIfAborted();
    if (!isApiError(error, 'notFound')) return failed(check, errorText(error));
  }
  return failed(check, `${version} is not served; no permission to read the CRD`, install);
}
