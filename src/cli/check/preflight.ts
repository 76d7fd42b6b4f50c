import type { Resource } from '../../api/resource.ts';
import type { Client } from '../../client/client.ts';
import type { Clock } from '../../util/clock.ts';
import type { ReadFile } from '../manifests/pieces.ts';
import { checkDefinition } from './definition-check.ts';
import { checkLease } from './lease-check.ts';
import { checkPermissions } from './permission-check.ts';
import { claimsOf } from './rights.ts';
import type { Plan } from './rights.ts';
import type { Row } from './row.ts';
import type { ServerClock } from './server-clock.ts';
import { checkServer } from './server-check.ts';

/** Dependencies of `Preflight`. */
export interface PreflightDeps {
  readonly client: Client;
  /** What messages call the server. */
  readonly server: string;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Around the transport of `client`. */
  readonly serverClock: ServerClock;
  /** Finds files below hack/deploy. */
  readonly read: ReadFile;
}

export interface PreflightPlan extends Plan {
  readonly controllers: readonly {
    readonly name: string;
    readonly isOnByDefault: boolean;
    readonly resource: Resource;
    readonly isBuiltin: boolean;
  }[];
}

/**
 * Everything that must be so before the daemon can work, looked at without changing anything: a row
 * for each. If the server cannot be reached there is one row.
 */
export async function preflight(
  { client, server, clock, serverClock, read }: PreflightDeps,
  plan: PreflightPlan,
  signal: AbortSignal,
): Promise<Row[]> {
  const { rows, isOutOfReach, user } = await checkServer(client, server, clock, signal);
  if (isOutOfReach) return [...rows];
  const definitions = await Promise.all(
    plan.controllers
      .filter(({ isBuiltin }) => !isBuiltin)
      .map(({ resource }) => checkDefinition(client, resource, signal)),
  );
  const permissions: Row[] = [];
  for (const claim of claimsOf(read, plan)) {
    permissions.push(...(await checkPermissions(client, claim, user, signal)));
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
  return [...rows, serverClock.row(), ...definitions, ...permissions, ...leases];
}
