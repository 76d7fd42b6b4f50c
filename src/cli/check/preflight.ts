import type { Resource } from '../../api/resource.ts';
import type { Client } from '../../client/client.ts';
import type { Clock } from '../../util/clock.ts';
import type { ReadFile } from '../installation.ts';
import { checkDefinition } from './definition-check.ts';
import { checkPermissions, requiredPermissions } from './permission-check.ts';
import type { PermissionPlan } from './permission-check.ts';
import type { CheckResult } from './check-result.ts';
import type { ServerClock } from './server-check.ts';
import { checkServer } from './server-check.ts';
import { isApiError } from '../../api/api-error.ts';
import { LEASES } from '../../api/builtin.ts';
import type { Lease } from '../../api/builtin.ts';
import { objectKey } from '../../api/object-key.ts';
import { formatDuration } from '../../util/duration.ts';
import { errorText } from '../error-text.ts';
import { failed, ok, skipped, warning } from './check-result.ts';

/** Dependencies of `preflight`. */
export interface PreflightDeps {
  readonly client: Client;
  /** Address of the server, for messages. */
  readonly server: string;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Wraps the transport of `client`. */
  readonly serverClock: ServerClock;
  /** Reads a file below hack/deploy. */
  readonly read: ReadFile;
}

export interface PreflightPlan extends PermissionPlan {
  readonly controllers: readonly {
    readonly name: string;
    readonly isOnByDefault: boolean;
    readonly resource: Resource;
    readonly isBuiltin: boolean;
  }[];
}

/**
 * Checks the prerequisites of the daemon without changing anything. Returns one result for each check. If
 * the server cannot be reached, there is one result.
 */
export async function preflight(
  { client, server, clock, serverClock, read }: PreflightDeps,
  plan: PreflightPlan,
  signal: AbortSignal,
): Promise<CheckResult[]> {
  const { results, isUnreachable, user } = await checkServer(client, server, clock, signal);
  if (isUnreachable) return [...results];
  const definitions = await Promise.all(
    plan.controllers
      .filter(({ isBuiltin }) => !isBuiltin)
      .map(({ resource }) => checkDefinition(client, resource, signal)),
  );
  const permissions: CheckResult[] = [];
  for (const required of requiredPermissions(read, plan)) {
    permissions.push(...(await checkPermissions(client, required, user, signal)));
  }
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
  return [...results, serverClock.result(), ...definitions, ...permissions, ...leases];
}

/**
 * Checks who holds a Lease, and whether the holder renews it.
 *
 * @param now returns the time of the server's clock, in milliseconds
 */
export async function checkLease(
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
