import { hostname } from 'node:os';
import type { Client } from '../client/client.ts';
import { HttpClient } from '../client/http-client.ts';
import { WriteFence } from '../client/write-fence.ts';
import { leaseTimeoutMs, newIdentity } from '../leaderelection/leader-elector-options.ts';
import type { GivenElection, LeaderElectionOptions } from './coordination.ts';

/** The part of the options of a program from which the defaults of its leader election come. */
export interface ElectingProgram {
  readonly client: Client;
  readonly name?: string | undefined;
  readonly host?: string | undefined;
  readonly leaderElection?: boolean | GivenElection | undefined;
}

/**
 * Returns the client of the controllers and the complete options of the leader election. Without `client` and `fence`,
 * two clients that share the connections of the program's client are created: one whose writes are fenced, and one for
 * the Lease, without a rate limit and with a short timeout.
 *
 * @throws {RangeError} if name or namespace of the Lease is unknown
 * @throws {TypeError} if a client other than an `HttpClient` needs a fence
 */
export function withElectionDefaults({ client, name, host, leaderElection }: ElectingProgram): {
  readonly client: Client;
  readonly leaderElection: LeaderElectionOptions | undefined;
} {
  if (!leaderElection) return { client, leaderElection: undefined };
  const given = leaderElection === true ? {} : leaderElection;
  const leaseName = given.name ?? name;
  if (!leaseName) {
    throw new RangeError('leaderElection needs the name of the Lease: set the option name');
  }
  const namespace =
    given.namespace ?? (client instanceof HttpClient ? client.namespace : undefined);
  if (!namespace) {
    throw new RangeError(
      'leaderElection needs a namespace for its Lease, and the kubeconfig has none: set leaderElection.namespace',
    );
  }
  const common = {
    ...given,
    name: leaseName,
    namespace,
    identity: given.identity ?? newIdentity(host ?? hostname()),
  };
  if (given.client && given.fence) {
    return { client, leaderElection: { ...common, client: given.client, fence: given.fence } };
  }
  if (given.client || given.fence || !(client instanceof HttpClient)) {
    throw new TypeError(
      'leaderElection needs both client and fence, or neither of them and an HttpClient, as connectCluster returns it',
    );
  }
  const fence = new WriteFence();
  const leaseClient = client.withOptions({
    userAgent: `${client.userAgent ?? leaseName}/leader-election`,
    requestTimeoutMs: leaseTimeoutMs(given.renewDeadlineMs),
    qps: undefined,
  });
  return {
    client: fenced(client, fence),
    leaderElection: { ...common, client: leaseClient, fence },
  };
}

/** Returns a client whose writes `fence` guards, if it is an `HttpClient`. Others must have a fence of their own. */
export function fenced(client: Client, fence: WriteFence): Client {
  if (!(client instanceof HttpClient)) return client;
  return client.withOptions({ wrapTransport: (handler) => fence.wrap(handler) });
}
